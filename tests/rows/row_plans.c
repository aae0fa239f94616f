#include "row_plans.h"

#include <cuda.h>
#include <string.h>

#include "../../src/cuda/newer.h"

/* The number of a handle, where a parameter gives it: the fourth of cuMemMap (row_host.c). */
#define HANDLE 0x4000

static const struct row_plan plans[] = {
    {"cuMemAlloc_v2", ROW_OUT, "cuMemFree_v2", 0, 0},
    {"cuMemAlloc", ROW_OUT, "cuMemFree", 0, 0},
    {"cuMemAllocPitch_v2", ROW_OUT, "cuMemFree_v2", 0, 0},
    {"cuMemAllocPitch", ROW_OUT, "cuMemFree", 0, 0},
    {"cuMemAllocManaged", ROW_OUT, "cuMemFree_v2", 0, 0},
    {"cuArrayCreate_v2", ROW_OUT, "cuArrayDestroy", 0, 0},
    {"cuArrayCreate", ROW_OUT, "cuArrayDestroy", 0, 0},
    {"cuArray3DCreate_v2", ROW_OUT, "cuArrayDestroy", 0, 0},
    {"cuArray3DCreate", ROW_OUT, "cuArrayDestroy", 0, 0},
    {"cuMipmappedArrayCreate", ROW_OUT, "cuMipmappedArrayDestroy", 0, 0},
    {"cuMemHostAlloc", ROW_OUT, "cuMemFreeHost", 0, 0},
    {"cuMemAllocHost_v2", ROW_OUT, "cuMemFreeHost", 0, 0},
    {"cuMemAllocHost", ROW_OUT, "cuMemFreeHost", 0, 0},
    {"cuMemHostRegister_v2", ROW_ARGUMENT, "cuMemHostUnregister", 0, 0},
    {"cuMemHostRegister", ROW_ARGUMENT, "cuMemHostUnregister", 0, 0},
    {"cuMemAllocAsync", ROW_OUT, "cuMemFreeAsync", 0, 0},
    {"cuMemAllocAsync_ptsz", ROW_OUT, "cuMemFreeAsync_ptsz", 0, 0},
    {"cuMemAllocFromPoolAsync", ROW_OUT, "cuMemFree_v2", 0, 0},
    {"cuMemAllocFromPoolAsync_ptsz", ROW_OUT, "cuMemFreeAsync", 0, 0},
    {"cuMemPoolImportPointer", ROW_OUT, "cuMemFreeAsync", 0, 0},
    {"cuGraphAddMemAllocNode", ROW_NODE, "cuGraphAddMemFreeNode", 4, 0},
    {"cuGraphAddNode", ROW_NODE, "cuMemFreeAsync", 0, 0},
    {"cuGraphAddNode_v2", ROW_NODE, "cuMemFree_v2", 0, 0},
    {"cuGraphAddNode_v3", ROW_NODE, "cuMemFree_v2", 0, 0},
    {"cuMemCreate", ROW_OUT, "cuMemRelease", 0, 0},
    {"cuMemRetainAllocationHandle", ROW_OUT, "cuMemRelease", 0, HANDLE},
    {"cuMemMap", ROW_ARGUMENT, "cuMemUnmap", 0, HANDLE},
    {"cuMemAddressReserve", ROW_OUT, "cuMemAddressFree", 0, 0},
    {"cuIpcOpenMemHandle_v2", ROW_OUT, "cuIpcCloseMemHandle", 0, 0},
    {"cuIpcOpenMemHandle", ROW_OUT, "cuIpcCloseMemHandle", 0, 0},
    {"cuMemImportFromShareableHandle", ROW_OUT, "cuMemRelease", 0, 0},
    {"cuMulticastCreate", ROW_OUT, "cuMemRelease", 0, 0},
    {"cuImportExternalMemory", ROW_OUT, "cuDestroyExternalMemory", 0, 0},
    {"cuExternalMemoryGetMappedBuffer", ROW_OUT, "cuMemFree_v2", 0, 0},
    {"cuExternalMemoryGetMappedMipmappedArray", ROW_OUT, "cuMipmappedArrayDestroy", 0, 0},
    {"cuMemPoolCreate", ROW_OUT, NULL, 0, 0},
    {"cuMemPoolImportFromShareableHandle", ROW_OUT, NULL, 0, 0},
    {"cuDeviceGetMemPool", ROW_OUT, NULL, 0, 0},
    {"cuDeviceGetDefaultMemPool", ROW_OUT, NULL, 0, 0},
    {"cuMemGetMemPool", ROW_OUT, NULL, 0, 0},
    {"cuMemGetDefaultMemPool", ROW_OUT, NULL, 0, 0},
    {"cuCtxCreate", ROW_OUT, NULL, 0, 0},
    {"cuCtxCreate_v2", ROW_OUT, NULL, 0, 0},
    {"cuCtxCreate_v3", ROW_OUT, NULL, 0, 0},
    {"cuCtxCreate_v4", ROW_OUT, NULL, 0, 0},
    {"cuDevicePrimaryCtxRetain", ROW_OUT, NULL, 0, 0},
    {"cuGreenCtxCreate", ROW_OUT, NULL, 0, 0},
};
#define PLAN_COUNT (sizeof plans / sizeof plans[0])

