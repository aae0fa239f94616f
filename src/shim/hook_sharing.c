/*
 * Memory that somebody else owns: of another process, another device's view of
 * it, another API.  Opening makes a record (IMPORTED, HANDLE) that owns no
 * bytes; closing takes it away.
 */
#include "call.h"

#include "../cuda/driver.h"
#include "../track/shares.h"
#include "../track/unwind.h"
#include "../track/vmm.h"

/* --- IPC ------------------------------------------------------------------------------------- */

/* A handle that is opened again gives the same address, and is closed as often. */
static struct gos_shares openings = GOS_SHARES_INIT;

static bool is_open(uint64_t address)
{
    struct gos_allocation found;

    return gos_registry_find(GOS_SPACE_ADDRESS, address, &found) && found.kind == GOS_KIND_IMPORTED;
}

static uint64_t range_bytes(CUdeviceptr address)
{
    CUdeviceptr base;
    size_t bytes = 0;

    if (!gos_driver.cuMemGetAddressRange ||
        gos_driver.cuMemGetAddressRange(&base, &bytes, address) != CUDA_SUCCESS)
        return 0;
    return bytes;
}

static CUresult opened(struct gos_call *call, CUresult result, const CUdeviceptr *pointer)
{
    if (result != CUDA_SUCCESS || !pointer || !gos_call_tracks())
        return gos_call_done(call, result);
    if (is_open(*pointer)) {
        gos_shares_add(&openings, *pointer);
        return gos_call_done(call, result);
    }
    call->bytes = range_bytes(*pointer);
    return gos_call_made(call, result, *pointer);
}

CUresult CUDAAPI cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle,
                                       unsigned int Flags)
{
    struct gos_call call = gos_call_begin(GOS_EP_cuIpcOpenMemHandle_v2, GOS_KIND_IMPORTED, 0);
    CUresult result;

    do
        result = GOS_REAL(cuIpcOpenMemHandle_v2)(pdptr, handle, Flags);
    while (gos_call_again(&call, result));
    return opened(&call, result, pdptr);
}

CUresult CUDAAPI cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
    struct gos_call call = gos_call_begin(GOS_EP_cuIpcOpenMemHandle, GOS_KIND_IMPORTED, 0);
    CUresult result;

    do
        result = GOS_REAL(cuIpcOpenMemHandle)(pdptr, handle, Flags);
    while (gos_call_again(&call, result));
    return opened(&call, result, pdptr);
}

CUresult CUDAAPI cuIpcCloseMemHandle(CUdeviceptr dptr)
{
    bool stays_open = gos_shim_active() && gos_shares_drop(&openings, dptr);
    struct gos_free free =
        gos_free_begin(GOS_EP_cuIpcCloseMemHandle, GOS_SPACE_ADDRESS, stays_open ? 0 : dptr);
    CUresult result = gos_free_end(&free, GOS_REAL(cuIpcCloseMemHandle)(dptr));

    if (result != CUDA_SUCCESS && stays_open)
        gos_shares_add(&openings, dptr);
    return result;
}

CUresult CUDAAPI cuMemPoolImportPointer(CUdeviceptr *ptr_out, CUmemoryPool pool,
                                        CUmemPoolPtrExportData *shareData)
{
    struct gos_call call = gos_call_begin(GOS_EP_cuMemPoolImportPointer, GOS_KIND_IMPORTED, 0);
    CUresult result;

    call.pool = (uint64_t)(uintptr_t)pool;
    do
        result = GOS_REAL(cuMemPoolImportPointer)(ptr_out, pool, shareData);
    while (gos_call_again(&call, result));
    return opened(&call, result, ptr_out);
}

/* --- handles --------------------------------------------------------------------------------- */

static uint32_t device_of(CUmemGenericAllocationHandle handle)
{
    CUmemAllocationProp prop;

    if (!gos_driver.cuMemGetAllocationPropertiesFromHandle ||
        gos_driver.cuMemGetAllocationPropertiesFromHandle(&prop, handle) != CUDA_SUCCESS ||
        prop.location.type != CU_MEM_LOCATION_TYPE_DEVICE || prop.location.id < 0 ||
        prop.location.id >= GOS_DEVICE_MAX)
        return GOS_DEVICE_HOST;
    return (uint32_t)prop.location.id;
}

static struct gos_allocation handle_record(CUmemGenericAllocationHandle handle, uint64_t bytes,
                                           uint32_t device)
{
    return (struct gos_allocation){.address = handle,
                                   .bytes = bytes,
                                   .kind = GOS_KIND_HANDLE,
                                   .device = device,
                                   .site = gos_unwind_site()};
}

