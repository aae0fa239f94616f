/* Entry points that describe devices and the driver. */

#include "sim_device.h"

#include <string.h>

#include "sim_call.h"
#include "sim_context.h"

struct attribute {
    CUdevice_attribute name;
    int value;
};

/* CU_DEVICE_ATTRIBUTE_MPS_ENABLED; CUDA 12.0 does not declare it. */
#define MPS_ENABLED ((CUdevice_attribute)133)

/* What programs ask for before they use the features simulated here. */
static const struct attribute attributes[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
};

static CUresult count(int *out)
{
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = sim_settings.device_count;
    return CUDA_SUCCESS;
}

static CUresult get(CUdevice *out, int ordinal)
{
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = ordinal;
    return sim_device_exists(ordinal) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static CUresult get_name(char *name, int room, CUdevice device)
{
    if (name == NULL || room <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(name, (size_t)room, "%s", SIM_DEVICE_NAME);
    return sim_device_exists(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static CUresult get_uuid(CUuuid *uuid, CUdevice device)
{
    unsigned char bytes[SIM_UUID_BYTES];
    if (uuid == NULL || !sim_device_exists(device))
        return uuid == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
    sim_device_uuid(device, bytes);
    memcpy(uuid->bytes, bytes, sizeof(bytes));
    return CUDA_SUCCESS;
}

static CUresult get_total(size_t *bytes, CUdevice device)
{
    if (bytes == NULL || !sim_device_exists(device))
        return bytes == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
    *bytes = (size_t)sim_settings.memory_bytes;
    return CUDA_SUCCESS;
}

static CUresult get_total_narrow(unsigned *bytes, CUdevice device)
{
    size_t wide = 0;
    CUresult result = get_total(&wide, device);
    if (result == CUDA_SUCCESS)
        *bytes = wide <= UINT32_MAX ? (unsigned)wide : UINT32_MAX;
    return result;
}

static CUresult get_attribute(int *value, CUdevice_attribute name, CUdevice device)
{
    if (value == NULL || !sim_device_exists(device))
        return value == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
    *value = name == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID ? device + 1 : 0;
    if (name == CU_DEVICE_ATTRIBUTE_INTEGRATED)
        *value = sim_settings.integrated;
    if (name == MPS_ENABLED)
        *value = sim_settings.mps_server_pid != 0;
    for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
        if (attributes[i].name == name)
            *value = attributes[i].value;
    return CUDA_SUCCESS;
}

static CUresult get_bus_id(char *text, int room, CUdevice device)
{
    if (text == NULL || room <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    sim_device_bus_id(device, text, (size_t)room);
    return sim_device_exists(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static CUresult find_bus_id(CUdevice *out, const char *text)
{
    char known[16];
    for (int device = 0; device < sim_settings.device_count; device++) {
        sim_device_bus_id(device, known, sizeof(known));
        if (strcmp(known, text) != 0)
            continue;
        *out = device;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

static CUresult get_version(int *version)
{
    if (version == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *version = sim_settings.driver_version;
    return CUDA_SUCCESS;
}

static CUresult can_access(int *can)
{
    *can = 1;
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
    return SIM_CALL(cuDriverGetVersion, SIM_ANYTIME, get_version(version));
}

CUresult cuDeviceGetCount(int *out)
{
    return SIM_CALL(cuDeviceGetCount, SIM_STARTED, count(out));
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    return SIM_CALL(cuDeviceGet, SIM_STARTED, get(device, ordinal));
}

CUresult cuDeviceGetName(char *name, int room, CUdevice device)
{
    return SIM_CALL(cuDeviceGetName, SIM_STARTED, get_name(name, room, device));
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    return SIM_CALL(cuDeviceGetUuid, SIM_STARTED, get_uuid(uuid, device));
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    return SIM_CALL(cuDeviceGetUuid_v2, SIM_STARTED, get_uuid(uuid, device));
}

CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice device)
{
    return SIM_CALL(cuDeviceTotalMem, SIM_STARTED, get_total_narrow(bytes, device));
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    return SIM_CALL(cuDeviceTotalMem_v2, SIM_STARTED, get_total(bytes, device));
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute name, CUdevice device)
{
    return SIM_CALL(cuDeviceGetAttribute, SIM_STARTED, get_attribute(value, name, device));
}

CUresult cuDeviceGetPCIBusId(char *text, int room, CUdevice device)
{
    return SIM_CALL(cuDeviceGetPCIBusId, SIM_STARTED, get_bus_id(text, room, device));
}

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *text)
{
    return SIM_CALL(cuDeviceGetByPCIBusId, SIM_STARTED, find_bus_id(device, text));
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    (void)device;
    (void)peer;
    return SIM_CALL(cuDeviceCanAccessPeer, SIM_STARTED, can_access(can));
}
