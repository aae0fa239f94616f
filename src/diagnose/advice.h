/*
 * Advice that more than one verdict gives.  Nothing is suggested that is
 * already set.
 */
#ifndef GOS_DIAGNOSE_ADVICE_H
#define GOS_DIAGNOSE_ADVICE_H

#include "rule.h"

/* How to make this library's cache give memory back, or keep it smaller. */
void gos_advise_cache(const struct gos_situation *situation, struct gos_verdict *verdict,
                      const char *library);

/* How to keep torch's segments from going to pieces. */
void gos_advise_torch_pieces(const struct gos_situation *situation, struct gos_verdict *verdict);

/* The same where it is known that they are in pieces: all that helps, best first. */
void gos_advise_torch_whole(const struct gos_situation *situation, struct gos_verdict *verdict);

/* What takes a device's memory without any call that allocates. */
void gos_advise_context(const struct gos_situation *situation, struct gos_verdict *verdict);

/* The site with most live bytes, and what usually makes programs smaller. */
void gos_advise_less(const struct gos_situation *situation, struct gos_verdict *verdict);

#endif
