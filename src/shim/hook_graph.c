/*
 * Memory nodes of graphs.  The address is known when the node is made; the
 * memory is taken when the graph is launched, and the driver keeps its own
 * books of it.  The record says whose line of code made the node.
 */
#include "call.h"

static int16_t device_of(const CUmemPoolProps *props)
{
    bool on_device = props->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
                     props->location.id >= 0 && props->location.id < GOS_DEVICE_MAX;

    return on_device ? (int16_t)props->location.id : GOS_DEVICE_CURRENT;
}

static struct gos_call begin(enum gos_entrypoint entry, const CUmemPoolProps *props, size_t bytes)
{
    struct gos_call call = gos_call_begin(entry, GOS_KIND_GRAPH, bytes);

    call.device = device_of(props);
    return call;
}

CUresult CUDAAPI cuGraphAddMemAllocNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                        const CUgraphNode *dependencies, size_t numDependencies,
                                        CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams)
{
    struct gos_call call =
        nodeParams
            ? begin(GOS_EP_cuGraphAddMemAllocNode, &nodeParams->poolProps, nodeParams->bytesize)
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

/* From here on the graph frees it, each time it is launched. */
CUresult CUDAAPI cuGraphAddMemFreeNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                       const CUgraphNode *dependencies, size_t numDependencies,
                                       CUdeviceptr dptr)
{
    struct gos_free free = gos_free_begin(GOS_EP_cuGraphAddMemFreeNode, GOS_SPACE_ADDRESS, dptr);

    return gos_free_end(&free, GOS_REAL(cuGraphAddMemFreeNode)(phGraphNode, hGraph, dependencies,
                                                               numDependencies, dptr));
}

#if CUDA_VERSION >= 12020
/* One call for every sort of node: what it is says the type in its parameters. */
static bool is_node(const CUgraphNodeParams *params, CUgraphNodeType type)
{
    return params && params->type == type;
}

static struct gos_call begin_node(enum gos_entrypoint entry, const CUgraphNodeParams *params)
{
    if (is_node(params, CU_GRAPH_NODE_TYPE_MEM_ALLOC))
        return begin(entry, &params->alloc.poolProps, params->alloc.bytesize);
    return gos_call_begin(entry, GOS_KIND_NONE, 0);
}

static struct gos_free free_node(enum gos_entrypoint entry, const CUgraphNodeParams *params)
{
    bool frees = is_node(params, CU_GRAPH_NODE_TYPE_MEM_FREE);

    return gos_free_begin(entry, GOS_SPACE_ADDRESS, frees ? params->free.dptr : 0);
}

static CUresult node_added(struct gos_call *call, struct gos_free *free, CUresult result,
                           const CUgraphNodeParams *params)
{
    bool allocated = result == CUDA_SUCCESS && is_node(params, CU_GRAPH_NODE_TYPE_MEM_ALLOC);

    if (free->address)
        gos_free_end(free, result);
    return gos_call_made(call, result, allocated ? params->alloc.dptr : 0);
}

CUresult CUDAAPI cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                const CUgraphNode *dependencies, size_t numDependencies,
                                CUgraphNodeParams *nodeParams)
{
    struct gos_call call = begin_node(GOS_EP_cuGraphAddNode, nodeParams);
    struct gos_free free = free_node(GOS_EP_cuGraphAddNode, nodeParams);
    CUresult result;

    do
        result = gos_call_admits(&call, nodeParams)
                     ? GOS_REAL(cuGraphAddNode)(phGraphNode, hGraph, dependencies, numDependencies,
                                                nodeParams)
                     : CUDA_ERROR_OUT_OF_MEMORY;
    while (gos_call_again(&call, result));
    return node_added(&call, &free, result, nodeParams);
}
#endif

#if CUDA_VERSION >= 12030
CUresult CUDAAPI cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
                                   const CUgraphNode *dependencies,
                                   const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                   CUgraphNodeParams *nodeParams)
{
    struct gos_call call = begin_node(GOS_EP_cuGraphAddNode_v2, nodeParams);
    struct gos_free free = free_node(GOS_EP_cuGraphAddNode_v2, nodeParams);
    CUresult result;

    do
        result = gos_call_admits(&call, nodeParams)
                     ? GOS_REAL(cuGraphAddNode_v2)(phGraphNode, hGraph, dependencies,
                                                   dependencyData, numDependencies, nodeParams)
                     : CUDA_ERROR_OUT_OF_MEMORY;
    while (gos_call_again(&call, result));
    return node_added(&call, &free, result, nodeParams);
}
#endif

#if CUDA_VERSION >= 13040
CUresult CUDAAPI cuGraphAddNode_v3(CUgraphNode *phGraphNode, CUgraph hGraph,
                                   const CUgraphNode *dependencies,
                                   const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                   CUgraphNodeParams *nodeParams)
{
    struct gos_call call = begin_node(GOS_EP_cuGraphAddNode_v3, nodeParams);
    struct gos_free free = free_node(GOS_EP_cuGraphAddNode_v3, nodeParams);
    CUresult result;

    do
        result = gos_call_admits(&call, nodeParams)
                     ? GOS_REAL(cuGraphAddNode_v3)(phGraphNode, hGraph, dependencies,
                                                   dependencyData, numDependencies, nodeParams)
                     : CUDA_ERROR_OUT_OF_MEMORY;
    while (gos_call_again(&call, result));
    return node_added(&call, &free, result, nodeParams);
}
#endif
