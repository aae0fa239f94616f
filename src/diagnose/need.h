/*
 * What a call needed that is no allocation, in words: a stream, a context, the
 * code of a kernel.  Of error 2 only; where the size is not known, that is said.
 *
 * Pure.
 */
#ifndef GOS_DIAGNOSE_NEED_H
#define GOS_DIAGNOSE_NEED_H

#include "diagnosis.h"

/* Fills diagnosis->need.  After the ledgers and the device in question. */
void gos_need_make(struct gos_evidence *evidence, struct gos_diagnosis *diagnosis);

/* What helps where it was too much for the device; NULL: nothing of its own. */
const char *gos_need_advice(const struct gos_evidence *evidence);

/* Does the call make a context? */
bool gos_need_is_context(const struct gos_request *request);

#endif
