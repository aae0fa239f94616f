/*
 * Memory handles for other processes.  A handle says whose memory it is; opening
 * it maps memory of its own that takes no device memory.  Contents are not
 * shared.  A process cannot open its own handles (201) [H200].
 */

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "sim_call.h"
#include "sim_context.h"
#include "sim_memory.h"

#define HANDLE_MAGIC 0x47495043u

struct ipc_handle {
    uint32_t magic;
    int32_t pid;
    uint64_t base, bytes;
    int32_t device;
};

_Static_assert(sizeof(struct ipc_handle) <= sizeof(CUipcMemHandle), "fits into the handle");

/* Only cuMemAlloc's memory; a pool's has to go through its pool [H200]. */
static CUresult get(CUipcMemHandle *out, CUdeviceptr address)
{
    const struct sim_range *range = sim_range_find(address);
    if (out == NULL || range == NULL || (range->kind != SIM_LINEAR && range->kind != SIM_PIECE))
        return CUDA_ERROR_INVALID_VALUE;
    struct ipc_handle handle = {HANDLE_MAGIC, (int32_t)getpid(), range->base, range->bytes,
                                range->device};
    memset(out, 0, sizeof(*out));
    memcpy(out, &handle, sizeof(handle));
    return CUDA_SUCCESS;
}

static CUresult open_range(CUdeviceptr *out, const struct ipc_handle *handle)
{
    uint64_t rounded = sim_round_up(handle->bytes, SIM_BLOCK_BYTES);
    uint64_t base = sim_space_map(rounded, true);
    struct sim_range *range =
        base != 0 ? sim_range_add(SIM_OPENED, base, handle->bytes, handle->device) : NULL;
    if (range == NULL) {
        sim_space_unmap(base, base != 0 ? rounded : 0);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    range->mapped_bytes = rounded;
    range->context = sim_context_current();
    *out = base;
    return CUDA_SUCCESS;
}

static CUresult open_handle(CUdeviceptr *out, CUipcMemHandle opaque, unsigned flags)
{
    struct ipc_handle handle;
    memcpy(&handle, &opaque, sizeof(handle));
    if (out == NULL || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS || handle.magic != HANDLE_MAGIC)
        return CUDA_ERROR_INVALID_VALUE;
    if (handle.pid == (int32_t)getpid())
        return CUDA_ERROR_INVALID_CONTEXT;
    if (kill(handle.pid, 0) != 0 && errno == ESRCH)
        return CUDA_ERROR_MAP_FAILED;
    return open_range(out, &handle);
}

static CUresult close_handle(CUdeviceptr address)
{
    struct sim_range *range = sim_range_at(address);
    if (range == NULL || range->kind != SIM_OPENED)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_give(range);
    return CUDA_SUCCESS;
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address)
{
    return SIM_CALL(cuIpcGetMemHandle, SIM_CONTEXT, get(handle, address));
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *address, CUipcMemHandle handle, unsigned int flags)
{
    return SIM_CALL(cuIpcOpenMemHandle, SIM_CONTEXT, open_handle(address, handle, flags));
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *address, CUipcMemHandle handle, unsigned int flags)
{
    return SIM_CALL(cuIpcOpenMemHandle_v2, SIM_CONTEXT, open_handle(address, handle, flags));
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address)
{
    return SIM_CALL(cuIpcCloseMemHandle, SIM_CONTEXT, close_handle(address));
}
