/* What a flush that helped proves: a cache held the memory. */
#ifndef GOS_DIAGNOSE_FLUSHED_H
#define GOS_DIAGNOSE_FLUSHED_H

#include <stdint.h>

#include "diagnosis.h"

/*
 * The request succeeded after `giver` (an everyday or registered name,
 * permanent) had given back so much when it was asked: the verdict says so in
 * place of what could only be guessed before.  Pure, as gos_diagnose.
 */
void gos_diagnose_flushed(struct gos_evidence *evidence, struct gos_diagnosis *diagnosis,
                          const char *giver, uint64_t given_bytes);

/*
 * Caches gave back what they could and the request failed all the same: that
 * one holds enough is no longer proven.
 */
void gos_diagnose_flushed_in_vain(struct gos_evidence *evidence, struct gos_diagnosis *diagnosis);

#endif
