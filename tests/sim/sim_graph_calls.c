/* Entry points of graphs: building by hand, instantiating, launching, memory attributes. */

#include <stdlib.h>

#include "sim_call.h"
#include "sim_context.h"
#include "sim_graph.h"
#include "sim_stream.h"

struct CUgraphExec_st {
    CUgraph graph;
    bool auto_free;
};

static CUresult create(CUgraph *out)
{
    *out = sim_graph_make();
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult destroy(CUgraph graph)
{
    if (graph == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    sim_graph_release(graph);
    return CUDA_SUCCESS;
}

static CUresult instantiate(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
    if (out == NULL || graph == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphExec exec = calloc(1, sizeof(*exec));
    if (exec == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    graph->references++;
    exec->graph = graph;
    exec->auto_free = (flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
    *out = exec;
    return CUDA_SUCCESS;
}

static CUresult instantiate_with(CUgraphExec *out, CUgraph graph,
                                 CUDA_GRAPH_INSTANTIATE_PARAMS *parameters)
{
    parameters->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    return instantiate(out, graph, parameters->flags);
}

static CUresult launch(CUgraphExec exec, CUstream stream)
{
    if (exec == NULL || stream == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture != NULL)
        return sim_capture_work(stream, CU_GRAPH_NODE_TYPE_GRAPH);
    return sim_graph_launch(exec->graph, stream, exec->auto_free);
}

static CUresult destroy_exec(CUgraphExec exec)
{
    if (exec == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    sim_graph_release(exec->graph);
    free(exec);
    return CUDA_SUCCESS;
}

static CUresult get_nodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    size_t room = nodes != NULL ? *count : 0;
    for (size_t i = 0; i < room && i < graph->node_count; i++)
        nodes[i] = graph->nodes[i];
    if (nodes == NULL || room > graph->node_count)
        *count = graph->node_count;
    return CUDA_SUCCESS;
}

static CUresult get_type(CUgraphNode node, CUgraphNodeType *type)
{
    *type = node->type;
    return CUDA_SUCCESS;
}

static CUresult add_empty(CUgraphNode *out, CUgraph graph)
{
    *out = sim_graph_add(graph, CU_GRAPH_NODE_TYPE_EMPTY);
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult add_host(CUgraphNode *out, CUgraph graph, const CUDA_HOST_NODE_PARAMS *parameters)
{
    *out = sim_graph_add(graph, CU_GRAPH_NODE_TYPE_HOST);
    if (*out == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*out)->function = parameters->fn;
    (*out)->argument = parameters->userData;
    return CUDA_SUCCESS;
}

static CUresult add_allocation(CUgraphNode *out, CUgraph graph,
                               CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
    int device = parameters->poolProps.location.id;
    if (parameters->bytesize == 0 || !sim_device_exists(device))
        return CUDA_ERROR_INVALID_VALUE;
    *out = sim_graph_add_allocation(graph, device, parameters->bytesize);
    if (*out == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    parameters->dptr = (*out)->range->base;
    return CUDA_SUCCESS;
}

static CUresult add_free(CUgraphNode *out, CUgraph graph, CUdeviceptr address)
{
    const struct sim_range *range = sim_range_at(address);
    if (range == NULL || range->kind != SIM_GRAPH_OWNED)
        return CUDA_ERROR_INVALID_VALUE;
    *out = sim_graph_add(graph, CU_GRAPH_NODE_TYPE_MEM_FREE);
    if (*out == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*out)->allocation = range->owner;
    return CUDA_SUCCESS;
}

static CUresult get_allocation(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
    if (node->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        return CUDA_ERROR_INVALID_VALUE;
    *parameters = (CUDA_MEM_ALLOC_NODE_PARAMS){0};
    parameters->poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    parameters->poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    parameters->poolProps.location.id = node->range->device;
    parameters->bytesize = (size_t)node->range->bytes;
    parameters->dptr = node->range->base;
    return CUDA_SUCCESS;
}

static CUresult get_free(CUgraphNode node, CUdeviceptr *address)
{
    if (node->type != CU_GRAPH_NODE_TYPE_MEM_FREE)
        return CUDA_ERROR_INVALID_VALUE;
    *address = node->allocation->range->base;
    return CUDA_SUCCESS;
}

static CUresult trim(int device)
{
    if (!sim_device_exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    sim_graphs_give_back(device);
    return CUDA_SUCCESS;
}

static CUresult get_attribute(int device, CUgraphMem_attribute attribute, void *value)
{
    bool is_high = attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH ||
                   attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
    if (!sim_device_exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *(cuuint64_t *)value = is_high ? sim_graph_high_bytes(device) : sim_graph_bytes(device);
    return CUDA_SUCCESS;
}

static CUresult reset_high(int device)
{
    if (!sim_device_exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    sim_graph_reset_high(device);
    return CUDA_SUCCESS;
}

CUresult cuGraphCreate(CUgraph *graph, unsigned int flags)
{
    (void)flags;
    return SIM_CALL(cuGraphCreate, SIM_READY, create(graph));
}

CUresult cuGraphDestroy(CUgraph graph)
{
    return SIM_CALL(cuGraphDestroy, SIM_READY, destroy(graph));
}

CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node, char *log,
                            size_t log_bytes)
{
    (void)error_node;
    (void)log;
    (void)log_bytes;
    return SIM_CALL(cuGraphInstantiate, SIM_CONTEXT, instantiate(exec, graph, 0));
}

CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node, char *log,
                               size_t log_bytes)
{
    (void)error_node;
    (void)log;
    (void)log_bytes;
    return SIM_CALL(cuGraphInstantiate_v2, SIM_CONTEXT, instantiate(exec, graph, 0));
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    return SIM_CALL(cuGraphInstantiateWithFlags, SIM_CONTEXT, instantiate(exec, graph, flags));
}

SIM_TWO_CALLS(cuGraphInstantiateWithParams, ptsz,
              (CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters),
              SIM_CONTEXT, instantiate_with(exec, graph, parameters))
SIM_TWO_CALLS(cuGraphUpload, ptsz, (CUgraphExec exec, CUstream stream), SIM_CONTEXT,
              ((void)exec, (void)stream, CUDA_SUCCESS))
SIM_TWO_CALLS(cuGraphLaunch, ptsz, (CUgraphExec exec, CUstream stream), SIM_CONTEXT,
              launch(exec, sim_stream_find(stream, per_thread)))

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    return SIM_CALL(cuGraphExecDestroy, SIM_READY, destroy_exec(exec));
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    return SIM_CALL(cuGraphGetNodes, SIM_READY, get_nodes(graph, nodes, count));
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
    return SIM_CALL(cuGraphNodeGetType, SIM_READY, get_type(node, type));
}

CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                             size_t count)
{
    (void)dependencies;
    (void)count;
    return SIM_CALL(cuGraphAddEmptyNode, SIM_READY, add_empty(node, graph));
}

CUresult cuGraphAddHostNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                            size_t count, const CUDA_HOST_NODE_PARAMS *parameters)
{
    (void)dependencies;
    (void)count;
    return SIM_CALL(cuGraphAddHostNode, SIM_READY, add_host(node, graph, parameters));
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
    (void)dependencies;
    (void)count;
    return SIM_CALL(cuGraphAddMemAllocNode, SIM_READY, add_allocation(node, graph, parameters));
}

CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                               size_t count, CUdeviceptr address)
{
    (void)dependencies;
    (void)count;
    return SIM_CALL(cuGraphAddMemFreeNode, SIM_READY, add_free(node, graph, address));
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
    return SIM_CALL(cuGraphMemAllocNodeGetParams, SIM_READY, get_allocation(node, parameters));
}

CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr *address)
{
    return SIM_CALL(cuGraphMemFreeNodeGetParams, SIM_READY, get_free(node, address));
}

CUresult cuDeviceGraphMemTrim(CUdevice device)
{
    return SIM_CALL(cuDeviceGraphMemTrim, SIM_READY, trim(device));
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value)
{
    return SIM_CALL(cuDeviceGetGraphMemAttribute, SIM_READY,
                    get_attribute(device, attribute, value));
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value)
{
    (void)attribute;
    (void)value;
    return SIM_CALL(cuDeviceSetGraphMemAttribute, SIM_READY, reset_high(device));
}
