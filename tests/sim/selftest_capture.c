/* What a capture forbids, what invalidates it, and memory of graphs. */

#include "selftest.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

static CUstream capturing, bystander;
static CUevent event;
static CUmemoryPool pool;
static CUdeviceptr linear, pooled;

static void prepare(void)
{
    start_driver();
    capturing = make_stream();
    bystander = make_stream();
    pool = default_pool(UINT64_MAX);
    CHECK_EQUAL(cu.cuEventCreate(&event, 0), 0);
    CHECK_EQUAL(cu.cuEventRecord(event, bystander), 0);
    linear = take(MIB);
    pooled = take_async(MIB, bystander);
    CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
}

static CUresult try_alloc(void)
{
    CUdeviceptr address = 0;
    return cu.cuMemAlloc_v2(&address, MIB);
}

static CUresult try_free(void)
{
    return cu.cuMemFree_v2(0);
}

static CUresult try_pinned(void)
{
    void *address = NULL;
    return cu.cuMemAllocHost_v2(&address, 4096);
}

static CUresult try_managed(void)
{
    CUdeviceptr address = 0;
    return cu.cuMemAllocManaged(&address, MIB, 1);
}

static CUresult try_trim(void)
{
    return cu.cuMemPoolTrimTo(pool, 0);
}

static CUresult try_wait_stream(void)
{
    return cu.cuStreamSynchronize(bystander);
}

static CUresult try_query_stream(void)
{
    return cu.cuStreamQuery(bystander);
}

static CUresult try_wait_event(void)
{
    return cu.cuEventSynchronize(event);
}

static CUresult try_query_event(void)
{
    return cu.cuEventQuery(event);
}

static CUresult try_alloc_elsewhere(void)
{
    CUdeviceptr address = 0;
    return cu.cuMemAllocAsync(&address, MIB, bystander);
}

static CUresult try_info(void)
{
    size_t bytes = 0;
    return cu.cuMemGetInfo_v2(&bytes, &bytes);
}

static CUresult try_create(void)
{
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemGenericAllocationHandle handle = 0;
    return cu.cuMemCreate(&handle, 2 * MIB, &properties, 0);
}

static CUresult try_stream(void)
{
    CUstream stream = NULL;
    return cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
}

static CUresult try_graph_trim(void)
{
    return cu.cuDeviceGraphMemTrim(0);
}

static CUresult try_fill(void)
{
    return cu.cuMemsetD8_v2(linear, 0, MIB);
}

static CUresult try_node(void)
{
    CUdeviceptr address = 0;
    return cu.cuMemAllocAsync(&address, MIB, capturing);
}

static CUresult try_wait_captured(void)
{
    return cu.cuStreamSynchronize(capturing);
}

static CUresult try_query_captured(void)
{
    return cu.cuStreamQuery(capturing);
}

static CUresult try_wait_context(void)
{
    return cu.cuCtxSynchronize();
}

