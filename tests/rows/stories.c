/*
 * Stories of several calls, told to the stand-in driver: who owns what, and
 * until when.  Each moment leaves a snapshot, which test_rows.py reads.
 *
 *   stories FOLDER
 */
#include <cuda.h>
#include <gpuoomshim.h>
#include <stdio.h>
#include <string.h>

#include "../../src/cuda/newer.h"
#include "rows.h"

enum row {
#define DRIVER(symbol, base, version, suffix, role) ROW_##symbol,
#include "../../src/cuda/entrypoints.def"
    ROW_COUNT
};

extern struct row_script row_script;
extern int row_primary_active;

static const char *folder;

/* From now on the row, and no other, writes the value there. */
static void writes(int row, void *to, uint64_t value)
{
    row_script.row = row;
    row_script.writes[0].to = to;
    row_script.writes[0].value = value;
}

static void look(const char *moment)
{
    char prefix[512];

    row_script.row = -1;
    snprintf(prefix, sizeof prefix, "%s/%s", folder, moment);
    if (gpuoomshim_snapshot == NULL || gpuoomshim_snapshot(prefix) != 0)
        printf("no snapshot of %s\n", moment);
}

static CUdeviceptr allocate(size_t bytes, uint64_t address)
{
    CUdeviceptr made = 0;

    writes(ROW_cuMemAlloc_v2, &made, address);
    cuMemAlloc_v2(&made, bytes);
    return made;
}

static void memory_opened_twice_is_open_until_it_is_closed_twice(void)
{
    CUipcMemHandle handle = {0};
    CUdeviceptr address = 0;

    writes(ROW_cuIpcOpenMemHandle_v2, &address, 0x10000);
    cuIpcOpenMemHandle_v2(&address, handle, 1);
    cuIpcOpenMemHandle_v2(&address, handle, 1);
    look("ipc.opened-twice");
    cuIpcCloseMemHandle(address);
    look("ipc.closed-once");
    row_script.result = CUDA_ERROR_INVALID_VALUE;
    cuIpcCloseMemHandle(address);
    row_script.result = CUDA_SUCCESS;
    look("ipc.close-refused");
    cuIpcCloseMemHandle(address);
    look("ipc.closed-twice");
}

static void context_attached_to_outlives_its_first_detachment(void)
{
    CUcontext context = NULL;

    allocate(4096, 0x20000);
    writes(ROW_cuCtxAttach, &context, ROW_CONTEXT);
    cuCtxAttach(&context, 0);
    cuCtxDetach(context);
    look("attach.detached-once");
    cuCtxDetach(context);
    look("attach.detached-twice");
}

static void memory_in_a_destroyed_pool_lives_until_its_free(void)
{
    CUmemPoolProps props = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemoryPool pool = NULL;
    CUdeviceptr address = 0;

    writes(ROW_cuMemPoolCreate, &pool, 0x30000);
    cuMemPoolCreate(&pool, &props);
    writes(ROW_cuMemAllocFromPoolAsync, &address, 0x31000);
    cuMemAllocFromPoolAsync(&address, 4096, pool, (CUstream)0x32000);
    cuMemPoolDestroy(pool);
    look("pool.destroyed");
    cuMemFreeAsync(address, (CUstream)0x32000);
    look("pool.freed");
}

static void pool_of_another_device_is_known_by_asking_for_it(void)
{
    CUmemoryPool pool = NULL;
    CUdeviceptr address = 0;

    writes(ROW_cuDeviceGetDefaultMemPool, &pool, 0x40000);
    cuDeviceGetDefaultMemPool(&pool, 3);
    writes(ROW_cuMemAllocFromPoolAsync, &address, 0x41000);
    cuMemAllocFromPoolAsync(&address, 4096, pool, (CUstream)0x42000);
    look("pool.of-device-3");
    cuMemFreeAsync(address, (CUstream)0x42000);
}

static void memory_from_a_pool(const char *moment, const CUmemPoolProps *props, uint64_t number)
{
    CUmemoryPool pool = NULL;
    CUdeviceptr address = 0;

    writes(ROW_cuMemPoolCreate, &pool, number);
    cuMemPoolCreate(&pool, props);
    writes(ROW_cuMemAllocFromPoolAsync, &address, number + 0x1000);
    cuMemAllocFromPoolAsync(&address, 4096, pool, (CUstream)(uintptr_t)(number + 0x2000));
    look(moment);
    cuMemFreeAsync(address, (CUstream)(uintptr_t)(number + 0x2000));
    cuMemPoolDestroy(pool);
}

static void memory_from_a_pool_of_the_host_is_host_memory(void)
{
    CUmemPoolProps props = {.location = {.type = CU_MEM_LOCATION_TYPE_INVALID, .id = 0}};

    memory_from_a_pool("pool.of-host", &props, 0x50000);
}

/* The allocation type has a name since 13.0. */
static void memory_from_a_pool_of_managed_memory_is_managed(void)
{
    CUmemPoolProps props = {.allocType = (CUmemAllocationType)2};

    memory_from_a_pool("pool.managed", &props, 0xa0000);
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    props.location.id = 3;
    memory_from_a_pool("pool.managed-on-device-3", &props, 0xb0000);
}

static void launch(CUgraph graph)
{
    CUgraphExec exec = NULL;

    writes(ROW_cuGraphInstantiateWithFlags, &exec, 0x62000);
    cuGraphInstantiateWithFlags(&exec, graph, 0);
    cuGraphLaunch(exec, NULL);
    cuGraphExecDestroy(exec);
    cuGraphDestroy(graph);
}

