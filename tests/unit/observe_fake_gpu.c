#include "observe_fake_gpu.h"

#include <errno.h>
#include <string.h>

struct fake_gpu fake_gpu;

static bool fails(void)
{
    bool now = fake_gpu.fail_nth != 0 && ++fake_gpu.calls == fake_gpu.fail_nth;

    fake_gpu.failed = fake_gpu.failed || now;
    return now;
}

static uint64_t current(void)
{
    return fake_gpu.depth > 0 ? fake_gpu.stack[fake_gpu.depth - 1] : 0;
}

static int current_device(void)
{
    return (int)((current() - FAKE_CONTEXT(0)) / 0x1000);
}

static CUresult driver_version(int *version)
{
    *version = 13000;
    return fails() ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

static CUresult device_count(int *count)
{
    *count = fake_gpu.device_count;
    return fails() ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

static CUresult device_get(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return fails() ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

static CUresult device_name(char *name, int length, CUdevice device)
{
    (void)device;
    strncpy(name, "Fake 16", (size_t)length);
    return fails() ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

static CUresult device_uuid(CUuuid *uuid, CUdevice device)
{
    for (int i = 0; i < 16; i++)
        uuid->bytes[i] = (char)(0xF0 + i);
    uuid->bytes[0] = (char)device;
    return fails() ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

static CUresult device_attribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    (void)device;
    *value = (attribute == CU_DEVICE_ATTRIBUTE_INTEGRATED && fake_gpu.integrated) ||
             (attribute == (CUdevice_attribute)133 && fake_gpu.mps);
    return fails() ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

static CUresult device_total(size_t *bytes, CUdevice device)
{
    *bytes = fake_gpu.total_bytes[device];
    return fails() ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

static CUresult primary_state(CUdevice device, unsigned *flags, int *active)
{
    *flags = 0;
    *active = fake_gpu.primary_active[device];
    return fails() ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

static CUresult graph_attribute(CUdevice device, CUgraphMem_attribute attribute, void *value)
{
    *(cuuint64_t *)value =
        attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT ? fake_gpu.graph_reserved[device] : 0;
    return fails() ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

static CUresult get_current(CUcontext *context)
{
    if (fails())
        return CUDA_ERROR_UNKNOWN;
    *context = (CUcontext)(uintptr_t)current();
    return CUDA_SUCCESS;
}

/* Setting back what was current is the one call that the observer cannot do without. */
static CUresult set_current(CUcontext context)
{
    if (fake_gpu.depth == 0)
        fake_gpu.depth = 1;
    fake_gpu.stack[fake_gpu.depth - 1] = (uintptr_t)context;
    return CUDA_SUCCESS;
}

static CUresult push(CUcontext context)
{
    if (fails())
        return CUDA_ERROR_INVALID_CONTEXT;
    fake_gpu.stack[fake_gpu.depth++] = (uintptr_t)context;
    return CUDA_SUCCESS;
}

static CUresult pop(CUcontext *context)
{
    *context = (CUcontext)(uintptr_t)current();
    fake_gpu.depth--;
    return CUDA_SUCCESS;
}

static CUresult context_device(CUdevice *device)
{
    *device = current_device();
    return fails() ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

static CUresult memory_info(size_t *free_bytes, size_t *total_bytes)
{
    fake_gpu.memory_calls++;
    if (fails() || current() == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    *free_bytes = fake_gpu.free_bytes[current_device()];
    *total_bytes = fake_gpu.total_bytes[current_device()];
    return CUDA_SUCCESS;
}

static CUresult pool_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    (void)pool;
    fake_gpu.pool_calls++;
    fake_gpu.queried_mode = fake_gpu.mode;
    *(cuuint64_t *)value = attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT
                               ? fake_gpu.pool_reserved
                           : attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT ? fake_gpu.pool_used
                                                                           : 0;
    return fails() ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

static CUresult stream_query(CUstream stream)
{
    fake_gpu.query_calls++;
    fake_gpu.queried_in = current();
    fake_gpu.queried_mode = fake_gpu.mode;
    if (fails())
        return CUDA_ERROR_UNKNOWN;
    return (uintptr_t)stream == fake_gpu.busy_stream ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

static CUresult stream_query_thread(CUstream stream)
{
    fake_gpu.query_thread_calls++;
    return stream_query(stream);
}

static CUresult exchange_mode(CUstreamCaptureMode *mode)
{
    CUstreamCaptureMode before = fake_gpu.mode;

    fake_gpu.mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

static void install_driver(void)
{
    gos_driver = (struct gos_driver){
        .cuDriverGetVersion = driver_version,
        .cuDeviceGetCount = device_count,
        .cuDeviceGet = device_get,
        .cuDeviceGetName = device_name,
        .cuDeviceGetUuid = device_uuid,
        .cuDeviceGetAttribute = device_attribute,
        .cuDeviceTotalMem = device_total,
        .cuDevicePrimaryCtxGetState = primary_state,
        .cuDeviceGetGraphMemAttribute = graph_attribute,
        .cuCtxGetCurrent = get_current,
        .cuCtxSetCurrent = set_current,
        .cuCtxPushCurrent = push,
        .cuCtxPopCurrent = pop,
        .cuCtxGetDevice = context_device,
        .cuMemGetInfo = memory_info,
        .cuMemPoolGetAttribute = pool_attribute,
        .cuStreamQuery = stream_query,
        .cuStreamQuery_ptsz = stream_query_thread,
        .cuThreadExchangeStreamCaptureMode = exchange_mode,
    };
}

void fake_gpu_install(void)
{
    fake_gpu = (struct fake_gpu){
        .device_count = 2,
        .primary_active = {true},
        .free_bytes = {5ul << 30, 7ul << 30, 9ul << 30},
        .total_bytes = {16ul << 30, 16ul << 30, 16ul << 30},
        .stack = {FAKE_CONTEXT(0)},
        .depth = 1,
        .mode = CU_STREAM_CAPTURE_MODE_GLOBAL,
        .nvml_memory = {16ul << 30, 600ul << 20, 5ul << 30, 10ul << 30},
    };
    install_driver();
}

/* --- NVML: in place of the product's object, hence all of nvml.h ---------------------------- */

int gos_nvml_open(void)
{
    return fake_gpu.nvml_status;
}

int gos_nvml_device(const uint8_t uuid[16], void **handle)
{
    *handle = &fake_gpu.total_bytes[uuid[0]];
    return fake_gpu.nvml_status;
}

int gos_nvml_memory(void *handle, struct gos_nvml_memory *memory)
{
    (void)handle;
    *memory = fake_gpu.nvml_memory;
    return fake_gpu.nvml_status;
}

int gos_nvml_processes(void *handle, struct gos_nvml_process *processes, size_t *count)
{
    (void)handle;
    memcpy(processes, fake_gpu.nvml_processes, fake_gpu.nvml_process_count * sizeof(*processes));
    *count = fake_gpu.nvml_process_count;
    return fake_gpu.nvml_list_status;
}

int gos_nvml_is_mig(void *handle, bool *is_mig)
{
    (void)handle;
    *is_mig = fake_gpu.mig;
    return fake_gpu.nvml_status;
}

int gos_nvml_bar1(void *handle, uint64_t *total_bytes, uint64_t *used_bytes)
{
    (void)handle;
    *total_bytes = 128ul << 30;
    *used_bytes = 2ul << 20;
    return fake_gpu.nvml_status;
}

int gos_nvml_driver_version(char *buffer, size_t bytes)
{
    strncpy(buffer, "580.159.03", bytes);
    return fake_gpu.nvml_status;
}

void gos_nvml_reset_after_fork(void)
{
}
