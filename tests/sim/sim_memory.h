/*
 * Memory that belongs to a context: cuMemAlloc and its kin, and the one way in
 * which every kind of device memory is freed.
 *
 * Runs under the driver lock.
 */
#ifndef SIM_MEMORY_H
#define SIM_MEMORY_H

#include <cuda.h>
#include <stdint.h>

#include "sim_range.h"

/* Takes whole or shared device blocks; NULL is error 2. */
struct sim_range *sim_memory_take(uint64_t bytes);

/* Gives the memory of a range back, whatever its kind, and forgets the range. */
void sim_memory_give(struct sim_range *range);

/*
 * A stream-ordered free of memory that is not a pool's: accepted, and given back
 * when the host observes it [H200].
 */
CUresult sim_memory_give_later(struct sim_range *range, CUstream stream);
/* Gives back what has been observed since. */
void sim_memory_sweep(void);

void sim_memory_free_context(CUcontext context);

#endif
