/*
 * Contexts and devices.  A context costs GPUSIM_CONTEXT of its device for as
 * long as it lives; it owns streams, and memory from cuMemAlloc and its kin.
 */
#ifndef SIM_CONTEXT_H
#define SIM_CONTEXT_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct CUctx_st {
    _Atomic uint32_t magic; /* tells a live context from a destroyed one */
    int device;
    unsigned flags;
    uint64_t id;
    _Atomic int sticky; /* a CUresult */
    CUstream null_stream;
    CUcontext next; /* among the destroyed ones */
};

/* The calling thread's current context or NULL; no lock. */
CUcontext sim_context_current(void);
/* Its sticky error, or 709 once it is destroyed. */
CUresult sim_context_error(CUcontext context);
void sim_context_break(CUcontext context, CUresult error);

bool sim_context_is_alive(CUcontext context);
/* The current context's device; only in calls that need a current context. */
int sim_device_current(void);
bool sim_device_exists(int device);

/*
 * Takes device memory; when there is not enough, first gives back what pools
 * and graphs hold idle and the host has seen to be idle [H200].
 */
bool sim_device_take(int device, uint64_t bytes);

#endif