const struct row_plan *row_plan_making(const char *symbol)
{
    for (size_t i = 0; i < PLAN_COUNT; i++)
        if (strcmp(plans[i].makes, symbol) == 0)
            return &plans[i];
    return NULL;
}

const struct row_plan *row_plan_freeing(const char *symbol)
{
    for (size_t i = 0; i < PLAN_COUNT; i++)
        if (plans[i].frees != NULL && strcmp(plans[i].frees, symbol) == 0)
            return &plans[i];
    return NULL;
}

static const struct {
    const char *runtime;
    const char *driver;
} below[] = {
    {"cudaMalloc", "cuMemAlloc_v2"},
    {"cudaMallocPitch", "cuMemAllocPitch_v2"},
    {"cudaMalloc3D", "cuMemAllocPitch_v2"},
    {"cudaMallocManaged", "cuMemAllocManaged"},
    {"cudaMallocArray", "cuArray3DCreate_v2"},
    {"cudaMalloc3DArray", "cuArray3DCreate_v2"},
    {"cudaMallocMipmappedArray", "cuMipmappedArrayCreate"},
    {"cudaMallocHost", "cuMemAllocHost_v2"},
    {"cudaHostAlloc", "cuMemHostAlloc"},
    {"cudaHostRegister", "cuMemHostRegister_v2"},
    {"cudaMallocAsync", "cuMemAllocAsync"},
    {"cudaMallocAsync_ptsz", "cuMemAllocAsync_ptsz"},
    {"cudaMallocFromPoolAsync", "cuMemAllocFromPoolAsync"},
    {"cudaMallocFromPoolAsync_ptsz", "cuMemAllocFromPoolAsync_ptsz"},
    {"cudaMemPoolCreate", "cuMemPoolCreate"},
    {"cudaMemPoolImportFromShareableHandle", "cuMemPoolImportFromShareableHandle"},
    {"cudaMemPoolImportPointer", "cuMemPoolImportPointer"},
    {"cudaIpcOpenMemHandle", "cuIpcOpenMemHandle_v2"},
    {"cudaImportExternalMemory", "cuImportExternalMemory"},
    {"cudaExternalMemoryGetMappedBuffer", "cuExternalMemoryGetMappedBuffer"},
    {"cudaExternalMemoryGetMappedMipmappedArray", "cuExternalMemoryGetMappedMipmappedArray"},
    {"cudaGraphAddMemAllocNode", "cuGraphAddMemAllocNode"},
    {"cudaGetDriverEntryPoint", "cuGetProcAddress_v2"},
    {"cudaGetDriverEntryPoint_ptsz", "cuGetProcAddress_v2"},
    {"cudaGetDriverEntryPointByVersion", "cuGetProcAddress_v2"},
    {"cudaGetDriverEntryPointByVersion_ptsz", "cuGetProcAddress_v2"},
};

const char *row_below(const char *symbol)
{
    for (size_t i = 0; i < sizeof below / sizeof below[0]; i++)
        if (strcmp(below[i].runtime, symbol) == 0)
            return below[i].driver;
    return NULL;
}

/* Primary contexts are named by their device: here the second argument of their retaining. */
uint64_t row_ends_context(const char *symbol)
{
    if (strncmp(symbol, "cuCtxDestroy", 12) == 0 || strcmp(symbol, "cuCtxDetach") == 0)
        return ROW_CONTEXT;
    if (strncmp(symbol, "cuDevicePrimaryCtxRelease", 25) == 0 ||
        strncmp(symbol, "cuDevicePrimaryCtxReset", 23) == 0)
        return 2;
    return 0;
}

const char *row_undone_by(const char *symbol)
{
    bool begins = strncmp(symbol, "cuStreamBeginCapture", 20) == 0 ||
                  strncmp(symbol, "cuStreamBeginRecapture", 22) == 0;

    return begins ? "cuStreamEndCapture" : NULL;
}

