/*
 * What the sites that hold the most held before: the history's samples as plain
 * values, and the moment of the evidence as the last one.
 *
 * Hook context: yes; takes the history's lock.  After the snapshot.
 */
#ifndef GOS_OBSERVE_GROWTH_H
#define GOS_OBSERVE_GROWTH_H

#include "evidence.h"

/* Fills evidence->growth; left empty while there is no sample, and without memory. */
void gos_growth_observe(struct gos_evidence *evidence);

#endif
