/*
 * A stand-in for the CUDA runtime.  It finds the driver the way the real one
 * does, and that is its purpose: dlopen("libcuda.so.1"), dlsym for
 * cuGetProcAddress_v2, then that resolver for everything else, all before
 * cuInit; and it calls the driver through these pointers only.
 *
 * Errors of the driver have the same numbers in the runtime.  The last error is
 * per thread.
 */
#ifndef SIM_CUDART_H
#define SIM_CUDART_H

#pragma GCC visibility push(default)
#include <cuda_runtime_api.h>
#pragma GCC visibility pop

#include <cuda.h>
#include <cudaTypedefs.h>
#include <stdbool.h>

#include "sim_newer_runtime.h"

struct sim_rt_driver {
    PFN_cuGetProcAddress_v12000 resolve;
#define RT_CALL(base, version) PFN_##base##_v##version base;
#define RT_TWIN(base, version, twin_version) PFN_##base##_v##version base[2];
#include "sim_cudart.def"
#undef RT_CALL
#undef RT_TWIN
};

/* Filled by the first sim_rt_enter; [0] of a pair is legacy, [1] per thread. */
extern struct sim_rt_driver sim_rt_driver;

#define SIM_RT_DEVICES_MAX 16

/*
 * The frame of a runtime call: driver found and initialised, the thread's device
 * has a current context; afterwards the last error is noted.
 */
#define SIM_RUNTIME(work) sim_rt_leave(sim_rt_enter() ? (cudaError_t)(work) : sim_rt_refusal())

/* A runtime call and its twin for per-thread default streams. */
#define SIM_RUNTIME_TWO(symbol, suffix, parameters, work)                                          \
    cudaError_t symbol parameters                                                                  \
    {                                                                                              \
        enum { TWIN = 0 };                                                                         \
        return SIM_RUNTIME(work);                                                                  \
    }                                                                                              \
    cudaError_t symbol##_##suffix parameters                                                       \
    {                                                                                              \
        enum { TWIN = 1 };                                                                         \
        return SIM_RUNTIME(work);                                                                  \
    }

bool sim_rt_enter(void);
cudaError_t sim_rt_refusal(void);
cudaError_t sim_rt_leave(cudaError_t result);
cudaError_t sim_rt_take_error(bool keep);

#endif
