/* Memory limits of the control groups that this process is in, v1 and v2. */
#ifndef GOS_OBSERVE_CONTROL_GROUP_H
#define GOS_OBSERVE_CONTROL_GROUP_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Of the own group and all above it, the one with the least room left.  Used
 * bytes are without file cache that the kernel can drop.  *limit is UINT64_MAX
 * when no group has a limit.  False: the groups could not be read.
 */
bool gos_control_group_memory(uint64_t *limit_bytes, uint64_t *used_bytes);

#endif
