/* Graphs, their nodes, and the memory of allocation nodes. */

#include "sim_graph.h"

#include <stdlib.h>

#include "sim_capacity.h"
#include "sim_context.h"
#include "sim_stream.h"

#define GRAPH_MAGIC 0x47524131u

static CUgraphNode allocations;
static uint64_t reserved_bytes[SIM_DEVICES_MAX];
static uint64_t high_bytes[SIM_DEVICES_MAX];

CUgraph sim_graph_make(void)
{
    CUgraph graph = calloc(1, sizeof(*graph));
    if (graph == NULL)
        return NULL;
    graph->magic = GRAPH_MAGIC;
    graph->references = 1;
    return graph;
}

static bool has_room(CUgraph graph)
{
    if (graph->node_count < graph->node_capacity)
        return true;
    size_t capacity = graph->node_capacity != 0 ? graph->node_capacity * 2 : 16;
    CUgraphNode *nodes = realloc(graph->nodes, capacity * sizeof(*nodes));
    if (nodes == NULL)
        return false;
    graph->nodes = nodes;
    graph->node_capacity = capacity;
    return true;
}

CUgraphNode sim_graph_add(CUgraph graph, CUgraphNodeType type)
{
    CUgraphNode node = has_room(graph) ? calloc(1, sizeof(*node)) : NULL;
    if (node == NULL)
        return NULL;
    node->type = type;
    node->graph = graph;
    graph->nodes[graph->node_count++] = node;
    return node;
}

CUgraphNode sim_graph_add_allocation(CUgraph graph, int device, uint64_t bytes)
{
    uint64_t rounded = sim_round_up(bytes, SIM_BLOCK_BYTES);
    uint64_t base = rounded >= bytes ? sim_space_map(rounded, true) : 0;
    struct sim_range *range =
        base != 0 ? sim_range_add(SIM_GRAPH_OWNED, base, bytes, device) : NULL;
    CUgraphNode node = range != NULL ? sim_graph_add(graph, CU_GRAPH_NODE_TYPE_MEM_ALLOC) : NULL;
    if (node == NULL) {
        if (range != NULL)
            sim_range_remove(range);
        sim_space_unmap(base, base != 0 ? rounded : 0);
        return NULL;
    }
    range->mapped_bytes = rounded;
    range->owner = node;
    node->range = range;
    node->next = allocations;
    allocations = node;
    return node;
}

static void forget_allocation(CUgraphNode node)
{
    CUgraphNode *link = &allocations;
    while (*link != node)
        link = &(*link)->next;
    *link = node->next;
    sim_space_unmap(node->range->base, node->range->mapped_bytes);
    sim_range_remove(node->range);
    free(node);
}

/* An allocation node outlives its graph until its memory is trimmed [H200]. */
static void drop_node(CUgraphNode node)
{
    node->graph = NULL;
    if (node->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        free(node);
    else if (node->memory == SIM_NODE_BARE)
        forget_allocation(node);
}

void sim_graph_release(CUgraph graph)
{
    if (--graph->references != 0)
        return;
    for (size_t i = 0; i < graph->node_count; i++)
        drop_node(graph->nodes[i]);
    graph->magic = 0;
    free(graph->nodes);
    free(graph);
}

bool sim_graph_node_is_live(const struct sim_range *range)
{
    const struct CUgraphNode_st *node = range->owner;
    return node->memory == SIM_NODE_LIVE;
}

/* Freed memory still counts as used until it is trimmed [H200]. */
void sim_graph_free_node(struct sim_range *range)
{
    CUgraphNode node = range->owner;
    node->memory = SIM_NODE_IDLE;
}

static CUresult launch_allocation(CUgraphNode node)
{
    int device = node->range->device;
    uint64_t bytes = node->range->mapped_bytes;
    if (node->memory == SIM_NODE_BARE) {
        if (!sim_device_take(device, bytes))
            return CUDA_ERROR_OUT_OF_MEMORY;
        reserved_bytes[device] += bytes;
        if (high_bytes[device] < reserved_bytes[device])
            high_bytes[device] = reserved_bytes[device];
    }
    node->memory = SIM_NODE_LIVE;
    return CUDA_SUCCESS;
}

static CUresult launch_node(CUgraphNode node, CUstream stream)
{
    if (node->type == CU_GRAPH_NODE_TYPE_HOST)
        return sim_stream_run(stream, node->function, node->argument);
    if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        return launch_allocation(node);
    if (node->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
        node->allocation->memory = SIM_NODE_IDLE;
    return CUDA_SUCCESS;
}

/* Memory that an earlier launch left allocated forbids the next launch [H200]. */
static bool is_launchable(CUgraph graph, bool auto_free)
{
    for (size_t i = 0; i < graph->node_count; i++)
        if (graph->nodes[i]->memory == SIM_NODE_LIVE && !auto_free)
            return false;
    return true;
}

static void stamp(CUgraph graph, CUstream stream, uint64_t ticket)
{
    for (size_t i = 0; i < graph->node_count; i++) {
        graph->nodes[i]->stream = stream;
        graph->nodes[i]->ticket = ticket;
    }
}

CUresult sim_graph_launch(CUgraph graph, CUstream stream, bool auto_free)
{
    CUresult result = CUDA_SUCCESS;
    if (!is_launchable(graph, auto_free))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < graph->node_count && result == CUDA_SUCCESS; i++)
        result = launch_node(graph->nodes[i], stream);
    stamp(graph, stream, sim_stream_mark(stream));
    return result;
}

static void trim_node(CUgraphNode node)
{
    if (!sim_stream_reached(node->stream, node->ticket))
        return;
    sim_space_drop(node->range->base, node->range->mapped_bytes);
    sim_capacity_give(node->range->device, node->range->mapped_bytes);
    reserved_bytes[node->range->device] -= node->range->mapped_bytes;
    node->memory = SIM_NODE_BARE;
    if (node->graph == NULL)
        forget_allocation(node);
}

void sim_graphs_give_back(int device)
{
    for (CUgraphNode node = allocations, next; node != NULL; node = next) {
        next = node->next;
        if (node->range->device == device && node->memory == SIM_NODE_IDLE)
            trim_node(node);
    }
}

uint64_t sim_graph_bytes(int device)
{
    return reserved_bytes[device];
}

uint64_t sim_graph_high_bytes(int device)
{
    return high_bytes[device];
}

void sim_graph_reset_high(int device)
{
    high_bytes[device] = reserved_bytes[device];
}
