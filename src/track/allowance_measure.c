#include "allowance_measure.h"

#include <stdatomic.h>
#include <stddef.h>

#include "../base/os.h"
#include "../cuda/driver.h"
#include "../cuda/nvml.h"
#include "pool.h"

#define CONTEXT_MOST_BYTES ((uint64_t)1 << 30)
#define CONTEXT_ASSUMED_BYTES ((uint64_t)512 << 20)

/* --- capture ---------------------------------------------------------------------------------- */

/* cuMemPoolGetAttribute and a trim end a global capture of any thread, unless ours is relaxed. */
static bool exchange_capture_mode(CUstreamCaptureMode *mode)
{
    return gos_driver.cuThreadExchangeStreamCaptureMode &&
           gos_driver.cuThreadExchangeStreamCaptureMode(mode) == CUDA_SUCCESS;
}

/* --- pools and graphs ------------------------------------------------------------------------- */

static uint64_t attribute(uint64_t pool, CUmemPool_attribute which)
{
    cuuint64_t bytes = 0;

    if (!gos_driver.cuMemPoolGetAttribute ||
        gos_driver.cuMemPoolGetAttribute((CUmemoryPool)(uintptr_t)pool, which, &bytes) !=
            CUDA_SUCCESS)
        return 0;
    return bytes;
}

static uint64_t graph_bytes(uint32_t device)
{
    cuuint64_t bytes = 0;

    if (!gos_driver.cuDeviceGetGraphMemAttribute ||
        gos_driver.cuDeviceGetGraphMemAttribute(
            (CUdevice)device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &bytes) != CUDA_SUCCESS)
        return 0;
    return bytes;
}

static bool is_of(const struct gos_pool_info *info, uint32_t device)
{
    return info->device == device && !info->imported;
}

/* A destroyed pool is not on the list while its memory lives on: then the records say more. */
static uint64_t pool_bytes(uint32_t device)
{
    struct gos_pool_info infos[GOS_POOL_MAX];
    size_t count = gos_pool_list(infos, GOS_POOL_MAX);
    uint64_t live_bytes = gos_registry_total(device, GOS_KIND_POOL).live_bytes;
    uint64_t bytes = 0;

    for (size_t i = 0; i < count; i++) {
        if (is_of(&infos[i], device))
            bytes += attribute(infos[i].pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    }
    return bytes > live_bytes ? bytes : live_bytes;
}

static void measure_pools(uint32_t device, const struct gos_allowance_mark *mark)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    bool relaxed = exchange_capture_mode(&mode);

    gos_allowance_set_drawn(device, mark, pool_bytes(device) + graph_bytes(device));
    if (relaxed)
        exchange_capture_mode(&mode);
}

void gos_allowance_measure_pools(uint32_t device)
{
    struct gos_allowance_mark mark = gos_allowance_mark(device);

    measure_pools(device, &mark);
}

void gos_allowance_trim(uint32_t device)
{
    struct gos_pool_info infos[GOS_POOL_MAX];
    size_t count = gos_pool_list(infos, GOS_POOL_MAX);
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    bool relaxed = exchange_capture_mode(&mode);

    for (size_t i = 0; gos_driver.cuMemPoolTrimTo && i < count; i++) {
        if (is_of(&infos[i], device))
            gos_driver.cuMemPoolTrimTo((CUmemoryPool)(uintptr_t)infos[i].pool, 0);
    }
    if (gos_driver.cuDeviceGraphMemTrim)
        gos_driver.cuDeviceGraphMemTrim((CUdevice)device);
    if (relaxed)
        exchange_capture_mode(&mode);
}

static bool is_only_pool(uint32_t device)
{
    struct gos_pool_info infos[GOS_POOL_MAX];
    size_t count = gos_pool_list(infos, GOS_POOL_MAX);
    size_t of_device = 0;

    for (size_t i = 0; i < count; i++)
        of_device += infos[i].device == device;
    return of_device <= 1;
}

struct pool_sum {
    uint64_t pool;
    uint64_t live_bytes;
};

static void add_if_in_pool(const struct gos_allocation *allocation, void *arg)
{
    struct pool_sum *sum = arg;

    if (allocation->kind == GOS_KIND_POOL && gos_home_get(allocation->home).pool == sum->pool)
        sum->live_bytes += allocation->bytes;
}

static uint64_t live_in_pool(uint32_t device, uint64_t pool)
{
    struct pool_sum sum = {.pool = pool};

    if (is_only_pool(device))
        return gos_registry_total(device, GOS_KIND_POOL).live_bytes;
    gos_registry_walk(add_if_in_pool, &sum);
    return sum.live_bytes;
}

uint64_t gos_allowance_pool_idle(uint32_t device, uint64_t pool)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    bool relaxed = exchange_capture_mode(&mode);
    uint64_t reserved = attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    uint64_t live = live_in_pool(device, pool);

    if (relaxed)
        exchange_capture_mode(&mode);
    return reserved > live ? reserved - live : 0;
}

/* --- contexts and modules --------------------------------------------------------------------- */

/* NVML's handles stay as they are; looking one up by its number takes a while. */
static _Atomic(void *) nvml_handles[GOS_DEVICE_MAX];

