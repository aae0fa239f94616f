/* Memory that stands in for device memory (track/fallback.h), summed up. */
#ifndef GOS_OBSERVE_FALLBACKS_H
#define GOS_OBSERVE_FALLBACKS_H

#include "evidence.h"

/* Anew, whatever was there.  Hook context. */
void gos_fallbacks_observe(struct gos_evidence *evidence);

#endif
