#include "sim_host.h"

#include <stdio.h>
#include <string.h>

#include "sim_call.h"
#include "sim_context.h"
#include "sim_memory.h"

#define PAGE_BYTES 4096u

static uint64_t pinned_bytes;

static uint64_t read_available_bytes(void)
{
    char line[128];
    unsigned long long kib = 0;
    FILE *file = fopen("/proc/meminfo", "re");
    if (file == NULL)
        return UINT64_MAX;
    while (fgets(line, sizeof(line), file) != NULL)
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
            break;
    fclose(file);
    return (uint64_t)kib << 10;
}

/* Pinned pages are only reserved here, so what is pinned already is still "available". */
static bool has_room(uint64_t bytes)
{
    uint64_t limit =
        sim_settings.host_bytes != 0 ? sim_settings.host_bytes : read_available_bytes();
    return bytes <= limit && pinned_bytes <= limit - bytes;
}

static struct sim_range *map(enum sim_kind kind, uint64_t bytes)
{
    uint64_t rounded = bytes <= UINT64_MAX - PAGE_BYTES ? sim_round_up(bytes, PAGE_BYTES) : 0;
    uint64_t base = sim_space_map(rounded, true);
    struct sim_range *range =
        base != 0 ? sim_range_add(kind, base, bytes, sim_device_current()) : NULL;
    if (range == NULL) {
        sim_space_unmap(base, base != 0 ? rounded : 0);
        return NULL;
    }
    range->mapped_bytes = rounded;
    range->context = sim_context_current();
    return range;
}

static CUresult allocate(void **out, uint64_t bytes, unsigned flags)
{
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = NULL;
    if (bytes == 0)
        return CUDA_SUCCESS;
    struct sim_range *range = has_room(bytes) ? map(SIM_HOST, bytes) : NULL;
    if (range == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pinned_bytes += bytes;
    range->flags = flags;
    *out = (void *)(uintptr_t)range->base;
    return CUDA_SUCCESS;
}

static CUresult allocate_managed(CUdeviceptr *out, uint64_t bytes, unsigned flags)
{
    if (out == NULL || bytes == 0 || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    *out = 0;
    struct sim_range *range = map(SIM_MANAGED, bytes);
    if (range == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *out = range->base;
    return CUDA_SUCCESS;
}

void sim_host_give(const struct sim_range *range)
{
    if (range->kind == SIM_HOST || range->kind == SIM_REGISTERED)
        pinned_bytes -= range->bytes;
    if (range->kind != SIM_REGISTERED)
        sim_space_unmap(range->base, range->mapped_bytes);
}

static CUresult release(void *address)
{
    struct sim_range *range = sim_range_at((uint64_t)(uintptr_t)address);
    if (address == NULL)
        return CUDA_SUCCESS;
    if (range == NULL || range->kind != SIM_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_give(range);
    return CUDA_SUCCESS;
}

/* The zero page is nobody's; other addresses are taken on trust. */
static CUresult register_memory(void *address, uint64_t bytes, unsigned flags)
{
    uint64_t base = (uint64_t)(uintptr_t)address;
    const struct sim_range *other = sim_range_find(base);
    if (bytes == 0 || base < 2 * (uint64_t)PAGE_BYTES)
        return CUDA_ERROR_INVALID_VALUE;
    if (other != NULL)
        return other->kind == SIM_REGISTERED ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
                                             : CUDA_ERROR_INVALID_VALUE;
    struct sim_range *range =
        has_room(bytes) ? sim_range_add(SIM_REGISTERED, base, bytes, sim_device_current()) : NULL;
    if (range == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    range->flags = flags;
    range->context = sim_context_current();
    pinned_bytes += bytes;
    return CUDA_SUCCESS;
}

static CUresult unregister_memory(void *address)
{
    struct sim_range *range = sim_range_at((uint64_t)(uintptr_t)address);
    if (range == NULL || range->kind != SIM_REGISTERED)
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    sim_memory_give(range);
    return CUDA_SUCCESS;
}

static bool is_host(const struct sim_range *range)
{
    return range != NULL && (range->kind == SIM_HOST || range->kind == SIM_REGISTERED);
}

static CUresult get_device_pointer(CUdeviceptr *out, void *address)
{
    if (out == NULL || !is_host(sim_range_find((uint64_t)(uintptr_t)address)))
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUdeviceptr)(uintptr_t)address;
    return CUDA_SUCCESS;
}

static CUresult get_flags(unsigned *flags, void *address)
{
    const struct sim_range *range = sim_range_find((uint64_t)(uintptr_t)address);
    if (!is_host(range))
        return CUDA_ERROR_INVALID_VALUE;
    *flags = range->flags;
    return CUDA_SUCCESS;
}

CUresult cuMemAllocHost(void **address, unsigned int bytes)
{
    return SIM_CALL(cuMemAllocHost, SIM_UNSAFE, allocate(address, bytes, 0));
}

CUresult cuMemAllocHost_v2(void **address, size_t bytes)
{
    return SIM_CALL(cuMemAllocHost_v2, SIM_UNSAFE, allocate(address, bytes, 0));
}

CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned int flags)
{
    return SIM_CALL(cuMemHostAlloc, SIM_UNSAFE, allocate(address, bytes, flags));
}

CUresult cuMemFreeHost(void *address)
{
    return SIM_CALL(cuMemFreeHost, SIM_CONTEXT, release(address));
}

CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned int flags)
{
    return SIM_CALL(cuMemAllocManaged, SIM_UNSAFE, allocate_managed(address, bytes, flags));
}

CUresult cuMemHostRegister(void *address, size_t bytes, unsigned int flags)
{
    return SIM_CALL(cuMemHostRegister, SIM_CONTEXT, register_memory(address, bytes, flags));
}

CUresult cuMemHostRegister_v2(void *address, size_t bytes, unsigned int flags)
{
    return SIM_CALL(cuMemHostRegister_v2, SIM_CONTEXT, register_memory(address, bytes, flags));
}

CUresult cuMemHostUnregister(void *address)
{
    return SIM_CALL(cuMemHostUnregister, SIM_CONTEXT, unregister_memory(address));
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr_v1 *out, void *address, unsigned int flags)
{
    (void)out;
    (void)address;
    (void)flags;
    return SIM_CALL(cuMemHostGetDevicePointer, SIM_CONTEXT, CUDA_ERROR_NOT_SUPPORTED);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *address, unsigned int flags)
{
    (void)flags;
    return SIM_CALL(cuMemHostGetDevicePointer_v2, SIM_CONTEXT, get_device_pointer(out, address));
}

CUresult cuMemHostGetFlags(unsigned int *flags, void *address)
{
    return SIM_CALL(cuMemHostGetFlags, SIM_CONTEXT, get_flags(flags, address));
}

SIM_TWO_CALLS(cuMemPrefetchAsync, ptsz,
              (CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream), SIM_CONTEXT,
              ((void)address, (void)bytes, (void)device, (void)stream, CUDA_SUCCESS))
SIM_TWO_CALLS(cuMemPrefetchAsync_v2, ptsz,
              (CUdeviceptr address, size_t bytes, CUmemLocation location, unsigned int flags,
               CUstream stream),
              SIM_CONTEXT,
              ((void)address, (void)bytes, (void)location, (void)flags, (void)stream, CUDA_SUCCESS))
