/*
 * Device memory that recovery holds back for a failure (GPUOOMSHIM_RESERVE).
 * It is ours, not the host's, and so in no registry; here is only how much.
 *
 * Hook context.
 */
#ifndef GOS_TRACK_HELD_H
#define GOS_TRACK_HELD_H

#include <stdint.h>

void gos_held_set(uint32_t device, uint64_t bytes);
uint64_t gos_held_bytes(uint32_t device);

#endif
