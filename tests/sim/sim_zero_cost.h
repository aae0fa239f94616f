/*
 * GPUSIM_ZERO_COST: allocation as a moving pointer, for benchmarks that measure
 * what stands in front of the driver.  No lock, no bookkeeping, no context
 * asked for.  Addresses must not be touched; two live ones differ as long as
 * what a thread holds at once lies within the last TiB that it allocated.
 */
#ifndef SIM_ZERO_COST_H
#define SIM_ZERO_COST_H

#include <cuda.h>
#include <stddef.h>

CUresult sim_zero_cost_take(CUdeviceptr *address, size_t bytes);

#endif