static void memory_allocated_while_capturing_is_there_when_the_graph_is_launched(void)
{
    CUstream stream = (CUstream)0x60000;
    CUdeviceptr address = 0;
    CUgraph graph = NULL;

    cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    writes(ROW_cuMemAllocAsync, &address, 0x61000);
    cuMemAllocAsync(&address, 4096, stream);
    cuStreamEndCapture(stream, &graph);
    look("capture.ended");
    launch((CUgraph)(uintptr_t)ROW_GRAPH);
    look("capture.launched");
    cuMemFree_v2(address);
    look("capture.freed");
}

static void handle_imported_here_and_known_keeps_its_bytes(void)
{
    CUmemGenericAllocationHandle handle = 0;
    CUmemAllocationProp prop = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};

    writes(ROW_cuMemCreate, &handle, 0x70000);
    cuMemCreate(&handle, 4096, &prop, 0);
    writes(ROW_cuMemImportFromShareableHandle, &handle, 0x70000);
    cuMemImportFromShareableHandle(&handle, NULL, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    cuMemRelease(handle);
    look("import.released-once");
    cuMemRelease(handle);
    look("import.released-twice");
}

static void memory_that_an_array_shows_outlives_its_handle(void)
{
    CUmemAllocationProp prop = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUDA_ARRAY3D_DESCRIPTOR sparse = {
        .Width = 64, .Height = 64, .Format = CU_AD_FORMAT_HALF, .NumChannels = 1, .Flags = 0x40};
    CUmemGenericAllocationHandle handle = 0;
    CUarray array = NULL;

    writes(ROW_cuArray3DCreate_v2, &array, 0x73000);
    cuArray3DCreate_v2(&array, &sparse);
    writes(ROW_cuMemCreate, &handle, 0x72000);
    cuMemCreate(&handle, 4096, &prop, 0);
    CUarrayMapInfo info = {.resourceType = CU_RESOURCE_TYPE_ARRAY,
                           .resource.array = array,
                           .subresource.sparseLevel = {.extentWidth = 64, .extentHeight = 64},
                           .memOperationType = CU_MEM_OPERATION_TYPE_MAP,
                           .memHandleType = CU_MEM_HANDLE_TYPE_GENERIC,
                           .memHandle.memHandle = handle,
                           .deviceBitMask = 1};
    cuMemMapArrayAsync(&info, 1, NULL);
    cuMemRelease(handle);
    look("array.shows");
    info.memOperationType = CU_MEM_OPERATION_TYPE_UNMAP;
    cuMemMapArrayAsync(&info, 1, NULL);
    look("array.unmapped");
    writes(ROW_cuMemCreate, &handle, 0x74000);
    cuMemCreate(&handle, 8192, &prop, 0);
    info.memOperationType = CU_MEM_OPERATION_TYPE_MAP;
    info.memHandle.memHandle = handle;
    cuMemMapArrayAsync(&info, 1, NULL);
    cuMemRelease(handle);
    look("array.shows-another");
    cuArrayDestroy(array);
    look("array.destroyed");
}

static void node_that_frees_ends_the_record(void)
{
    CUgraph graph = (CUgraph)(uintptr_t)0x81000, other = (CUgraph)(uintptr_t)0x82000;
    CUgraphNodeParams params;
    CUgraphNode node = NULL;

    memset(&params, 0, sizeof params);
    params.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    params.alloc.bytesize = 4096;
    writes(ROW_cuGraphAddNode, &params.alloc.dptr, 0x80000);
    cuGraphAddNode(&node, graph, NULL, 0, &params);
    CUdeviceptr address = params.alloc.dptr;
    launch(graph);
    look("node.allocates");
    memset(&params, 0, sizeof params);
    params.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
    params.free.dptr = address;
    cuGraphAddNode(&node, other, NULL, 0, &params);
    launch(other);
    look("node.frees");
}

static void memory_of_a_green_context_ends_with_the_primary_one(void)
{
    CUgreenCtx green = NULL;
    CUcontext face = NULL;

    writes(ROW_cuGreenCtxCreate, &green, 0x90000);
    cuGreenCtxCreate(&green, NULL, 0, 0);
    writes(ROW_cuCtxFromGreenCtx, &face, ROW_CONTEXT);
    cuCtxFromGreenCtx(&face, green);
    allocate(4096, 0x91000);
    row_primary_active = 1;
    cuGreenCtxDestroy(green);
    look("green.destroyed");
    row_primary_active = 0;
    cuDevicePrimaryCtxRelease_v2(0);
    look("green.primary-released");
}

int main(int count, char **words)
{
    folder = count > 1 ? words[1] : ".";
    cuInit(0);
    memory_opened_twice_is_open_until_it_is_closed_twice();
    context_attached_to_outlives_its_first_detachment();
    memory_in_a_destroyed_pool_lives_until_its_free();
    pool_of_another_device_is_known_by_asking_for_it();
    memory_from_a_pool_of_the_host_is_host_memory();
    memory_from_a_pool_of_managed_memory_is_managed();
    memory_allocated_while_capturing_is_there_when_the_graph_is_launched();
    handle_imported_here_and_known_keeps_its_bytes();
    memory_that_an_array_shows_outlives_its_handle();
    node_that_frees_ends_the_record();
    memory_of_a_green_context_ends_with_the_primary_one();
    return 0;
}
