/*
 * What a verdict cannot prove, whatever its rule says: its evidence is not of
 * the moment of the failure, or contradicts itself.
 */
#ifndef GOS_DIAGNOSE_DOUBT_H
#define GOS_DIAGNOSE_DOUBT_H

#include "diagnosis.h"

/* Makes a proof of diagnosis->verdict likely, and says why, where what it stands on is no proof. */
void gos_doubt(struct gos_evidence *evidence, struct gos_diagnosis *diagnosis);

#endif
