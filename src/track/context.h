/*
 * Contexts that were current when memory was allocated, and their device.
 *
 * Hook context: yes; looking up is lock-free.
 */
#ifndef GOS_TRACK_CONTEXT_H
#define GOS_TRACK_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#define GOS_CONTEXT_MAX 256

bool gos_context_device(uint64_t context, uint32_t *device);
void gos_context_seen(uint64_t context, uint32_t device);
/* Is a context known that is on that device? */
bool gos_context_any_on(uint32_t device);
/* Frees pending on its streams are over, too. */
void gos_context_destroyed(uint64_t context);

/* Counts up whenever a handle became invalid; thread-local caches compare it. */
uint64_t gos_handle_generation(void);

void gos_context_reset_after_fork(void); /* by gos_pool_reset_after_fork */

#endif
