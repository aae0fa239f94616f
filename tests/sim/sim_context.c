#include "sim_context.h"

#include <stdlib.h>

#include "sim_call.h"
#include "sim_capacity.h"
#include "sim_graph.h"
#include "sim_memory.h"
#include "sim_pool.h"
#include "sim_stream.h"

#define CONTEXT_MAGIC 0x43545831u

struct primary {
    CUcontext context;
    unsigned references;
    unsigned flags;
};

static struct primary primaries[SIM_DEVICES_MAX];
static CUcontext graveyard;
static uint64_t last_id;

CUcontext sim_context_current(void)
{
    const struct sim_thread *thread = sim_thread_self();
    return thread->context_count != 0 ? thread->contexts[thread->context_count - 1] : NULL;
}

bool sim_context_is_alive(CUcontext context)
{
    return context != NULL && context->magic == CONTEXT_MAGIC;
}

CUresult sim_context_error(CUcontext context)
{
    if (!sim_context_is_alive(context))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return (CUresult)context->sticky;
}

void sim_context_break(CUcontext context, CUresult error)
{
    if (context->sticky == CUDA_SUCCESS)
        context->sticky = (int)error;
}

int sim_device_current(void)
{
    return sim_context_current()->device;
}

bool sim_device_exists(int device)
{
    return device >= 0 && device < sim_settings.device_count;
}

bool sim_device_take(int device, uint64_t bytes)
{
    if (bytes <= sim_settings.memory_bytes && sim_capacity_take(device, bytes))
        return true;
    sim_pools_give_back(device);
    sim_graphs_give_back(device);
    return bytes <= sim_settings.memory_bytes && sim_capacity_take(device, bytes);
}

