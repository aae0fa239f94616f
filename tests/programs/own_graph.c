/*
 * Memory that belongs to graphs is there from a launch until it is freed: nodes
 * made by hand, allocations that were captured, graphs that are launched never,
 * once and again, captures that fail.
 *   own_graph FOLDER for snapshots
 */
#define HOST_FUNCTIONS(F)                                                                          \
    F(graph_create, cuGraphCreate)                                                                 \
    F(graph_destroy, cuGraphDestroy)                                                               \
    F(graph_alloc, cuGraphAddMemAllocNode)                                                         \
    F(graph_free, cuGraphAddMemFreeNode)                                                           \
    F(graph_instantiate, cuGraphInstantiate)                                                       \
    F(graph_launch, cuGraphLaunch)                                                                 \
    F(exec_destroy, cuGraphExecDestroy)                                                            \
    F(capture_begin, cuStreamBeginCapture)                                                         \
    F(capture_end, cuStreamEndCapture)

#include "own.h"

static const char *folder;
static CUstream stream;
static size_t own_graph;
static size_t own_device;

static void tell(const char *moment)
{
    tell_books(moment, 0, own_device);
    tell_kind(folder, moment, "graph", own_graph);
}

static CUdeviceptr add_allocation(CUgraph graph, CUgraphNode *node, size_t bytes)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = on_device(0)},
        .bytesize = bytes};

    MUST(driver.graph_alloc(node, graph, NULL, 0, &params));
    return params.dptr;
}

static void launch(CUgraphExec exec)
{
    outcome("launch", driver.graph_launch(exec, stream));
    outcome("synchronize", driver.stream_synchronize(stream));
}

static void run(CUgraph graph)
{
    CUgraphExec exec = NULL;

    outcome("instantiate", driver.graph_instantiate(&exec, graph, 0));
    launch(exec);
    MUST(driver.exec_destroy(exec));
    MUST(driver.graph_destroy(graph));
}

static void graph_that_frees(void)
{
    CUgraphNode allocation = NULL, release = NULL;
    CUgraph graph = NULL;

    MUST(driver.graph_create(&graph, 0));
    CUdeviceptr memory = add_allocation(graph, &allocation, 6 * MIB);
    tell("node");
    MUST(driver.graph_free(&release, graph, &allocation, 1, memory));
    run(graph);
    tell("ran");
}

static void graph_that_keeps(void)
{
    CUgraphNode allocation = NULL;
    CUgraph graph = NULL;

    MUST(driver.graph_create(&graph, 0));
    CUdeviceptr memory = add_allocation(graph, &allocation, 10 * MIB);
    run(graph);
    own_graph += 10 * MIB;
    tell("kept");
    outcome("free", driver.mem_free(memory));
    own_graph -= 10 * MIB;
    tell("freed");
}

static void graph_that_another_frees(void)
{
    CUgraphNode allocation = NULL, release = NULL;
    CUgraph graph = NULL, other = NULL;

    MUST(driver.graph_create(&graph, 0));
    MUST(driver.graph_create(&other, 0));
    CUdeviceptr memory = add_allocation(graph, &allocation, 12 * MIB);
    MUST(driver.graph_free(&release, other, NULL, 0, memory));
    run(graph);
    own_graph += 12 * MIB;
    tell("unfreed");
    run(other);
    own_graph -= 12 * MIB;
    tell("freedbyother");
}

static CUgraph capture(CUdeviceptr *memory, size_t bytes, bool frees)
{
    CUgraph graph = NULL;

    MUST(driver.capture_begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    outcome("async in a capture", driver.mem_alloc_async(memory, bytes, stream));
    if (frees)
        outcome("free in a capture", driver.mem_free_async(*memory, stream));
    MUST(driver.capture_end(stream, &graph));
    return graph;
}

static void captured(void)
{
    CUdeviceptr memory = 0;

    run(capture(&memory, 4 * MIB, false));
    own_graph += 4 * MIB;
    tell("captured");
    outcome("free", driver.mem_free_async(memory, stream));
    MUST(driver.stream_synchronize(stream));
    own_graph -= 4 * MIB;
    tell("uncaptured");
    run(capture(&memory, 4 * MIB, true));
    tell("capturedfree");
}

static void captured_and_never_launched(void)
{
    CUdeviceptr memory = 0;
    CUgraph graph = capture(&memory, 64 * MIB, false);

    tell("unlaunched");
    MUST(driver.graph_destroy(graph));
    tell("destroyed");
}

static void capture_that_fails(void)
{
    CUdeviceptr memory = 0, forbidden = 0;
    CUgraph graph = NULL;

    MUST(driver.capture_begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    outcome("async in a capture", driver.mem_alloc_async(&memory, 32 * MIB, stream));
    outcome("what a capture forbids", driver.mem_alloc(&forbidden, MIB));
    outcome("end", driver.capture_end(stream, &graph));
    tell("failed");
}

static void launched_again_after_a_free(void)
{
    CUdeviceptr memory = 0;
    CUgraph graph = capture(&memory, 8 * MIB, false);
    CUgraphExec exec = NULL;

    MUST(driver.graph_instantiate(&exec, graph, 0));
    MUST(driver.graph_destroy(graph));
    for (int i = 0; i < 2; i++) {
        launch(exec);
        own_graph += 8 * MIB;
        tell(i ? "again" : "first");
        outcome("free", driver.mem_free_async(memory, stream));
        MUST(driver.stream_synchronize(stream));
        own_graph -= 8 * MIB;
        tell(i ? "freedagain" : "freedfirst");
    }
    MUST(driver.exec_destroy(exec));
}

int main(int count, char **words)
{
    CUdeviceptr beside = 0;

    folder = count > 1 ? words[1] : ".";
    open_device();
    MUST(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
    MUST(driver.mem_alloc(&beside, 3 * MIB));
    own_device = 3 * MIB;
    graph_that_frees();
    graph_that_keeps();
    graph_that_another_frees();
    captured();
    captured_and_never_launched();
    capture_that_fails();
    launched_again_after_a_free();
    MUST(driver.mem_free(beside));
    own_device = 0;
    tell("end");
    return 0;
}
