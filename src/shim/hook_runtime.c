/* The names that programs linked with libcudart call.  See cudart.h. */
#include "cudart.h"
#include "state.h"

#define CALLER __builtin_return_address(0)

/* The real function of this name, with its type from the header. */
#define FORWARD(mark, symbol) ((__typeof__(&symbol))(mark).real)

cudaError_t CUDARTAPI cudaMalloc(void **devPtr, size_t size)
{
    struct gos_api_mark mark = gos_api_enter(GOS_EP_cudaMalloc, CALLER);
    cudaError_t result = FORWARD(mark, cudaMalloc)(devPtr, size);
    gos_api_leave(&mark);
    return result;
}

cudaError_t CUDARTAPI cudaMallocPitch(void **devPtr, size_t *pitch, size_t width, size_t height)
{
    struct gos_api_mark mark = gos_api_enter(GOS_EP_cudaMallocPitch, CALLER);
    cudaError_t result = FORWARD(mark, cudaMallocPitch)(devPtr, pitch, width, height);
    gos_api_leave(&mark);
    return result;
}

cudaError_t CUDARTAPI cudaMalloc3D(struct cudaPitchedPtr *pitchedDevPtr, struct cudaExtent extent)
{
    struct gos_api_mark mark = gos_api_enter(GOS_EP_cudaMalloc3D, CALLER);
    cudaError_t result = FORWARD(mark, cudaMalloc3D)(pitchedDevPtr, extent);
    gos_api_leave(&mark);
    return result;
}

cudaError_t CUDARTAPI cudaMallocManaged(void **devPtr, size_t size, unsigned int flags)
{
    struct gos_api_mark mark = gos_api_enter(GOS_EP_cudaMallocManaged, CALLER);
    cudaError_t result = FORWARD(mark, cudaMallocManaged)(devPtr, size, flags);
    gos_api_leave(&mark);
    return result;
}

cudaError_t CUDARTAPI cudaMallocHost(void **ptr, size_t size)
{
    struct gos_api_mark mark = gos_api_enter(GOS_EP_cudaMallocHost, CALLER);
    cudaError_t result = FORWARD(mark, cudaMallocHost)(ptr, size);
    gos_api_leave(&mark);
    return result;
}

cudaError_t CUDARTAPI cudaHostAlloc(void **pHost, size_t size, unsigned int flags)
{
    struct gos_api_mark mark = gos_api_enter(GOS_EP_cudaHostAlloc, CALLER);
    cudaError_t result = FORWARD(mark, cudaHostAlloc)(pHost, size, flags);
    gos_api_leave(&mark);
    return result;
}

cudaError_t CUDARTAPI cudaHostRegister(void *ptr, size_t size, unsigned int flags)
{
    struct gos_api_mark mark = gos_api_enter(GOS_EP_cudaHostRegister, CALLER);
    cudaError_t result = FORWARD(mark, cudaHostRegister)(ptr, size, flags);
    gos_api_leave(&mark);
    return result;
}

cudaError_t CUDARTAPI cudaMallocAsync(void **devPtr, size_t size, cudaStream_t hStream)
{
    struct gos_api_mark mark = gos_api_enter(GOS_EP_cudaMallocAsync, CALLER);
    cudaError_t result = FORWARD(mark, cudaMallocAsync)(devPtr, size, hStream);
    gos_api_leave(&mark);
    return result;
}

cudaError_t CUDARTAPI cudaMallocAsync_ptsz(void **devPtr, size_t size, cudaStream_t hStream)
{
    struct gos_api_mark mark = gos_api_enter(GOS_EP_cudaMallocAsync_ptsz, CALLER);
    cudaError_t result = FORWARD(mark, cudaMallocAsync_ptsz)(devPtr, size, hStream);
    gos_api_leave(&mark);
    return result;
}

cudaError_t CUDARTAPI cudaMallocFromPoolAsync(void **ptr, size_t size, cudaMemPool_t memPool,
                                              cudaStream_t stream)
{
    struct gos_api_mark mark = gos_api_enter(GOS_EP_cudaMallocFromPoolAsync, CALLER);
    cudaError_t result = FORWARD(mark, cudaMallocFromPoolAsync)(ptr, size, memPool, stream);
    gos_api_leave(&mark);
    return result;
}

