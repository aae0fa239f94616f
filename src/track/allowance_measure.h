/*
 * What allowance.h cannot know from records, asked of the driver and NVML.
 *
 * Hook context, with gos_thread.depth raised by the caller.  Calls the driver,
 * with this thread's capture mode relaxed meanwhile, so that no capture is hurt.
 */
#ifndef GOS_TRACK_ALLOWANCE_MEASURE_H
#define GOS_TRACK_ALLOWANCE_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "allowance.h"

/* Pools and graphs of the device. */
void gos_allowance_measure_pools(uint32_t device);
/*
 * Those, and contexts and modules where NVML's list of processes shows this one.
 * Tens of microseconds on a real device.
 */
void gos_allowance_measure(uint32_t device);

/*
 * Give idle memory of pools and graphs back to the device, as the driver does by
 * itself when it is full: only what it has seen the end of goes.
 */
void gos_allowance_trim(uint32_t device);

/* Unused in that pool: reserved, and nothing that we know of lives there; 0 if it cannot be told.
 */
uint64_t gos_allowance_pool_idle(uint32_t device, uint64_t pool);

/* Which device has this handle of NVML?  False: none that CUDA shows. */
bool gos_allowance_device_of_nvml(const void *nvml, uint32_t *device);

/*
 * A context was made on, or has gone from, the device.  Where NVML does not show
 * this process, the first context is what the device lost, where that is less
 * than 1 GiB, else 512 MiB; modules and further contexts are not seen then.
 */
void gos_allowance_context_made(uint32_t device, uint64_t context);
void gos_allowance_context_ended(uint32_t device);
/* What the first context of the device took; 0 before there is one. */
uint64_t gos_allowance_context_cost(uint32_t device);

void gos_allowance_measure_reset_after_fork(void);

#endif
