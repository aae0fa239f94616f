#include "device_state.h"

#include <errno.h>
#include <string.h>

#include "../base/text.h"
#include "../cuda/error.h"
#include "../cuda/nvml.h"
#include "../track/allowance_measure.h"
#include "not_seen.h"

/* CU_DEVICE_ATTRIBUTE_MPS_ENABLED, which CUDA 12.0's headers do not have. */
#define ATTRIBUTE_MPS_ENABLED ((CUdevice_attribute)133)

static bool has_memory(const struct gos_device_evidence *device)
{
    for (int kind = 0; kind < GOS_KIND_COUNT; kind++)
        if (device->live[kind].live_count > 0)
            return true;
    return false;
}

static bool has_primary_context(CUdevice device)
{
    unsigned flags;
    int active = 0;

    return gos_driver.cuDevicePrimaryCtxGetState != NULL &&
           gos_driver.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS &&
           active != 0;
}

/* A first context may be what failed: then the device is read though nothing of ours is there. */
static bool is_asked_of(const struct gos_evidence *evidence,
                        const struct gos_device_evidence *device)
{
    return evidence->request.api != NULL && evidence->request.device == device->ordinal;
}

static void read_name(struct gos_device_evidence *device, CUdevice handle)
{
    char name[sizeof(device->name)] = "";

    if (gos_driver.cuDeviceGetName == NULL ||
        gos_driver.cuDeviceGetName(name, (int)sizeof(name), handle) != CUDA_SUCCESS)
        return;
    name[sizeof(name) - 1] = '\0';
    memcpy(device->name, name, sizeof(name));
}

static bool has_attribute(CUdevice handle, CUdevice_attribute attribute)
{
    int value = 0;

    return gos_driver.cuDeviceGetAttribute != NULL &&
           gos_driver.cuDeviceGetAttribute(&value, attribute, handle) == CUDA_SUCCESS && value != 0;
}

/* An older driver does not know the second one and says so; then it is not set. */
static void read_nature(struct gos_device_evidence *device, CUdevice handle)
{
    device->integrated = has_attribute(handle, CU_DEVICE_ATTRIBUTE_INTEGRATED);
    device->mps = has_attribute(handle, ATTRIBUTE_MPS_ENABLED);
}

/* The newer call gives a MIG instance's own uuid, by which NVML can find it. */
static bool ask_uuid(CUuuid *uuid, CUdevice handle)
{
    if (gos_driver.cuDeviceGetUuid_v2 != NULL &&
        gos_driver.cuDeviceGetUuid_v2(uuid, handle) == CUDA_SUCCESS)
        return true;
    return gos_driver.cuDeviceGetUuid != NULL &&
           gos_driver.cuDeviceGetUuid(uuid, handle) == CUDA_SUCCESS;
}

static void write_uuid(struct gos_text *text, const uint8_t bytes[16])
{
    gos_text_put(text, "GPU-");
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            gos_text_char(text, '-');
        gos_text_format(text, "%02x", bytes[i]);
    }
}

static void read_uuid(struct gos_device_evidence *device, CUdevice handle,
                      struct gos_device_ids *ids)
{
    struct gos_text text = gos_text_on(device->uuid, sizeof(device->uuid));
    CUuuid uuid;

    if (!ask_uuid(&uuid, handle))
        return;
    memcpy(ids->uuid[device->ordinal], uuid.bytes, sizeof(uuid.bytes));
    ids->uuid_known[device->ordinal] = true;
    write_uuid(&text, ids->uuid[device->ordinal]);
}

static void read_free(struct gos_evidence *evidence, struct gos_device_evidence *device)
{
    size_t free_bytes = 0, total_bytes = 0;
    CUresult result = gos_driver.cuMemGetInfo != NULL
                          ? gos_driver.cuMemGetInfo(&free_bytes, &total_bytes)
                          : CUDA_ERROR_NOT_FOUND;

    device->driver_known = result == CUDA_SUCCESS;
    if (device->driver_known) {
        device->driver_free_bytes = free_bytes;
        device->driver_total_bytes = total_bytes;
    } else {
        gos_evidence_incomplete_format(evidence, "GPU %d: free memory (cuMemGetInfo: %s)",
                                       device->ordinal, gos_cuda_error_name((int)result));
    }
}

