/*
 * What begins and ends with a context: memory that was allocated in it dies
 * with it.  Primary contexts are named by their device; green contexts live on
 * the primary one, and so does their memory.
 *
 * Hook context; takes shard locks and those of small tables, one at a time.
 */
#ifndef GOS_SHIM_CONTEXT_END_H
#define GOS_SHIM_CONTEXT_END_H

#include "call.h"

/* A call that makes a context: error 2 means that not even its base cost was to be had. */
struct gos_call gos_context_call(enum gos_entrypoint entry, CUdevice device);
/* Is there room for one more?  Not asked of a primary context, which may be there already. */
static inline bool gos_context_admits(struct gos_call *call)
{
    return !gos_rehearsal_is_on() || gos_rehearsal_admits_context(call);
}
/* It is over; a context that was made is remembered.  Returns result. */
CUresult gos_context_made(struct gos_call *call, CUresult result, const CUcontext *context,
                          CUdevice device);

/* This context has been destroyed; NULL is fine. */
void gos_context_ended(CUcontext context);

void gos_primary_context_seen(CUcontext context, CUdevice device);
/* The device's primary context has been reset. */
void gos_primary_context_ended(CUdevice device);
/* It was given back once: only the last time ends it, and the driver knows which that was. */
void gos_primary_context_released(CUdevice device);

/* `context` is the face of a green context on that device. */
void gos_green_context_seen(CUcontext context, CUdevice device);

#endif
