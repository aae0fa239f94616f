/*
 * Contexts that were current when memory was allocated, and their device.
 *
 * Hook context: yes; looking up is lock-free.
 */
#ifndef GOS_TRACK_CONTEXT_H
#define GOS_TRACK_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "handle_map.h" /* gos_handle_generation, which contexts count up too */

#define GOS_CONTEXT_MAX 256

bool gos_context_device(uint64_t context, uint32_t *device);
void gos_context_seen(uint64_t context, uint32_t device);
/* Is a context known that is on that device? */
bool gos_context_any_on(uint32_t device);
/* The only context that was ever seen; 0 before the first and for good from the second on. */
uint64_t gos_context_only(void);
/* Frees pending on its streams, and captures, are over, too; no record may name it any more. */
void gos_context_destroyed(uint64_t context);

void gos_context_reset_after_fork(void); /* by gos_pool_reset_after_fork */

#endif
