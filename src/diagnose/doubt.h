/*
 * What a verdict cannot prove because its evidence is not of the moment of the
 * failure.
 */
#ifndef GOS_DIAGNOSE_DOUBT_H
#define GOS_DIAGNOSE_DOUBT_H

#include "diagnosis.h"

/* Makes a proof likely, and says why, where the evidence it stands on is of the telling. */
void gos_doubt(const struct gos_evidence *evidence, struct gos_verdict *verdict);

#endif