static CUresult create(CUcontext *out, unsigned flags, int device)
{
    if (!sim_device_take(device, sim_settings.context_bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUcontext context = calloc(1, sizeof(*context));
    CUstream stream = context != NULL ? sim_stream_make(context, CU_STREAM_DEFAULT, 0) : NULL;
    if (stream == NULL) {
        free(context);
        sim_capacity_give(device, sim_settings.context_bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    context->magic = CONTEXT_MAGIC;
    context->device = device;
    context->flags = flags;
    context->id = ++last_id;
    context->null_stream = stream;
    *out = context;
    return CUDA_SUCCESS;
}

/*
 * The record itself stays: other threads may have it current, and have to
 * find out that it is gone.
 */
static void destroy(CUcontext context)
{
    sim_streams_finish(context);
    sim_memory_free_context(context);
    context->magic = 0;
    context->next = graveyard;
    graveyard = context;
    sim_capacity_give(context->device, sim_settings.context_bytes);
}

static CUresult set_current(CUcontext context)
{
    struct sim_thread *thread = sim_thread_self();
    if (context != NULL && !sim_context_is_alive(context))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (thread->context_count != 0)
        thread->context_count--;
    if (context != NULL)
        thread->contexts[thread->context_count++] = context;
    return CUDA_SUCCESS;
}

static CUresult push(CUcontext context)
{
    struct sim_thread *thread = sim_thread_self();
    if (!sim_context_is_alive(context) || thread->context_count == SIM_CONTEXTS_MAX)
        return CUDA_ERROR_INVALID_CONTEXT;
    thread->contexts[thread->context_count++] = context;
    return CUDA_SUCCESS;
}

static CUresult pop(CUcontext *out)
{
    struct sim_thread *thread = sim_thread_self();
    if (thread->context_count == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    thread->context_count--;
    if (out != NULL)
        *out = thread->contexts[thread->context_count];
    return CUDA_SUCCESS;
}

static CUresult create_current(CUcontext *out, unsigned flags, int device)
{
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_device_exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    CUresult result = create(out, flags, device);
    return result == CUDA_SUCCESS ? push(*out) : result;
}

static bool is_primary(CUcontext context)
{
    return primaries[context->device].context == context;
}

static CUresult destroy_created(CUcontext context)
{
    if (!sim_context_is_alive(context) || is_primary(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (sim_context_current() == context)
        pop(NULL);
    destroy(context);
    return CUDA_SUCCESS;
}

static CUresult retain(CUcontext *out, int device)
{
    if (!sim_device_exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    struct primary *primary = &primaries[device];
    CUresult result = CUDA_SUCCESS;
    if (primary->context == NULL)
        result = create(&primary->context, primary->flags, device);
    if (result != CUDA_SUCCESS)
        return result;
    primary->references++;
    *out = primary->context;
    return CUDA_SUCCESS;
}

static void drop_primary(struct primary *primary)
{
    if (primary->context != NULL)
        destroy(primary->context);
    primary->context = NULL;
}

static CUresult release(int device)
{
    if (!sim_device_exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    struct primary *primary = &primaries[device];
    if (primary->references == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (--primary->references == 0)
        drop_primary(primary);
    return CUDA_SUCCESS;
}

/* References stay: the runtime keeps its own and gets a new context with its next retain. */
static CUresult reset(int device)
{
    if (!sim_device_exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    drop_primary(&primaries[device]);
    primaries[device].references = 0;
    return CUDA_SUCCESS;
}

static CUresult set_primary_flags(int device, unsigned flags)
{
    if (!sim_device_exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    primaries[device].flags = flags;
    return CUDA_SUCCESS;
}

static CUresult get_primary_state(int device, unsigned *flags, int *active)
{
    if (!sim_device_exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *flags = primaries[device].flags;
    *active = primaries[device].context != NULL;
    return CUDA_SUCCESS;
}

static CUresult get_current(CUcontext *out)
{
    *out = sim_context_current();
    return CUDA_SUCCESS;
}

static CUresult get_device(CUdevice *device, CUcontext context)
{
    context = context != NULL ? context : sim_context_current();
    if (device == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (context == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    *device = context->device;
    return sim_context_is_alive(context) ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

static CUresult get_id(CUcontext context, unsigned long long *id)
{
    context = context != NULL ? context : sim_context_current();
    if (!sim_context_is_alive(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    *id = context->id;
    return CUDA_SUCCESS;
}

static CUresult get_flags(unsigned *flags)
{
    *flags = sim_context_current()->flags;
    return CUDA_SUCCESS;
}

static CUresult get_version(unsigned *version)
{
    *version = 3020;
    return CUDA_SUCCESS;
}

static CUresult get_limit(size_t *value)
{
    *value = 1024;
    return CUDA_SUCCESS;
}

static CUresult get_priorities(int *least, int *greatest)
{
    if (least != NULL)
        *least = 0;
    if (greatest != NULL)
        *greatest = -5;
    return CUDA_SUCCESS;
}

CUresult cuInit(unsigned int flags)
{
    return SIM_CALL(cuInit, SIM_ANYTIME, sim_start(flags));
}

CUresult cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device)
{
    return SIM_CALL(cuCtxCreate, SIM_READY, create_current(context, flags, device));
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
    return SIM_CALL(cuCtxCreate_v2, SIM_READY, create_current(context, flags, device));
}

CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *affinity, int count,
                        unsigned int flags, CUdevice device)
{
    (void)affinity;
    (void)count;
    return SIM_CALL(cuCtxCreate_v3, SIM_READY, create_current(context, flags, device));
}

CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *parameters, unsigned int flags,
                        CUdevice device)
{
    (void)parameters;
    return SIM_CALL(cuCtxCreate_v4, SIM_READY, create_current(context, flags, device));
}

CUresult cuCtxDestroy(CUcontext context)
{
    return SIM_CALL(cuCtxDestroy, SIM_READY, destroy_created(context));
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
    return SIM_CALL(cuCtxDestroy_v2, SIM_READY, destroy_created(context));
}

CUresult cuCtxPushCurrent(CUcontext context)
{
    return SIM_CALL(cuCtxPushCurrent, SIM_READY, push(context));
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    return SIM_CALL(cuCtxPushCurrent_v2, SIM_READY, push(context));
}

CUresult cuCtxPopCurrent(CUcontext *context)
{
    return SIM_CALL(cuCtxPopCurrent, SIM_READY, pop(context));
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    return SIM_CALL(cuCtxPopCurrent_v2, SIM_READY, pop(context));
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    return SIM_CALL(cuCtxSetCurrent, SIM_READY, set_current(context));
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    return SIM_CALL(cuCtxGetCurrent, SIM_STARTED, get_current(context));
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    return SIM_CALL(cuCtxGetDevice, SIM_STARTED, get_device(device, NULL));
}

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext context)
{
    return SIM_CALL(cuCtxGetDevice_v2, SIM_STARTED, get_device(device, context));
}

CUresult cuCtxGetId(CUcontext context, unsigned long long *id)
{
    return SIM_CALL(cuCtxGetId, SIM_STARTED, get_id(context, id));
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
    return SIM_CALL(cuCtxGetFlags, SIM_CONTEXT, get_flags(flags));
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned int *version)
{
    (void)context;
    return SIM_CALL(cuCtxGetApiVersion, SIM_STARTED, get_version(version));
}

CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
    (void)limit;
    return SIM_CALL(cuCtxGetLimit, SIM_CONTEXT, get_limit(value));
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
    (void)limit;
    (void)value;
    return SIM_CALL(cuCtxSetLimit, SIM_CONTEXT, CUDA_SUCCESS);
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    return SIM_CALL(cuCtxGetStreamPriorityRange, SIM_CONTEXT, get_priorities(least, greatest));
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
    (void)peer;
    (void)flags;
    return SIM_CALL(cuCtxEnablePeerAccess, SIM_CONTEXT, CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    return SIM_CALL(cuDevicePrimaryCtxRetain, SIM_READY, retain(context, device));
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    return SIM_CALL(cuDevicePrimaryCtxRelease, SIM_READY, release(device));
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    return SIM_CALL(cuDevicePrimaryCtxRelease_v2, SIM_READY, release(device));
}

CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
    return SIM_CALL(cuDevicePrimaryCtxReset, SIM_READY, reset(device));
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    return SIM_CALL(cuDevicePrimaryCtxReset_v2, SIM_READY, reset(device));
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags)
{
    return SIM_CALL(cuDevicePrimaryCtxSetFlags, SIM_READY, set_primary_flags(device, flags));
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags)
{
    return SIM_CALL(cuDevicePrimaryCtxSetFlags_v2, SIM_READY, set_primary_flags(device, flags));
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
    return SIM_CALL(cuDevicePrimaryCtxGetState, SIM_READY,
                    get_primary_state(device, flags, active));
}