/* Calls under a capture of a mode: the result, and what becomes of the capture. */
static void expect(CUstreamCaptureMode mode, CUresult (*call)(void), CUresult result)
{
    CUgraph graph = NULL;
    CHECK_EQUAL(cu.cuStreamBeginCapture_v2(capturing, mode), 0);
    CHECK_EQUAL(call(), result);
    CHECK_EQUAL(cu.cuStreamEndCapture(capturing, &graph),
                result == CUDA_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK((graph != NULL) == (result == CUDA_SUCCESS));
    if (graph != NULL)
        CHECK_EQUAL(cu.cuGraphDestroy(graph), 0);
}

static CUresult (*const unsafe[])(void) = {
    try_alloc,       try_free,         try_pinned,     try_managed,     try_trim,
    try_wait_stream, try_query_stream, try_wait_event, try_query_event, try_alloc_elsewhere};
static CUresult (*const harmless[])(void) = {try_info,       try_create, try_stream,
                                             try_graph_trim, try_fill,   try_node};
static CUresult (*const fatal[])(void) = {try_wait_captured, try_query_captured, try_wait_context};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void capture_modes(void)
{
    prepare();
    for (CUstreamCaptureMode mode = 0; mode <= CU_STREAM_CAPTURE_MODE_RELAXED; mode++) {
        bool is_relaxed = mode == CU_STREAM_CAPTURE_MODE_RELAXED;
        for (size_t i = 0; i < COUNT(unsafe); i++)
            expect(mode, unsafe[i], is_relaxed ? 0 : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        for (size_t i = 0; i < COUNT(harmless); i++)
            expect(mode, harmless[i], 0);
        for (size_t i = 0; i < COUNT(fatal); i++)
            expect(mode, fatal[i], CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
}

static void relax_thread(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    prepare();
    CHECK_EQUAL(cu.cuThreadExchangeStreamCaptureMode(&mode), 0);
    CHECK_EQUAL(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    expect(CU_STREAM_CAPTURE_MODE_GLOBAL, try_alloc, 0);
    expect(CU_STREAM_CAPTURE_MODE_GLOBAL, try_trim, 0);
    expect(CU_STREAM_CAPTURE_MODE_GLOBAL, try_wait_stream, 0);
    expect(CU_STREAM_CAPTURE_MODE_GLOBAL, try_wait_captured, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    expect(CU_STREAM_CAPTURE_MODE_GLOBAL, try_wait_context, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

static void *alloc_in_thread(void *argument)
{
    CUcontext context = NULL;
    CUresult *result = argument;
    CHECK_EQUAL(cu.cuDevicePrimaryCtxRetain(&context, 0), 0);
    CHECK_EQUAL(cu.cuCtxSetCurrent(context), 0);
    *result = try_alloc();
    return NULL;
}

static void capture_and_other_threads(void)
{
    prepare();
    for (CUstreamCaptureMode mode = 0; mode <= CU_STREAM_CAPTURE_MODE_RELAXED; mode++) {
        bool is_global = mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        pthread_t thread;
        CUresult result = CUDA_ERROR_UNKNOWN;
        CUgraph graph = NULL;
        CHECK_EQUAL(cu.cuStreamBeginCapture_v2(capturing, mode), 0);
        pthread_create(&thread, NULL, alloc_in_thread, &result);
        pthread_join(thread, NULL);
        CHECK_EQUAL(result, is_global ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : 0);
        CHECK_EQUAL(cu.cuStreamEndCapture(capturing, &graph),
                    is_global ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : 0);
    }
}

static void begin_and_end(void)
{
    CUgraph graph = NULL;
    CUdeviceptr address = 0;
    prepare();
    CHECK_EQUAL(cu.cuStreamEndCapture(capturing, &graph), CUDA_ERROR_ILLEGAL_STATE);
    CHECK_EQUAL(cu.cuStreamBeginCapture_v2(NULL, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_EQUAL(cu.cuStreamBeginCapture_v2(capturing, 0), 0);
    CHECK_EQUAL(cu.cuStreamBeginCapture_v2(capturing, 0), CUDA_ERROR_ILLEGAL_STATE);
    CHECK_EQUAL(cu.cuStreamEndCapture(capturing, &graph), 0);
    CHECK_EQUAL(cu.cuStreamBeginCapture_v2(capturing, 0), 0);
    CHECK_EQUAL(try_alloc(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_EQUAL(cu.cuMemAllocAsync(&address, MIB, capturing),
                CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK_EQUAL(cu.cuStreamEndCapture(capturing, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

static uint64_t graph_bytes(CUgraphMem_attribute attribute)
{
    cuuint64_t bytes = 0;
    CHECK_EQUAL(cu.cuDeviceGetGraphMemAttribute(0, attribute, &bytes), 0);
    return bytes;
}

static CUgraphExec capture_allocation(CUdeviceptr *address, bool frees)
{
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    CHECK_EQUAL(cu.cuStreamBeginCapture_v2(capturing, CU_STREAM_CAPTURE_MODE_RELAXED), 0);
    *address = take_async(64 * MIB, capturing);
    CHECK_EQUAL(cu.cuMemsetD8Async(*address, 1, 64 * MIB, capturing), 0);
    if (frees)
        CHECK_EQUAL(cu.cuMemFreeAsync(*address, capturing), 0);
    CHECK_EQUAL(cu.cuStreamEndCapture(capturing, &graph), 0);
    CHECK_EQUAL(cu.cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
    CHECK_EQUAL(cu.cuGraphDestroy(graph), 0);
    return exec;
}

static void graph_memory(void)
{
    CUdeviceptr address = 0;
    prepare();
    CUgraphExec exec = capture_allocation(&address, true);
    uint64_t before = free_bytes();
    CHECK_EQUAL(graph_bytes(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0);
    CHECK_EQUAL(cu.cuGraphLaunch(exec, capturing), 0);
    CHECK_EQUAL(cu.cuStreamSynchronize(capturing), 0);
    CHECK_EQUAL(before - free_bytes(), 64 * MIB);
    CHECK_EQUAL(graph_bytes(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 64 * MIB);
    CHECK_EQUAL(cu.cuDeviceGraphMemTrim(0), 0);
    CHECK_EQUAL(graph_bytes(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0);
    CHECK_EQUAL(graph_bytes(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), 64 * MIB);
    CHECK_EQUAL(before, free_bytes());
    CHECK_EQUAL(cu.cuGraphLaunch(exec, capturing), 0);
    CHECK_EQUAL(cu.cuStreamSynchronize(capturing), 0);
    CHECK_EQUAL(cu.cuGraphExecDestroy(exec), 0);
    CHECK_EQUAL(graph_bytes(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 64 * MIB);
    CHECK_EQUAL(cu.cuDeviceGraphMemTrim(0), 0);
    CHECK_EQUAL(graph_bytes(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0);
    CHECK_EQUAL(before, free_bytes());
}

static void graph_memory_left_allocated(void)
{
    CUdeviceptr address = 0;
    prepare();
    CUgraphExec exec = capture_allocation(&address, false);
    CHECK_EQUAL(cu.cuMemFree_v2(address), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cu.cuGraphLaunch(exec, capturing), 0);
    CHECK_EQUAL(cu.cuStreamSynchronize(capturing), 0);
    CHECK_EQUAL(cu.cuGraphLaunch(exec, capturing), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cu.cuMemFreeAsync(address, capturing), 0);
    CHECK_EQUAL(cu.cuGraphLaunch(exec, capturing), 0);
    CHECK_EQUAL(cu.cuStreamSynchronize(capturing), 0);
    CHECK_EQUAL(cu.cuMemFree_v2(address), 0);
    CHECK_EQUAL(graph_bytes(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 64 * MIB);
}

static void graph_memory_is_given_back(void)
{
    CUdeviceptr address = 0;
    prepare();
    CUgraphExec exec = capture_allocation(&address, true);
    CHECK_EQUAL(cu.cuGraphLaunch(exec, capturing), 0);
    CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
    CHECK_EQUAL(cu.cuMemPoolTrimTo(pool, 0), 0);
    take(free_bytes());
    take(32 * MIB);
    CHECK_EQUAL(graph_bytes(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0);
}

static void free_of_ordinary_memory(void)
{
    CUgraph graph = NULL;
    prepare();
    CHECK_EQUAL(cu.cuStreamBeginCapture_v2(capturing, CU_STREAM_CAPTURE_MODE_RELAXED), 0);
    CHECK_EQUAL(cu.cuMemFreeAsync(pooled, capturing), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cu.cuStreamEndCapture(capturing, &graph), 0);
    CHECK_EQUAL(cu.cuMemFreeAsync(pooled, capturing), 0);
}

static void join_by_event(void)
{
    CUgraph graph = NULL;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    prepare();
    CHECK_EQUAL(cu.cuStreamBeginCapture_v2(capturing, CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
    CHECK_EQUAL(cu.cuEventRecord(event, capturing), 0);
    CHECK_EQUAL(cu.cuStreamWaitEvent(bystander, event, 0), 0);
    CHECK_EQUAL(cu.cuStreamIsCapturing(bystander, &status), 0);
    CHECK_EQUAL(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    CHECK_EQUAL(cu.cuEventRecord(event, bystander), 0);
    CHECK_EQUAL(cu.cuStreamWaitEvent(capturing, event, 0), 0);
    CHECK_EQUAL(cu.cuStreamEndCapture(capturing, &graph), 0);
    CHECK_EQUAL(cu.cuStreamIsCapturing(bystander, &status), 0);
    CHECK_EQUAL(status, CU_STREAM_CAPTURE_STATUS_NONE);
}

#define TEST(name, body)                                                                           \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        run_child(body, NULL);                                                                     \
    }

TEST(capture_modes_decide_what_is_unsafe, capture_modes)
TEST(relaxed_thread_may_allocate_during_a_capture, relax_thread)
TEST(global_capture_binds_other_threads, capture_and_other_threads)
TEST(captures_begin_and_end_in_order, begin_and_end)
TEST(graph_memory_stays_until_trimmed, graph_memory)
TEST(graph_memory_left_allocated_forbids_a_launch, graph_memory_left_allocated)
TEST(graph_memory_is_given_back_to_other_requests, graph_memory_is_given_back)
TEST(ordinary_memory_cannot_be_freed_in_a_capture, free_of_ordinary_memory)
TEST(event_draws_a_stream_into_the_capture, join_by_event)

const struct CMUnitTest capture_tests[] = {
    cmocka_unit_test(capture_modes_decide_what_is_unsafe),
    cmocka_unit_test(relaxed_thread_may_allocate_during_a_capture),
    cmocka_unit_test(global_capture_binds_other_threads),
    cmocka_unit_test(captures_begin_and_end_in_order),
    cmocka_unit_test(graph_memory_stays_until_trimmed),
    cmocka_unit_test(graph_memory_left_allocated_forbids_a_launch),
    cmocka_unit_test(graph_memory_is_given_back_to_other_requests),
    cmocka_unit_test(ordinary_memory_cannot_be_freed_in_a_capture),
    cmocka_unit_test(event_draws_a_stream_into_the_capture),
};
const size_t capture_tests_count = sizeof(capture_tests) / sizeof(capture_tests[0]);
