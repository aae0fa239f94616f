/*
 * Copies and fills.  They really move the bytes, in stream order; a device
 * address must be one that the driver knows.
 */

#include <string.h>

#include "sim_call.h"
#include "sim_context.h"
#include "sim_graph.h"
#include "sim_range.h"
#include "sim_stream.h"

struct transfer {
    void *target;
    const void *source; /* NULL: fill */
    size_t bytes;
    uint32_t value;
    unsigned width; /* of the value */
};

static void perform(void *argument)
{
    const struct transfer *transfer = argument;
    if (transfer->source != NULL) {
        memmove(transfer->target, transfer->source, transfer->bytes);
        return;
    }
    if (transfer->width == 1) {
        memset(transfer->target, (int)transfer->value, transfer->bytes);
        return;
    }
    uint32_t *words = transfer->target;
    for (size_t i = 0; i < transfer->bytes / sizeof(*words); i++)
        words[i] = transfer->value;
}

static bool is_inside(uint64_t address, uint64_t bytes)
{
    const struct sim_range *range = sim_range_find(address);
    return range != NULL && bytes <= range->bytes - (address - range->base);
}

static void *host(CUdeviceptr address)
{
    return (void *)(uintptr_t)address;
}

static CUresult issue(CUstream stream, struct transfer transfer)
{
    if (stream == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (transfer.bytes == 0)
        return CUDA_SUCCESS;
    if (stream->capture != NULL)
        return sim_capture_work(stream, transfer.source != NULL ? CU_GRAPH_NODE_TYPE_MEMCPY
                                                                : CU_GRAPH_NODE_TYPE_MEMSET);
    return sim_stream_do(stream, perform, &transfer, sizeof(transfer));
}

/* Device sides are named in the flags; the rest is host memory and taken on trust. */
enum { FROM_DEVICE = 1, TO_DEVICE = 2, ANYWHERE = 0 };

static CUresult copy(CUstream stream, uint64_t target, uint64_t source, size_t bytes,
                     unsigned sides)
{
    if (bytes != 0 && (((sides & TO_DEVICE) != 0 && !is_inside(target, bytes)) ||
                       ((sides & FROM_DEVICE) != 0 && !is_inside(source, bytes))))
        return CUDA_ERROR_INVALID_VALUE;
    return issue(stream,
                 (struct transfer){.target = host(target), .source = host(source), .bytes = bytes});
}

/* Waits without observing: a synchronous copy is no synchronization for pools [H200]. */
static void wait_done(CUstream stream)
{
    uint64_t ticket = stream->issued;
    while (!sim_stream_reached(stream, ticket))
        sim_wait_for_progress();
}

static CUresult copy_now(CUstream stream, uint64_t target, uint64_t source, size_t bytes,
                         unsigned sides)
{
    CUresult result = copy(stream, target, source, bytes, sides);
    if (result == CUDA_SUCCESS && stream->capture == NULL)
        wait_done(stream);
    return result;
}

static CUresult fill(CUstream stream, CUdeviceptr target, uint32_t value, unsigned width,
                     size_t count)
{
    size_t bytes = count * width;
    if (count != 0 && !is_inside(target, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    return issue(
        stream,
        (struct transfer){.target = host(target), .bytes = bytes, .value = value, .width = width});
}

static uint64_t number(const void *address)
{
    return (uint64_t)(uintptr_t)address;
}

#define STREAM(handle) sim_stream_find(handle, per_thread)

SIM_TWO_CALLS(cuMemcpy, ptds, (CUdeviceptr target, CUdeviceptr source, size_t bytes), SIM_CONTEXT,
              copy_now(STREAM(NULL), target, source, bytes, ANYWHERE))
SIM_TWO_CALLS(cuMemcpyHtoD_v2, ptds, (CUdeviceptr target, const void *source, size_t bytes),
              SIM_CONTEXT, copy_now(STREAM(NULL), target, number(source), bytes, TO_DEVICE))
SIM_TWO_CALLS(cuMemcpyDtoH_v2, ptds, (void *target, CUdeviceptr source, size_t bytes), SIM_CONTEXT,
              copy_now(STREAM(NULL), number(target), source, bytes, FROM_DEVICE))
SIM_TWO_CALLS(cuMemcpyDtoD_v2, ptds, (CUdeviceptr target, CUdeviceptr source, size_t bytes),
              SIM_CONTEXT, copy_now(STREAM(NULL), target, source, bytes, FROM_DEVICE | TO_DEVICE))
SIM_TWO_CALLS(cuMemcpyAsync, ptsz,
              (CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream), SIM_CONTEXT,
              copy(STREAM(stream), target, source, bytes, ANYWHERE))
SIM_TWO_CALLS(cuMemcpyHtoDAsync_v2, ptsz,
              (CUdeviceptr target, const void *source, size_t bytes, CUstream stream), SIM_CONTEXT,
              copy(STREAM(stream), target, number(source), bytes, TO_DEVICE))
SIM_TWO_CALLS(cuMemcpyDtoHAsync_v2, ptsz,
              (void *target, CUdeviceptr source, size_t bytes, CUstream stream), SIM_CONTEXT,
              copy(STREAM(stream), number(target), source, bytes, FROM_DEVICE))
SIM_TWO_CALLS(cuMemcpyDtoDAsync_v2, ptsz,
              (CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream), SIM_CONTEXT,
              copy(STREAM(stream), target, source, bytes, FROM_DEVICE | TO_DEVICE))
SIM_TWO_CALLS(cuMemsetD8_v2, ptds, (CUdeviceptr target, unsigned char value, size_t count),
              SIM_CONTEXT, fill(STREAM(NULL), target, value, 1, count))
SIM_TWO_CALLS(cuMemsetD32_v2, ptds, (CUdeviceptr target, unsigned int value, size_t count),
              SIM_CONTEXT, fill(STREAM(NULL), target, value, 4, count))
SIM_TWO_CALLS(cuMemsetD8Async, ptsz,
              (CUdeviceptr target, unsigned char value, size_t count, CUstream stream), SIM_CONTEXT,
              fill(STREAM(stream), target, value, 1, count))
SIM_TWO_CALLS(cuMemsetD32Async, ptsz,
              (CUdeviceptr target, unsigned int value, size_t count, CUstream stream), SIM_CONTEXT,
              fill(STREAM(stream), target, value, 4, count))