CUresult CUDAAPI cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
                                                void *osHandle,
                                                CUmemAllocationHandleType shHandleType)
{
    struct gos_call call =
        gos_call_begin(GOS_EP_cuMemImportFromShareableHandle, GOS_KIND_HANDLE, 0);
    CUresult result;

    do
        result = GOS_REAL(cuMemImportFromShareableHandle)(handle, osHandle, shHandleType);
    while (gos_call_again(&call, result));
    if (result == CUDA_SUCCESS && handle && gos_call_tracks()) {
        gos_thread.depth++;
        struct gos_allocation record = handle_record(*handle, 0, device_of(*handle));
        gos_vmm_imported(&record);
        gos_thread.depth--;
    }
    return gos_call_done(&call, result);
}

/* One address on several devices; the memory behind it is bound later, and has its own records. */
CUresult CUDAAPI cuMulticastCreate(CUmemGenericAllocationHandle *mcHandle,
                                   const CUmulticastObjectProp *prop)
{
    struct gos_call call =
        gos_call_begin(GOS_EP_cuMulticastCreate, GOS_KIND_HANDLE, prop ? prop->size : 0);
    CUresult result;

    do
        result = GOS_REAL(cuMulticastCreate)(mcHandle, prop);
    while (gos_call_again(&call, result));
    if (result == CUDA_SUCCESS && mcHandle && gos_call_tracks()) {
        gos_thread.depth++;
        struct gos_allocation record = handle_record(*mcHandle, call.bytes, GOS_DEVICE_HOST);
        gos_vmm_created(&record);
        gos_thread.depth--;
    }
    return gos_call_done(&call, result);
}

/* --- memory of other APIs --------------------------------------------------------------------- */

CUresult CUDAAPI cuImportExternalMemory(CUexternalMemory *extMem_out,
                                        const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *memHandleDesc)
{
    struct gos_call call = gos_call_begin(GOS_EP_cuImportExternalMemory, GOS_KIND_HANDLE,
                                          memHandleDesc ? memHandleDesc->size : 0);
    CUresult result;

    do
        result = GOS_REAL(cuImportExternalMemory)(extMem_out, memHandleDesc);
    while (gos_call_again(&call, result));
    return gos_call_made(
        &call, result, result == CUDA_SUCCESS && extMem_out ? (uint64_t)(uintptr_t)*extMem_out : 0);
}

CUresult CUDAAPI cuDestroyExternalMemory(CUexternalMemory extMem)
{
    struct gos_free free = gos_free_begin(GOS_EP_cuDestroyExternalMemory, GOS_SPACE_HANDLE,
                                          (uint64_t)(uintptr_t)extMem);

    return gos_free_end(&free, GOS_REAL(cuDestroyExternalMemory)(extMem));
}

/* Freed by cuMemFree. */
CUresult CUDAAPI cuExternalMemoryGetMappedBuffer(CUdeviceptr *devPtr, CUexternalMemory extMem,
                                                 const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *bufferDesc)
{
    struct gos_call call = gos_call_begin(GOS_EP_cuExternalMemoryGetMappedBuffer, GOS_KIND_IMPORTED,
                                          bufferDesc ? bufferDesc->size : 0);
    CUresult result;

    do
        result = GOS_REAL(cuExternalMemoryGetMappedBuffer)(devPtr, extMem, bufferDesc);
    while (gos_call_again(&call, result));
    return gos_call_made(&call, result, result == CUDA_SUCCESS && devPtr ? *devPtr : 0);
}

/* Freed by cuMipmappedArrayDestroy; an array without bytes of its own. */
CUresult CUDAAPI
cuExternalMemoryGetMappedMipmappedArray(CUmipmappedArray *mipmap, CUexternalMemory extMem,
                                        const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *mipmapDesc)
{
    struct gos_call call =
        gos_call_begin(GOS_EP_cuExternalMemoryGetMappedMipmappedArray, GOS_KIND_ARRAY, 0);
    CUresult result;

    do
        result = GOS_REAL(cuExternalMemoryGetMappedMipmappedArray)(mipmap, extMem, mipmapDesc);
    while (gos_call_again(&call, result));
    return gos_call_made(&call, result,
                         result == CUDA_SUCCESS && mipmap ? (uint64_t)(uintptr_t)*mipmap : 0);
}