/* The total can be had without a context; the free bytes cannot. */
static void read_total(struct gos_device_evidence *device, CUdevice handle)
{
    size_t total_bytes = 0;

    if (gos_driver.cuDeviceTotalMem != NULL &&
        gos_driver.cuDeviceTotalMem(&total_bytes, handle) == CUDA_SUCCESS)
        device->driver_total_bytes = total_bytes;
}

static void read_memory(struct gos_evidence *evidence, struct gos_device_evidence *device,
                        CUdevice handle, uint64_t context)
{
    struct gos_contexts_visit visit;

    if (gos_contexts_enter(&visit, context)) {
        read_free(evidence, device);
        gos_contexts_leave(&visit);
    } else {
        gos_evidence_incomplete_format(
            evidence, "GPU %d: free memory by the driver (no context of it can be used here)",
            device->ordinal);
    }
    if (!device->driver_known)
        read_total(device, handle);
}

/* The device is seen as the process sees it; what the limit keeps away has its own line. */
static void withhold(struct gos_device_evidence *device)
{
    uint32_t ordinal = (uint32_t)device->ordinal;
    uint64_t used_bytes, left_bytes;

    device->limit_bytes = gos_allowance_limit(ordinal);
    if (device->limit_bytes == 0 || !device->driver_known)
        return;
    gos_allowance_measure(ordinal);
    used_bytes = gos_allowance_used(ordinal);
    left_bytes = used_bytes < device->limit_bytes ? device->limit_bytes - used_bytes : 0;
    if (device->driver_free_bytes <= left_bytes)
        return;
    device->withheld_bytes = device->driver_free_bytes - left_bytes;
    device->driver_free_bytes = left_bytes;
}

static void read_device(struct gos_evidence *evidence, struct gos_device_evidence *device,
                        const struct gos_contexts *contexts, struct gos_device_ids *ids)
{
    uint64_t context = gos_contexts_of(contexts, (uint32_t)device->ordinal);
    CUdevice handle;

    device->context_count = gos_contexts_count(contexts, (uint32_t)device->ordinal);
    if (gos_driver.cuDeviceGet == NULL ||
        gos_driver.cuDeviceGet(&handle, device->ordinal) != CUDA_SUCCESS)
        return;
    device->unused = context == 0 && !has_memory(device) && !has_primary_context(handle);
    device->own_bytes_known = device->unused; /* they are none */
    device->present = !device->unused || is_asked_of(evidence, device);
    if (!device->present)
        return;
    read_name(device, handle);
    read_uuid(device, handle, ids);
    read_nature(device, handle);
    read_memory(evidence, device, handle, context);
    withhold(device);
}

static uint32_t count_devices(struct gos_evidence *evidence)
{
    int count = 0;
    CUresult result = gos_driver.cuDeviceGetCount != NULL ? gos_driver.cuDeviceGetCount(&count)
                                                          : CUDA_ERROR_NOT_FOUND;

    if (result != CUDA_SUCCESS)
        gos_evidence_incomplete_format(evidence, "GPUs (the driver does not answer: %s)",
                                       gos_cuda_error_name((int)result));
    if (result != CUDA_SUCCESS || count < 0)
        return 0;
    if (count > GOS_DEVICE_MAX)
        gos_evidence_incomplete_format(evidence, "GPUs beyond the first %d", GOS_DEVICE_MAX);
    return count > GOS_DEVICE_MAX ? GOS_DEVICE_MAX : (uint32_t)count;
}

