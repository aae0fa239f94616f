/* What recovery did, and what that proves about the verdict. */
#ifndef GOS_DIAGNOSE_REVISE_H
#define GOS_DIAGNOSE_REVISE_H

#include <stdbool.h>
#include <stddef.h>

#include "diagnosis.h"

/*
 * The steps are over; with `recovered` the last of them helped.  Each step in
 * vain is a source that is used up: the rules are asked again about what is
 * left, with what was tried as evidence.  A flush that helped says who had held
 * the memory, which nobody could see before.  Ledgers stay as they were at the
 * failure.
 *
 * Pure, as gos_diagnose, whose work is redone here: after it, once.  The
 * diagnosis points to the steps from then on.
 */
void gos_diagnose_revise(struct gos_evidence *evidence, struct gos_diagnosis *diagnosis,
                         const struct gos_step_record *steps, size_t count, bool recovered);

#endif
