/* What frameworks said, set against a device's ledger and a request. */
#ifndef GOS_DIAGNOSE_FRAMEWORK_H
#define GOS_DIAGNOSE_FRAMEWORK_H

#include "diagnosis.h"

/* Reserved but not in use; what lies in the driver's pools is counted there, so not here. */
uint64_t gos_framework_idle_bytes(const struct gos_framework_evidence *framework);

/*
 * What it would give back if it were asked: its own word, or at most what is
 * not known to be in pieces.
 */
uint64_t gos_framework_givable_bytes(const struct gos_framework_evidence *framework);

/*
 * Of what it holds on the device, the most that it may not use, where it was not
 * asked: all of it, but what it has told of as being in use.  device below 0:
 * of the host's memory it tells nothing.
 */
uint64_t gos_framework_opaque_bytes(const struct gos_evidence *evidence, const char *name,
                                    int device, uint64_t held_bytes);

/* Is the request one that this framework serves from its own cache first? */
bool gos_framework_serves(const struct gos_framework_evidence *framework,
                          const struct gos_evidence *evidence);

/*
 * Move what frameworks do not use from the lines of live memory to a line of
 * its own: the sum stays, and no line gets negative.  Measured; derived where
 * it was asked later than the rest; unknown where there was less to move, so
 * that the numbers are of different moments.
 */
void gos_framework_split(const struct gos_evidence *evidence, uint32_t device,
                         struct gos_ledger *ledger);

/* Fill the framework's part; the formula is in diagnosis.h. */
void gos_framework_fragmentation(const struct gos_evidence *evidence, uint32_t device,
                                 struct gos_fragmentation *fragmentation);

#endif