cudaError_t CUDARTAPI cudaMallocFromPoolAsync_ptsz(void **ptr, size_t size, cudaMemPool_t memPool,
                                                   cudaStream_t stream)
{
    struct gos_api_mark mark = gos_api_enter(GOS_EP_cudaMallocFromPoolAsync_ptsz, CALLER);
    cudaError_t result = FORWARD(mark, cudaMallocFromPoolAsync_ptsz)(ptr, size, memPool, stream);
    gos_api_leave(&mark);
    return result;
}

cudaError_t CUDARTAPI cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc,
                                      size_t width, size_t height, unsigned int flags)
{
    struct gos_api_mark mark = gos_api_enter(GOS_EP_cudaMallocArray, CALLER);
    cudaError_t result = FORWARD(mark, cudaMallocArray)(array, desc, width, height, flags);
    gos_api_leave(&mark);
    return result;
}

cudaError_t CUDARTAPI cudaMalloc3DArray(cudaArray_t *array,
                                        const struct cudaChannelFormatDesc *desc,
                                        struct cudaExtent extent, unsigned int flags)
{
    struct gos_api_mark mark = gos_api_enter(GOS_EP_cudaMalloc3DArray, CALLER);
    cudaError_t result = FORWARD(mark, cudaMalloc3DArray)(array, desc, extent, flags);
    gos_api_leave(&mark);
    return result;
}

cudaError_t CUDARTAPI cudaMallocMipmappedArray(cudaMipmappedArray_t *mipmappedArray,
                                               const struct cudaChannelFormatDesc *desc,
                                               struct cudaExtent extent, unsigned int numLevels,
                                               unsigned int flags)
{
    struct gos_api_mark mark = gos_api_enter(GOS_EP_cudaMallocMipmappedArray, CALLER);
    cudaError_t result =
        FORWARD(mark, cudaMallocMipmappedArray)(mipmappedArray, desc, extent, numLevels, flags);
    gos_api_leave(&mark);
    return result;
}

cudaError_t CUDARTAPI cudaMemPoolCreate(cudaMemPool_t *memPool,
                                        const struct cudaMemPoolProps *poolProps)
{
    struct gos_api_mark mark = gos_api_enter(GOS_EP_cudaMemPoolCreate, CALLER);
    cudaError_t result = FORWARD(mark, cudaMemPoolCreate)(memPool, poolProps);
    gos_api_leave(&mark);
    return result;
}

cudaError_t CUDARTAPI cudaMemPoolImportFromShareableHandle(
    cudaMemPool_t *memPool, void *shareableHandle, enum cudaMemAllocationHandleType handleType,
    unsigned int flags)
{
    struct gos_api_mark mark = gos_api_enter(GOS_EP_cudaMemPoolImportFromShareableHandle, CALLER);
    cudaError_t result = FORWARD(mark, cudaMemPoolImportFromShareableHandle)(
        memPool, shareableHandle, handleType, flags);
    gos_api_leave(&mark);
    return result;
}

cudaError_t CUDARTAPI cudaMemPoolImportPointer(void **ptr, cudaMemPool_t memPool,
                                               struct cudaMemPoolPtrExportData *exportData)
{
    struct gos_api_mark mark = gos_api_enter(GOS_EP_cudaMemPoolImportPointer, CALLER);
    cudaError_t result = FORWARD(mark, cudaMemPoolImportPointer)(ptr, memPool, exportData);
    gos_api_leave(&mark);
    return result;
}

cudaError_t CUDARTAPI cudaIpcOpenMemHandle(void **devPtr, cudaIpcMemHandle_t handle,
                                           unsigned int flags)
{
    struct gos_api_mark mark = gos_api_enter(GOS_EP_cudaIpcOpenMemHandle, CALLER);
    cudaError_t result = FORWARD(mark, cudaIpcOpenMemHandle)(devPtr, handle, flags);
    gos_api_leave(&mark);
    return result;
}

cudaError_t CUDARTAPI cudaImportExternalMemory(
    cudaExternalMemory_t *extMem_out, const struct cudaExternalMemoryHandleDesc *memHandleDesc)
{
    struct gos_api_mark mark = gos_api_enter(GOS_EP_cudaImportExternalMemory, CALLER);
    cudaError_t result = FORWARD(mark, cudaImportExternalMemory)(extMem_out, memHandleDesc);
    gos_api_leave(&mark);
    return result;
}

