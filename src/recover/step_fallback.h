/*
 * fallback: other memory than the driver's answer (GPUOOMSHIM_FALLBACK), the
 * last resort and always slower:
 *   async-to-sync  cuMemAlloc for a stream-ordered request, unless other devices
 *                  have access to its pool
 *   managed        cuMemAllocManaged, not beyond what is free and
 *                  GPUOOMSHIM_FALLBACK_LIMIT
 *   host           pinned memory that the device reads over the bus, not beyond
 *                  that limit and half of what the host has available
 *
 * Only for calls that can return it (ladder.is_replaceable).
 */
#ifndef GOS_RECOVER_STEP_FALLBACK_H
#define GOS_RECOVER_STEP_FALLBACK_H

#include "ladder.h"

bool gos_step_fallback_is_asked_for(void);
bool gos_step_fallback_may_help(const struct gos_ladder *ladder, const char **why_not);
/* Fills result, reason, cuda_result, and the ladder's substitute.  True when there is one. */
bool gos_step_fallback_run(struct gos_ladder *ladder, struct gos_step_record *record);

#endif