static bool ask_nvml(uint32_t device, void **handle)
{
    CUuuid uuid;
    CUdevice ordinal;

    if (!gos_driver.cuDeviceGet || gos_driver.cuDeviceGet(&ordinal, (int)device) != CUDA_SUCCESS)
        return false;
    if ((!gos_driver.cuDeviceGetUuid_v2 ||
         gos_driver.cuDeviceGetUuid_v2(&uuid, ordinal) != CUDA_SUCCESS) &&
        (!gos_driver.cuDeviceGetUuid || gos_driver.cuDeviceGetUuid(&uuid, ordinal) != CUDA_SUCCESS))
        return false;
    return gos_nvml_device((const uint8_t *)uuid.bytes, handle) == 0;
}

static bool find_nvml(uint32_t device, void **handle)
{
    *handle = atomic_load(&nvml_handles[device]);
    if (!*handle && ask_nvml(device, handle))
        atomic_store(&nvml_handles[device], *handle);
    return *handle != NULL;
}

bool gos_allowance_device_of_nvml(const void *nvml, uint32_t *device)
{
    void *its;
    int count = 0;

    if (!gos_driver.cuDeviceGetCount || gos_driver.cuDeviceGetCount(&count) != CUDA_SUCCESS)
        return false;
    for (uint32_t i = 0; i < (uint32_t)count && i < GOS_DEVICE_MAX; i++) {
        if (!find_nvml(i, &its) || its != nvml)
            continue;
        *device = i;
        return true;
    }
    return false;
}

static bool own_bytes(void *nvml, uint64_t *bytes)
{
    struct gos_nvml_process processes[GOS_NVML_PROCESS_MAX];
    size_t count = GOS_NVML_PROCESS_MAX;
    uint32_t self = (uint32_t)gos_os.pid();

    if (gos_nvml_processes(nvml, processes, &count) != 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (processes[i].pid != self || processes[i].used_bytes == UINT64_MAX)
            continue;
        *bytes = processes[i].used_bytes;
        return true;
    }
    return false;
}

/* False: NVML does not show this process. */
static bool measure_own(uint32_t device, const struct gos_allowance_mark *mark)
{
    void *nvml;
    uint64_t bytes;

    if (!find_nvml(device, &nvml) || !own_bytes(nvml, &bytes))
        return false;
    gos_allowance_set_own(device, mark, bytes);
    return true;
}

void gos_allowance_measure(uint32_t device)
{
    struct gos_allowance_mark mark = gos_allowance_mark(device);

    measure_pools(device, &mark);
    measure_own(device, &mark);
}

static bool ask_context(uint64_t context, uint64_t *bytes)
{
    size_t available = 0, total = 0;
    CUcontext popped;
    bool answered;

    if (!gos_driver.cuCtxPushCurrent || !gos_driver.cuCtxPopCurrent || !gos_driver.cuMemGetInfo ||
        gos_driver.cuCtxPushCurrent((CUcontext)(uintptr_t)context) != CUDA_SUCCESS)
        return false;
    answered = gos_driver.cuMemGetInfo(&available, &total) == CUDA_SUCCESS;
    gos_driver.cuCtxPopCurrent(&popped);
    *bytes = total - available;
    return answered;
}

/* What the device lost to somebody; with nothing of ours on it but the context, mostly to that. */
static uint64_t context_bytes(uint32_t device, uint64_t context)
{
    uint64_t taken;
    uint64_t known = gos_allowance_used(device);

    if (!ask_context(context, &taken) || taken <= known)
        return CONTEXT_ASSUMED_BYTES;
    taken -= known;
    return taken < CONTEXT_MOST_BYTES ? taken : CONTEXT_ASSUMED_BYTES;
}

static _Atomic uint64_t context_costs[GOS_DEVICE_MAX];

uint64_t gos_allowance_context_cost(uint32_t device)
{
    return atomic_load(&context_costs[device]);
}

/* With modules in it later ones are no measure. */
static void remember_cost(uint32_t device)
{
    uint64_t none = 0;
    uint64_t bytes = gos_allowance_unbooked(device);

    if (bytes < CONTEXT_MOST_BYTES)
        atomic_compare_exchange_strong(&context_costs[device], &none, bytes);
}

void gos_allowance_context_made(uint32_t device, uint64_t context)
{
    struct gos_allowance_mark mark = gos_allowance_mark(device);

    measure_pools(device, &mark);
    if (!measure_own(device, &mark) && gos_allowance_unbooked(device) == 0)
        gos_allowance_set_unbooked(device, context_bytes(device, context));
    remember_cost(device);
}

void gos_allowance_context_ended(uint32_t device)
{
    struct gos_allowance_mark mark = gos_allowance_mark(device);

    measure_pools(device, &mark);
    if (!measure_own(device, &mark) && !gos_context_any_on(device))
        gos_allowance_set_unbooked(device, 0);
}

void gos_allowance_measure_reset_after_fork(void)
{
    for (uint32_t i = 0; i < GOS_DEVICE_MAX; i++) {
        atomic_store(&nvml_handles[i], NULL);
        atomic_store(&context_costs[i], 0);
    }
}
