/*
 * Memory nodes of graphs.  The address is known when the node is made; the
 * memory is taken when the graph is launched, and the driver keeps its own
 * books of it.  The record says whose line of code made the node.
 */
#include "graph_call.h"

static int16_t device_of(const CUmemPoolProps *props)
{
    bool on_device = props->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
                     props->location.id >= 0 && props->location.id < GOS_DEVICE_MAX;

    return on_device ? (int16_t)props->location.id : GOS_DEVICE_CURRENT;
}

static uint64_t number(CUgraph graph)
{
    return (uint64_t)(uintptr_t)graph;
}

static struct gos_call begin(enum gos_entrypoint entry, CUgraph graph, const CUmemPoolProps *props,
                             size_t bytes)
{
    struct gos_call call = gos_call_begin(entry, GOS_KIND_GRAPH, bytes);

    call.pool = number(graph);
    call.device = device_of(props);
    return call;
}

CUresult CUDAAPI cuGraphAddMemAllocNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                        const CUgraphNode *dependencies, size_t numDependencies,
                                        CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams)
{
    struct gos_call call = nodeParams
                               ? begin(GOS_EP_cuGraphAddMemAllocNode, hGraph,
                                       &nodeParams->poolProps, nodeParams->bytesize)
                               : gos_call_begin(GOS_EP_cuGraphAddMemAllocNode, GOS_KIND_NONE, 0);
    CUresult result;

    do
        result = gos_call_admits(&call, nodeParams)
                     ? GOS_REAL(cuGraphAddMemAllocNode)(phGraphNode, hGraph, dependencies,
                                                        numDependencies, nodeParams)
                     : CUDA_ERROR_OUT_OF_MEMORY;
    while (gos_call_again(&call, result));
    return gos_call_made(&call, result,
                         result == CUDA_SUCCESS && nodeParams ? nodeParams->dptr : 0);
}

CUresult CUDAAPI cuGraphAddMemFreeNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                       const CUgraphNode *dependencies, size_t numDependencies,
                                       CUdeviceptr dptr)
{
    CUresult result =
        GOS_REAL(cuGraphAddMemFreeNode)(phGraphNode, hGraph, dependencies, numDependencies, dptr);

    gos_graph_note_free(GOS_EP_cuGraphAddMemFreeNode, result, hGraph, dptr);
    return result;
}

/*
 * Before the driver: afterwards the number may already be another thread's new
 * graph.  A graph that is there is not refused its end.
 */
CUresult CUDAAPI cuGraphDestroy(CUgraph hGraph)
{
    gos_graph_note_destroyed(hGraph);
    return GOS_REAL(cuGraphDestroy)(hGraph);
}

CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec hGraphExec)
{
    gos_graph_note_exec_destroyed(hGraphExec);
    return GOS_REAL(cuGraphExecDestroy)(hGraphExec);
}

/* One call for every sort of node: what it is says the type in its parameters. */
static bool is_node(const CUgraphNodeParams *params, CUgraphNodeType type)
{
    return params && params->type == type;
}

static struct gos_call begin_node(enum gos_entrypoint entry, CUgraph graph,
                                  const CUgraphNodeParams *params)
{
    if (is_node(params, CU_GRAPH_NODE_TYPE_MEM_ALLOC))
        return begin(entry, graph, &params->alloc.poolProps, params->alloc.bytesize);
    return gos_call_begin(entry, GOS_KIND_NONE, 0);
}

static CUresult node_added(struct gos_call *call, CUresult result, CUgraph graph,
                           const CUgraphNodeParams *params)
{
    bool allocated = result == CUDA_SUCCESS && is_node(params, CU_GRAPH_NODE_TYPE_MEM_ALLOC);

    if (is_node(params, CU_GRAPH_NODE_TYPE_MEM_FREE))
        gos_graph_note_free((enum gos_entrypoint)call->entry, result, graph, params->free.dptr);
    return gos_call_made(call, result, allocated ? params->alloc.dptr : 0);
}

CUresult CUDAAPI cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                const CUgraphNode *dependencies, size_t numDependencies,
                                CUgraphNodeParams *nodeParams)
{
    struct gos_call call = begin_node(GOS_EP_cuGraphAddNode, hGraph, nodeParams);
    CUresult result;

    do
        result = gos_call_admits(&call, nodeParams)
                     ? GOS_REAL(cuGraphAddNode)(phGraphNode, hGraph, dependencies, numDependencies,
                                                nodeParams)
                     : CUDA_ERROR_OUT_OF_MEMORY;
    while (gos_call_again(&call, result));
    return node_added(&call, result, hGraph, nodeParams);
}

CUresult CUDAAPI cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
                                   const CUgraphNode *dependencies,
                                   const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                   CUgraphNodeParams *nodeParams)
{
    struct gos_call call = begin_node(GOS_EP_cuGraphAddNode_v2, hGraph, nodeParams);
    CUresult result;

    do
        result = gos_call_admits(&call, nodeParams)
                     ? GOS_REAL(cuGraphAddNode_v2)(phGraphNode, hGraph, dependencies,
                                                   dependencyData, numDependencies, nodeParams)
                     : CUDA_ERROR_OUT_OF_MEMORY;
    while (gos_call_again(&call, result));
    return node_added(&call, result, hGraph, nodeParams);
}

CUresult CUDAAPI cuGraphAddNode_v3(CUgraphNode *phGraphNode, CUgraph hGraph,
                                   const CUgraphNode *dependencies,
                                   const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                   CUgraphNodeParams *nodeParams)
{
    struct gos_call call = begin_node(GOS_EP_cuGraphAddNode_v3, hGraph, nodeParams);
    CUresult result;

    do
        result = gos_call_admits(&call, nodeParams)
                     ? GOS_REAL(cuGraphAddNode_v3)(phGraphNode, hGraph, dependencies,
                                                   dependencyData, numDependencies, nodeParams)
                     : CUDA_ERROR_OUT_OF_MEMORY;
    while (gos_call_again(&call, result));
    return node_added(&call, result, hGraph, nodeParams);
}
