/* Attributes of pointers, and the driver's log callbacks. */

#include <string.h>

#include "sim_call.h"
#include "sim_context.h"
#include "sim_range.h"

static bool is_on_host(const struct sim_range *range)
{
    return range->kind == SIM_HOST || range->kind == SIM_REGISTERED;
}

/* Writes one attribute; the caller's variable has the attribute's own type. */
static CUresult read_attribute(void *out, CUpointer_attribute attribute,
                               const struct sim_range *range, CUdeviceptr address)
{
    switch ((int)attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)out = range->context;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)out = is_on_host(range) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)out = address;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!is_on_host(range) && range->kind != SIM_MANAGED)
            return CUDA_ERROR_INVALID_VALUE;
        *(void **)out = (void *)(uintptr_t)address;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *(unsigned long long *)out = range->id;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)out = range->kind == SIM_MANAGED;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(unsigned *)out = 1;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        *(unsigned *)out = range->kind == SIM_LINEAR || range->kind == SIM_PIECE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)out = range->device;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)out = range->base;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)out = (size_t)range->bytes;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

static CUresult get_one(void *out, CUpointer_attribute attribute, CUdeviceptr address)
{
    const struct sim_range *range = sim_range_find(address);
    if (out == NULL || range == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    return read_attribute(out, attribute, range, address);
}

static size_t size_of(CUpointer_attribute attribute)
{
    switch ((int)attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        return sizeof(int);
    default:
        return sizeof(void *);
    }
}

/* Unlike the single query, this one succeeds for unknown pointers and gives zeros. */
static CUresult get_many(unsigned count, const CUpointer_attribute *attributes, void **out,
                         CUdeviceptr address)
{
    const struct sim_range *range = sim_range_find(address);
    for (unsigned i = 0; i < count; i++) {
        memset(out[i], 0, size_of(attributes[i]));
        if (range != NULL)
            (void)read_attribute(out[i], attributes[i], range, address);
    }
    return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *out, CUpointer_attribute attribute, CUdeviceptr address)
{
    return SIM_CALL(cuPointerGetAttribute, SIM_READY, get_one(out, attribute, address));
}

CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes, void **out,
                                CUdeviceptr address)
{
    return SIM_CALL(cuPointerGetAttributes, SIM_READY, get_many(count, attributes, out, address));
}

CUresult cuLogsRegisterCallback(CUlogsCallback function, void *user_data,
                                CUlogsCallbackHandle *handle)
{
    (void)function;
    (void)user_data;
    (void)handle;
    return SIM_CALL(cuLogsRegisterCallback, SIM_ANYTIME, CUDA_ERROR_NOT_SUPPORTED);
}

CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle handle)
{
    (void)handle;
    return SIM_CALL(cuLogsUnregisterCallback, SIM_ANYTIME, CUDA_ERROR_NOT_SUPPORTED);
}
