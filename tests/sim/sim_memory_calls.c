/* Entry points of cuMemAlloc, cuMemAllocPitch, cuMemFree and cuMemGetInfo. */

#include "sim_call.h"
#include "sim_capacity.h"
#include "sim_context.h"
#include "sim_graph.h"
#include "sim_memory.h"
#include "sim_stream.h"
#include "sim_zero_cost.h"

#define PITCH_BYTES 512u

/* Running out of memory writes NULL, as for every allocation function [H200]. */
static CUresult allocate(CUdeviceptr *out, uint64_t bytes)
{
    if (out == NULL || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    *out = 0;
    struct sim_range *range = sim_memory_take(bytes);
    if (range == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *out = range->base;
    return CUDA_SUCCESS;
}

/* The first ABI had 32-bit pointers; what does not fit is out of memory. */
static CUresult allocate_narrow(CUdeviceptr_v1 *out, unsigned bytes)
{
    CUdeviceptr wide = 0;
    CUresult result = allocate(&wide, bytes);
    if (result == CUDA_SUCCESS)
        *out = (CUdeviceptr_v1)wide;
    return result;
}

static bool is_element(unsigned bytes)
{
    return bytes == 4 || bytes == 8 || bytes == 16;
}

static CUresult allocate_pitch(CUdeviceptr *out, size_t *pitch, uint64_t width, uint64_t height,
                               unsigned element)
{
    if (pitch == NULL || width == 0 || height == 0 || !is_element(element))
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t row = sim_round_up(width, PITCH_BYTES);
    CUresult result =
        allocate(out, row >= width && row <= UINT64_MAX / height ? row * height : UINT64_MAX);
    if (result == CUDA_SUCCESS)
        *pitch = (size_t)row;
    return result;
}

static CUresult allocate_pitch_narrow(CUdeviceptr_v1 *out, unsigned *pitch, unsigned width,
                                      unsigned height, unsigned element)
{
    CUdeviceptr wide = 0;
    size_t row = 0;
    CUresult result = allocate_pitch(&wide, &row, width, height, element);
    if (result == CUDA_SUCCESS) {
        *out = (CUdeviceptr_v1)wide;
        *pitch = (unsigned)row;
    }
    return result;
}

static bool is_freeable(const struct sim_range *range)
{
    return range != NULL && (range->kind <= SIM_GRAPH_OWNED || range->kind == SIM_MANAGED);
}

/* NULL is fine even without a context [H200]. */
static void wait_for_work(void)
{
    if (!sim_settings.free_waits)
        return;
    sim_be_alone(true);
    sim_streams_synchronize(sim_context_current());
    sim_be_alone(false);
}

static CUresult release(CUdeviceptr address)
{
    struct sim_range *range = sim_range_at(address);
    if (address == 0)
        return CUDA_SUCCESS;
    if (sim_context_current() == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!is_freeable(range) || (range->kind == SIM_GRAPH_OWNED && !sim_graph_node_is_live(range)))
        return CUDA_ERROR_INVALID_VALUE;
    wait_for_work();
    sim_memory_give(range);
    return CUDA_SUCCESS;
}

static CUresult get_info(size_t *free_bytes, size_t *total)
{
    if (free_bytes != NULL)
        *free_bytes = (size_t)sim_capacity_free_bytes(sim_device_current());
    if (total != NULL)
        *total = (size_t)sim_settings.memory_bytes;
    return CUDA_SUCCESS;
}

static unsigned narrow(size_t bytes)
{
    return bytes <= UINT32_MAX ? (unsigned)bytes : UINT32_MAX;
}

static CUresult get_info_narrow(unsigned *free_bytes, unsigned *total)
{
    size_t free_wide = 0;
    size_t total_wide = 0;
    get_info(&free_wide, &total_wide);
    *free_bytes = narrow(free_wide);
    *total = narrow(total_wide);
    return CUDA_SUCCESS;
}

static CUresult get_range(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
    const struct sim_range *range = sim_range_find(address);
    if (range == NULL)
        return CUDA_ERROR_NOT_FOUND;
    if (base != NULL)
        *base = range->base;
    if (bytes != NULL)
        *bytes = (size_t)range->bytes;
    return CUDA_SUCCESS;
}

static CUresult get_range_narrow(CUdeviceptr_v1 *base, unsigned *bytes, CUdeviceptr_v1 address)
{
    CUdeviceptr wide_base = 0;
    size_t wide_bytes = 0;
    CUresult result = get_range(&wide_base, &wide_bytes, address);
    if (result == CUDA_SUCCESS) {
        *base = (CUdeviceptr_v1)wide_base;
        *bytes = narrow(wide_bytes);
    }
    return result;
}

CUresult cuMemAlloc(CUdeviceptr_v1 *address, unsigned int bytes)
{
    return SIM_CALL(cuMemAlloc, SIM_UNSAFE, allocate_narrow(address, bytes));
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    if (sim_settings.zero_cost)
        return sim_zero_cost_take(address, bytes);
    return SIM_CALL(cuMemAlloc_v2, SIM_UNSAFE, allocate(address, bytes));
}

CUresult cuMemAllocPitch(CUdeviceptr_v1 *address, unsigned int *pitch, unsigned int width,
                         unsigned int height, unsigned int element)
{
    return SIM_CALL(cuMemAllocPitch, SIM_UNSAFE,
                    allocate_pitch_narrow(address, pitch, width, height, element));
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
                            unsigned int element)
{
    return SIM_CALL(cuMemAllocPitch_v2, SIM_UNSAFE,
                    allocate_pitch(address, pitch, width, height, element));
}

CUresult cuMemFree(CUdeviceptr_v1 address)
{
    return SIM_CALL(cuMemFree, SIM_READY | SIM_NO_CAPTURE, release(address));
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
    if (sim_settings.zero_cost)
        return CUDA_SUCCESS;
    return SIM_CALL(cuMemFree_v2, SIM_READY | SIM_NO_CAPTURE, release(address));
}

CUresult cuMemGetInfo(unsigned int *free_bytes, unsigned int *total)
{
    return SIM_CALL(cuMemGetInfo, SIM_CONTEXT, get_info_narrow(free_bytes, total));
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    return SIM_CALL(cuMemGetInfo_v2, SIM_CONTEXT, get_info(free_bytes, total));
}

CUresult cuMemGetAddressRange(CUdeviceptr_v1 *base, unsigned int *bytes, CUdeviceptr_v1 address)
{
    return SIM_CALL(cuMemGetAddressRange, SIM_CONTEXT, get_range_narrow(base, bytes, address));
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
    return SIM_CALL(cuMemGetAddressRange_v2, SIM_CONTEXT, get_range(base, bytes, address));
}
