/*
 * Sentences of a verdict, in the evidence's scratch memory.  Never NULL: what
 * cannot be had for want of memory reads as "".  Formats are those of
 * base/text.h.
 */
#ifndef GOS_DIAGNOSE_WORDING_H
#define GOS_DIAGNOSE_WORDING_H

#include <stdint.h>

#include "../observe/evidence.h"

#define GOS_WORDING_MAX 640

__attribute__((format(printf, 2, 3))) const char *gos_wording(struct gos_evidence *evidence,
                                                              const char *format, ...);

/* "4.00 GiB"; an amount as people read it. */
const char *gos_wording_bytes(struct gos_evidence *evidence, uint64_t bytes);

/* "1 allocation", "3 allocations". */
const char *gos_wording_count(struct gos_evidence *evidence, uint64_t count, const char *noun);

#endif
