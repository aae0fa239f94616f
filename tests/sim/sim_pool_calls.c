/* Entry points of memory pools and stream-ordered allocation. */

#include "sim_call.h"
#include "sim_context.h"
#include "sim_graph.h"
#include "sim_memory.h"
#include "sim_pool.h"
#include "sim_stream.h"
#include "sim_zero_cost.h"

static CUmemoryPool default_pools[SIM_DEVICES_MAX];
static CUmemoryPool current_pools[SIM_DEVICES_MAX];

/* Made when first asked for; NULL without address space. */
static CUmemoryPool default_pool(int device)
{
    if (default_pools[device] == NULL)
        default_pools[device] = sim_pool_make(device);
    return default_pools[device];
}

static CUmemoryPool current_pool(int device)
{
    CUmemoryPool pool = current_pools[device];
    return pool != NULL && sim_pool_is_live(pool) ? pool : default_pool(device);
}

static CUresult get_default(CUmemoryPool *out, int device)
{
    if (out == NULL || !sim_device_exists(device))
        return out == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
    *out = default_pool(device);
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult get_current(CUmemoryPool *out, int device)
{
    if (out == NULL || !sim_device_exists(device))
        return out == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
    *out = current_pool(device);
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult set_current(int device, CUmemoryPool pool)
{
    if (!sim_device_exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!sim_pool_is_live(pool))
        return CUDA_ERROR_INVALID_VALUE;
    current_pools[device] = pool;
    return CUDA_SUCCESS;
}

static CUresult create(CUmemoryPool *out, const CUmemPoolProps *properties)
{
    if (out == NULL || properties == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    bool on_host = properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE;
    if (!on_host && !sim_device_exists(properties->location.id))
        return CUDA_ERROR_INVALID_DEVICE;
    *out = sim_pool_make(on_host ? 0 : properties->location.id);
    if (*out == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*out)->on_host = on_host;
    return CUDA_SUCCESS;
}

static CUresult destroy(CUmemoryPool pool)
{
    if (!sim_pool_is_live(pool) || pool == default_pools[pool->device])
        return CUDA_ERROR_INVALID_VALUE;
    sim_pool_destroy(pool);
    return CUDA_SUCCESS;
}

static CUresult trim(CUmemoryPool pool, uint64_t keep_bytes)
{
    if (!sim_pool_is_live(pool))
        return CUDA_ERROR_INVALID_VALUE;
    sim_pool_trim(pool, keep_bytes);
    return CUDA_SUCCESS;
}

static int *find_policy(CUmemoryPool pool, CUmemPool_attribute attribute)
{
    switch ((int)attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
        return &pool->reuse[0];
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
        return &pool->reuse[1];
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        return &pool->reuse[2];
    default:
        return NULL;
    }
}

static uint64_t *find_amount(CUmemoryPool pool, CUmemPool_attribute attribute)
{
    switch ((int)attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        return &pool->threshold_bytes;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        return &pool->reserved_bytes;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        return &pool->reserved_high_bytes;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        return &pool->used_bytes;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        return &pool->used_high_bytes;
    default:
        return NULL;
    }
}

static CUresult get_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    if (!sim_pool_is_live(pool) || value == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const int *policy = find_policy(pool, attribute);
    const uint64_t *amount = find_amount(pool, attribute);
    if (policy == NULL && amount == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (policy != NULL)
        *(int *)value = *policy;
    else
        *(cuuint64_t *)value = *amount;
    return CUDA_SUCCESS;
}

/* High-water marks can only be set to 0, current values not at all [H200]. */
static CUresult set_amount(CUmemoryPool pool, CUmemPool_attribute attribute, uint64_t value)
{
    bool is_high = attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH ||
                   attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH;
    uint64_t *amount = find_amount(pool, attribute);
    if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        *amount = value;
    else if (is_high && value == 0)
        *amount =
            attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? pool->used_bytes : pool->reserved_bytes;
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static CUresult set_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, const void *value)
{
    if (!sim_pool_is_live(pool) || value == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    int *policy = find_policy(pool, attribute);
    if (policy == NULL)
        return set_amount(pool, attribute, *(const cuuint64_t *)value);
    *policy = *(const int *)value;
    return CUDA_SUCCESS;
}

static CUresult get_access(CUmemAccess_flags *flags, CUmemoryPool pool)
{
    if (flags == NULL || !sim_pool_is_live(pool))
        return CUDA_ERROR_INVALID_VALUE;
    *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return CUDA_SUCCESS;
}

static CUresult take(CUdeviceptr *out, uint64_t bytes, CUmemoryPool pool, CUstream stream)
{
    if (out == NULL || stream == NULL)
        return out == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    if (bytes == 0) {
        *out = 0;
        return CUDA_SUCCESS;
    }
    if (pool == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (stream->capture != NULL)
        return sim_capture_take(stream, pool->device, bytes, out);
    CUresult result = sim_capture_forbids(sim_thread_self());
    uint64_t address = 0;
    if (result != CUDA_SUCCESS)
        return result;
    result = sim_pool_take(pool, stream, bytes, &address);
    *out = address;
    return result;
}

static CUresult take_current(CUdeviceptr *out, uint64_t bytes, CUstream stream)
{
    int device = stream != NULL ? stream->context->device : sim_device_current();
    return take(out, bytes, current_pool(device), stream);
}

static CUresult take_from(CUdeviceptr *out, uint64_t bytes, CUmemoryPool pool, CUstream stream)
{
    if (!sim_pool_is_live(pool))
        return CUDA_ERROR_INVALID_VALUE;
    return take(out, bytes, pool, stream);
}

static CUresult give_range(struct sim_range *range, CUstream stream)
{
    switch ((int)range->kind) {
    case SIM_POOLED:
        sim_pool_free(range, stream);
        return CUDA_SUCCESS;
    case SIM_LINEAR:
    case SIM_PIECE:
        return sim_memory_give_later(range, stream);
    case SIM_GRAPH_OWNED:
        if (!sim_graph_node_is_live(range))
            return CUDA_ERROR_INVALID_VALUE;
        sim_stream_mark(stream);
        sim_graph_free_node(range);
        return CUDA_SUCCESS;
    case SIM_MANAGED:
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult give(CUdeviceptr address, CUstream stream)
{
    struct sim_range *range = sim_range_at(address);
    if (stream == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (address == 0)
        return CUDA_SUCCESS;
    if (range == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture != NULL)
        return sim_capture_give(stream, range);
    CUresult result = sim_capture_forbids(sim_thread_self());
    return result == CUDA_SUCCESS ? give_range(range, stream) : result;
}

CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    if (sim_settings.zero_cost)
        return sim_zero_cost_take(address, bytes);
    return SIM_CALL(cuMemAllocAsync, SIM_CONTEXT,
                    take_current(address, bytes, sim_stream_find(stream, false)));
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    if (sim_settings.zero_cost)
        return sim_zero_cost_take(address, bytes);
    return SIM_CALL(cuMemAllocAsync_ptsz, SIM_CONTEXT,
                    take_current(address, bytes, sim_stream_find(stream, true)));
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    if (sim_settings.zero_cost)
        return CUDA_SUCCESS;
    return SIM_CALL(cuMemFreeAsync, SIM_CONTEXT, give(address, sim_stream_find(stream, false)));
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream)
{
    if (sim_settings.zero_cost)
        return CUDA_SUCCESS;
    return SIM_CALL(cuMemFreeAsync_ptsz, SIM_CONTEXT, give(address, sim_stream_find(stream, true)));
}

SIM_TWO_CALLS(cuMemAllocFromPoolAsync, ptsz,
              (CUdeviceptr * address, size_t bytes, CUmemoryPool pool, CUstream stream),
              SIM_CONTEXT, take_from(address, bytes, pool, sim_stream_find(stream, per_thread)))

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
    return SIM_CALL(cuDeviceGetDefaultMemPool, SIM_READY, get_default(pool, device));
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
    return SIM_CALL(cuDeviceGetMemPool, SIM_READY, get_current(pool, device));
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
    return SIM_CALL(cuDeviceSetMemPool, SIM_READY, set_current(device, pool));
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    return SIM_CALL(cuMemPoolCreate, SIM_READY, create(pool, properties));
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    return SIM_CALL(cuMemPoolDestroy, SIM_READY, destroy(pool));
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep_bytes)
{
    return SIM_CALL(cuMemPoolTrimTo, SIM_READY | SIM_NO_CAPTURE, trim(pool, keep_bytes));
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    return SIM_CALL(cuMemPoolGetAttribute, SIM_READY, get_attribute(pool, attribute, value));
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    return SIM_CALL(cuMemPoolSetAttribute, SIM_READY, set_attribute(pool, attribute, value));
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location)
{
    (void)location;
    return SIM_CALL(cuMemPoolGetAccess, SIM_READY, get_access(flags, pool));
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *descriptions, size_t count)
{
    (void)pool;
    (void)descriptions;
    (void)count;
    return SIM_CALL(cuMemPoolSetAccess, SIM_READY, CUDA_SUCCESS);
}

CUresult cuMemPoolExportToShareableHandle(void *handle, CUmemoryPool pool,
                                          CUmemAllocationHandleType type, unsigned long long flags)
{
    (void)handle;
    (void)pool;
    (void)type;
    (void)flags;
    return SIM_CALL(cuMemPoolExportToShareableHandle, SIM_READY, CUDA_ERROR_NOT_SUPPORTED);
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *handle,
                                            CUmemAllocationHandleType type,
                                            unsigned long long flags)
{
    (void)pool;
    (void)handle;
    (void)type;
    (void)flags;
    return SIM_CALL(cuMemPoolImportFromShareableHandle, SIM_READY, CUDA_ERROR_NOT_SUPPORTED);
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr address)
{
    (void)data;
    (void)address;
    return SIM_CALL(cuMemPoolExportPointer, SIM_READY, CUDA_ERROR_NOT_SUPPORTED);
}

CUresult cuMemPoolImportPointer(CUdeviceptr *address, CUmemoryPool pool,
                                CUmemPoolPtrExportData *data)
{
    (void)address;
    (void)pool;
    (void)data;
    return SIM_CALL(cuMemPoolImportPointer, SIM_READY, CUDA_ERROR_NOT_SUPPORTED);
}
