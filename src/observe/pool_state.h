/* Memory pools: what they took from the device and what of it is in use. */
#ifndef GOS_OBSERVE_POOL_STATE_H
#define GOS_OBSERVE_POOL_STATE_H

#include <stdbool.h>

#include "snapshot.h"

/* ask: the driver may be called; else only what is on our books is filled. */
void gos_pool_state_observe(struct gos_evidence *evidence, const struct gos_snapshot *snapshot,
                            bool ask);

#endif
