/*
 * Who: sites and modules in the words of people.  Reads the permanent tables
 * of modules and sites; takes no lock that blocks.
 */
#ifndef GOS_DIAGNOSE_HOLDER_H
#define GOS_DIAGNOSE_HOLDER_H

#include <stdint.h>

#include "diagnosis.h"

/* Everyday name of the library that made this allocation, "" when unknown. */
const char *gos_holder_of_site(uint32_t site);

/* The same of the failing call. */
const char *gos_holder_of_request(const struct gos_request *request);

/*
 * "model.py:41 forward [tag]", of the newest Python frame outside installed
 * packages, and of those that called it as far as it needs to be told from the
 * failing call and other large sites (code_place.h); else "libfoo.so symbol"; "" when there is
 * nothing to say.
 */
const char *gos_holder_site_words(struct gos_evidence *evidence, uint32_t site);

/* The same of so many frames of its own code, whoever else has them. */
const char *gos_holder_line_words(struct gos_evidence *evidence, uint32_t site, unsigned lines);

/* "4.00 GiB in 3 allocations", "about 4.00 GiB" where it is an estimate. */
const char *gos_holder_use_words(struct gos_evidence *evidence, const struct gos_site_use *use);

/*
 * Fill the diagnosis' holders and unseen_bytes from live allocations of that device (ordinal or
 * GOS_DEVICE_HOST), largest first.
 */
void gos_holders_make(const struct gos_evidence *evidence, uint32_t device,
                      struct gos_diagnosis *diagnosis);

/* The use of most live bytes on that device, NULL if nothing is live. */
const struct gos_site_use *gos_holder_top_use(const struct gos_evidence *evidence, uint32_t device);

#endif