/* --- what is behind pointers --------------------------------------------------------------------
 */

static bool is_node_call(const char *symbol)
{
    return strncmp(symbol, "cuGraphAddNode", 14) == 0;
}

/* The last parameter: the fifth of the first ABI, the sixth of later ones. */
static CUgraphNodeParams *node_params(const char *symbol, unsigned char buffers[][ROW_BUFFER_BYTES])
{
    return (CUgraphNodeParams *)buffers[strcmp(symbol, "cuGraphAddNode") == 0 ? 4 : 5];
}

static void dress_node(const char *symbol, unsigned char buffers[][ROW_BUFFER_BYTES])
{
    CUgraphNodeParams *params = node_params(symbol, buffers);

    params->type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    params->alloc.bytesize = 9000;
}

static uint64_t *node_address(const char *symbol, unsigned char buffers[][ROW_BUFFER_BYTES])
{
    return (uint64_t *)&node_params(symbol, buffers)->alloc.dptr;
}

/* 64 by 10 texels (and 3 deep) of two halves, in the ABI of the row. */
static void dress_array(const char *symbol, unsigned char *buffer)
{
    bool is_old = strstr(symbol, "_v2") == NULL && strstr(symbol, "Mipmapped") == NULL;

    if (strncmp(symbol, "cuArrayCreate", 13) == 0 && is_old)
        *(CUDA_ARRAY_DESCRIPTOR_v1 *)buffer = (CUDA_ARRAY_DESCRIPTOR_v1){
            .Width = 64, .Height = 10, .Format = CU_AD_FORMAT_HALF, .NumChannels = 2};
    else if (strncmp(symbol, "cuArrayCreate", 13) == 0)
        *(CUDA_ARRAY_DESCRIPTOR *)buffer = (CUDA_ARRAY_DESCRIPTOR){
            .Width = 64, .Height = 10, .Format = CU_AD_FORMAT_HALF, .NumChannels = 2};
    else if (is_old)
        *(CUDA_ARRAY3D_DESCRIPTOR_v1 *)buffer = (CUDA_ARRAY3D_DESCRIPTOR_v1){
            .Width = 64, .Height = 10, .Depth = 3, .Format = CU_AD_FORMAT_HALF, .NumChannels = 2};
    else
        *(CUDA_ARRAY3D_DESCRIPTOR *)buffer = (CUDA_ARRAY3D_DESCRIPTOR){
            .Width = 64, .Height = 10, .Depth = 3, .Format = CU_AD_FORMAT_HALF, .NumChannels = 2};
}

void row_dress(const char *symbol, unsigned char buffers[][ROW_BUFFER_BYTES])
{
    if (strncmp(symbol, "cuArray", 7) == 0 || strcmp(symbol, "cuMipmappedArrayCreate") == 0)
        dress_array(symbol, buffers[1]);
    else if (strcmp(symbol, "cuGraphAddMemAllocNode") == 0)
        ((CUDA_MEM_ALLOC_NODE_PARAMS *)buffers[4])->bytesize = 9000;
    else if (is_node_call(symbol))
        dress_node(symbol, buffers);
    else if (strcmp(symbol, "cuImportExternalMemory") == 0)
        ((CUDA_EXTERNAL_MEMORY_HANDLE_DESC *)buffers[1])->size = 7000;
    else if (strcmp(symbol, "cuExternalMemoryGetMappedBuffer") == 0)
        ((CUDA_EXTERNAL_MEMORY_BUFFER_DESC *)buffers[2])->size = 6000;
    else if (strncmp(symbol, "cuGetProcAddress", 16) == 0)
        strcpy((char *)buffers[0], "cuMemAlloc");
    else if (strncmp(symbol, "cuMemAllocPitch", 15) == 0)
        *(unsigned int *)buffers[1] = 512; /* bytes in a row, as the driver would write them */
    else if (strcmp(symbol, "cuMulticastCreate") == 0)
        ((CUmulticastObjectProp *)buffers[1])->size = 5000;
}

uint64_t *row_out_parameter(const struct row_plan *plan, unsigned char buffers[][ROW_BUFFER_BYTES])
{
    if (plan->place == ROW_OUT)
        return (uint64_t *)buffers[0];
    if (plan->place == ROW_ARGUMENT)
        return NULL;
    if (is_node_call(plan->makes))
        return node_address(plan->makes, buffers);
    return (uint64_t *)&((CUDA_MEM_ALLOC_NODE_PARAMS *)buffers[4])->dptr;
}