void gos_device_state_driver(struct gos_evidence *evidence, const struct gos_contexts *contexts,
                             struct gos_device_ids *ids)
{
    if (gos_driver.cuDriverGetVersion != NULL &&
        gos_driver.cuDriverGetVersion(&evidence->driver_version) != CUDA_SUCCESS)
        evidence->driver_version = 0;
    evidence->device_count = count_devices(evidence);
    for (uint32_t ordinal = 0; ordinal < evidence->device_count; ordinal++) {
        evidence->devices[ordinal].ordinal = (int)ordinal;
        read_device(evidence, &evidence->devices[ordinal], contexts, ids);
    }
}

static uint64_t graph_attribute(CUdevice handle, CUgraphMem_attribute attribute)
{
    cuuint64_t value = 0;

    if (gos_driver.cuDeviceGetGraphMemAttribute == NULL ||
        gos_driver.cuDeviceGetGraphMemAttribute(handle, attribute, &value) != CUDA_SUCCESS)
        return 0;
    return value;
}

void gos_device_state_graphs(struct gos_evidence *evidence)
{
    for (uint32_t ordinal = 0; ordinal < evidence->device_count; ordinal++) {
        struct gos_device_evidence *device = &evidence->devices[ordinal];
        CUdevice handle;

        if (!device->present || device->unused ||
            gos_driver.cuDeviceGet(&handle, (int)ordinal) != CUDA_SUCCESS)
            continue;
        device->graph_reserved_bytes =
            graph_attribute(handle, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT);
        device->graph_used_bytes = graph_attribute(handle, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT);
    }
}

static int read_nvml(struct gos_device_evidence *device, struct gos_device_ids *ids)
{
    struct gos_nvml_memory memory = {0};
    int status;

    if (!ids->uuid_known[device->ordinal])
        return -ENOENT;
    status = gos_nvml_device(ids->uuid[device->ordinal], &ids->nvml[device->ordinal]);
    if (status != 0)
        ids->nvml[device->ordinal] = NULL;
    if (status == 0)
        status = gos_nvml_memory(ids->nvml[device->ordinal], &memory);
    if (status != 0)
        return status;
    device->nvml_total_bytes = memory.total_bytes;
    device->nvml_reserved_bytes = memory.reserved_bytes;
    device->nvml_free_bytes = memory.free_bytes;
    device->nvml_used_bytes = memory.used_bytes;
    (void)gos_nvml_is_mig(ids->nvml[device->ordinal], &device->mig);
    if (device->mig)
        memcpy(device->uuid, "MIG", 3);
    device->bar1_known = gos_nvml_bar1(ids->nvml[device->ordinal], &device->bar1_total_bytes,
                                       &device->bar1_used_bytes) == 0;
    return 0;
}

void gos_device_state_nvml(struct gos_evidence *evidence, struct gos_device_ids *ids)
{
    for (uint32_t ordinal = 0; ordinal < evidence->device_count; ordinal++) {
        struct gos_device_evidence *device = &evidence->devices[ordinal];

        if (!device->present)
            continue;
        device->nvml_status = read_nvml(device, ids);
        gos_not_seen_nvml(evidence, device);
    }
}

static int free_by_nvml(int ordinal, uint64_t *bytes)
{
    struct gos_nvml_memory memory = {0};
    CUdevice handle;
    CUuuid uuid;
    void *nvml;
    int status;

    if (gos_driver.cuDeviceGet == NULL ||
        gos_driver.cuDeviceGet(&handle, ordinal) != CUDA_SUCCESS || !ask_uuid(&uuid, handle))
        return -ENOENT;
    status = gos_nvml_device((const uint8_t *)uuid.bytes, &nvml);
    if (status == 0)
        status = gos_nvml_memory(nvml, &memory);
    *bytes = memory.free_bytes;
    return status;
}

int gos_device_state_free(int ordinal, uint64_t *bytes)
{
    CUdevice current = -1;

    if (gos_driver.cuCtxGetDevice == NULL || gos_driver.cuCtxGetDevice(&current) != CUDA_SUCCESS ||
        current != ordinal)
        return free_by_nvml(ordinal, bytes);
    *bytes = gos_driver_free_bytes();
    return 0;
}
