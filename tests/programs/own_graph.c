/*
 * Memory that belongs to graphs: nodes made by hand, with and without a free
 * node, and an allocation that was captured.
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
    own_graph += bytes;
    return params.dptr;
}

static void run(CUgraph graph)
{
    CUgraphExec exec = NULL;

    outcome("instantiate", driver.graph_instantiate(&exec, graph, 0));
    outcome("launch", driver.graph_launch(exec, stream));
    outcome("synchronize", driver.stream_synchronize(stream));
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
    own_graph -= 6 * MIB;
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
    tell("kept");
    outcome("free", driver.mem_free(memory));
    own_graph -= 10 * MIB;
    tell("freed");
}

static void captured(void)
{
    CUdeviceptr memory = 0;
    CUgraph graph = NULL;

    MUST(driver.capture_begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    outcome("async in a capture", driver.mem_alloc_async(&memory, 4 * MIB, stream));
    own_graph += 4 * MIB;
    MUST(driver.capture_end(stream, &graph));
    run(graph);
    tell("captured");
    outcome("free", driver.mem_free_async(memory, stream));
    MUST(driver.stream_synchronize(stream));
    own_graph -= 4 * MIB;
    tell("uncaptured");
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
    captured();
    MUST(driver.mem_free(beside));
    own_device = 0;
    tell("end");
    return 0;
}
