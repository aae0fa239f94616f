/* The functions that are measured: as the host is given them, and as the driver has them. */
#ifndef GOS_TESTS_BENCH_DRIVER_H
#define GOS_TESTS_BENCH_DRIVER_H

#include <cuda.h>

struct functions {
    __typeof__(&cuMemAlloc) alloc;
    __typeof__(&cuMemFree) free;
    __typeof__(&cuMemAllocAsync) alloc_async;
    __typeof__(&cuMemFreeAsync) free_async;
    __typeof__(&cuLaunchKernel) launch;
};

enum { BARE, GIVEN };

/* By BARE and GIVEN; filled by bench_start. */
extern struct functions bench_functions[2];
extern CUstream bench_stream;   /* created */
extern CUfunction bench_kernel; /* does nothing */

/* Initialise the driver, a context, a stream and a kernel.  0, 77 without a driver, or 1. */
int bench_start(void);

/* Make the context the calling thread's; bench_start has done so for its own.  0, or 1. */
int bench_enter(void);

/* Wait for what was queued, so that it does not slow the next batch down. */
void bench_settle(void);

#endif