cudaError_t CUDARTAPI
cudaExternalMemoryGetMappedBuffer(void **devPtr, cudaExternalMemory_t extMem,
                                  const struct cudaExternalMemoryBufferDesc *bufferDesc)
{
    struct gos_api_mark mark = gos_api_enter(GOS_EP_cudaExternalMemoryGetMappedBuffer, CALLER);
    cudaError_t result =
        FORWARD(mark, cudaExternalMemoryGetMappedBuffer)(devPtr, extMem, bufferDesc);
    gos_api_leave(&mark);
    return result;
}

cudaError_t CUDARTAPI cudaExternalMemoryGetMappedMipmappedArray(
    cudaMipmappedArray_t *mipmap, cudaExternalMemory_t extMem,
    const struct cudaExternalMemoryMipmappedArrayDesc *mipmapDesc)
{
    struct gos_api_mark mark =
        gos_api_enter(GOS_EP_cudaExternalMemoryGetMappedMipmappedArray, CALLER);
    cudaError_t result =
        FORWARD(mark, cudaExternalMemoryGetMappedMipmappedArray)(mipmap, extMem, mipmapDesc);
    gos_api_leave(&mark);
    return result;
}

cudaError_t CUDARTAPI cudaGraphAddMemAllocNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                               const cudaGraphNode_t *pDependencies,
                                               size_t numDependencies,
                                               struct cudaMemAllocNodeParams *nodeParams)
{
    struct gos_api_mark mark = gos_api_enter(GOS_EP_cudaGraphAddMemAllocNode, CALLER);
    cudaError_t result = FORWARD(mark, cudaGraphAddMemAllocNode)(pGraphNode, graph, pDependencies,
                                                                 numDependencies, nodeParams);
    gos_api_leave(&mark);
    return result;
}

/*
 * cudart asks the driver's resolver, which is ours by then, so most answers
 * come back substituted already; a cudart that was started before us is not.
 */
static void substitute(cudaError_t result, void **function)
{
    if (result == cudaSuccess && function)
        *function = gos_substitute(*function);
}

cudaError_t CUDARTAPI cudaGetDriverEntryPoint(const char *symbol, void **funcPtr,
                                              unsigned long long flags,
                                              enum cudaDriverEntryPointQueryResult *status)
{
    struct gos_api_mark mark = gos_api_enter(GOS_EP_cudaGetDriverEntryPoint, CALLER);
    cudaError_t result =
        FORWARD(mark, cudaGetDriverEntryPoint_ptsz)(symbol, funcPtr, flags, status);
    gos_api_leave(&mark);
    substitute(result, funcPtr);
    return result;
}

cudaError_t CUDARTAPI cudaGetDriverEntryPoint_ptsz(const char *symbol, void **funcPtr,
                                                   unsigned long long flags,
                                                   enum cudaDriverEntryPointQueryResult *status)
{
    struct gos_api_mark mark = gos_api_enter(GOS_EP_cudaGetDriverEntryPoint_ptsz, CALLER);
    cudaError_t result =
        FORWARD(mark, cudaGetDriverEntryPoint_ptsz)(symbol, funcPtr, flags, status);
    gos_api_leave(&mark);
    substitute(result, funcPtr);
    return result;
}

cudaError_t CUDARTAPI cudaGetDriverEntryPointByVersion(const char *symbol, void **funcPtr,
                                                       unsigned int cudaVersion,
                                                       unsigned long long flags,
                                                       enum cudaDriverEntryPointQueryResult *status)
{
    struct gos_api_mark mark = gos_api_enter(GOS_EP_cudaGetDriverEntryPointByVersion, CALLER);
    cudaError_t result = FORWARD(mark, cudaGetDriverEntryPointByVersion)(
        symbol, funcPtr, cudaVersion, flags, status);
    gos_api_leave(&mark);
    substitute(result, funcPtr);
    return result;
}

cudaError_t CUDARTAPI cudaGetDriverEntryPointByVersion_ptsz(
    const char *symbol, void **funcPtr, unsigned int cudaVersion, unsigned long long flags,
    enum cudaDriverEntryPointQueryResult *status)
{
    struct gos_api_mark mark = gos_api_enter(GOS_EP_cudaGetDriverEntryPointByVersion_ptsz, CALLER);
    cudaError_t result = FORWARD(mark, cudaGetDriverEntryPointByVersion)(
        symbol, funcPtr, cudaVersion, flags, status);
    gos_api_leave(&mark);
    substitute(result, funcPtr);
    return result;
}
