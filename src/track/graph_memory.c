#include "graph_memory.h"

#include <stddef.h>
#include <string.h>

#include "../base/hot.h"
#include "../base/lock.h"
#include "../base/loss.h"
#include "table.h"

/* Nodes in the order in which they were made, in which each comes after what it depends on. */
struct node {
    struct gos_allocation allocation; /* of kind NONE: frees the address */
    struct node *next;
};

struct graph {
    struct node *first, *last;
    uint32_t node_count;
    uint32_t references; /* its own and one for each CUgraphExec */
    UT_hash_handle hh;   /* key: the CUgraph, until that is destroyed */
};

struct exec {
    struct graph *graph;
    uint32_t node_count; /* later nodes of the graph are not in it */
    UT_hash_handle hh;   /* key: the CUgraphExec */
};

#define KEY_LENGTH 8 /* any: these tables hold one kind of number each */

GOS_READ_MOSTLY _Atomic uint32_t gos_graph_count;

static struct gos_lock lock = GOS_LOCK_INIT(GOS_RANK_POOL);
static struct graph *graphs;
static struct exec *execs;
static struct gos_slab node_slab = {.object_bytes = sizeof(struct node)};
static struct gos_slab graph_slab = {.object_bytes = sizeof(struct graph)};
static struct gos_slab exec_slab = {.object_bytes = sizeof(struct exec)};

static struct graph *find_graph(uint64_t number)
{
    uint32_t hash = gos_table_hash(gos_table_mix(number));
    struct graph *graph;

    HASH_FIND_BYHASHVALUE(hh, graphs, gos_table_key(number), KEY_LENGTH, hash, graph);
    return graph;
}

static struct exec *find_exec(uint64_t number)
{
    uint32_t hash = gos_table_hash(gos_table_mix(number));
    struct exec *exec;

    HASH_FIND_BYHASHVALUE(hh, execs, gos_table_key(number), KEY_LENGTH, hash, exec);
    return exec;
}

/* Only under the lock. */
static void change_count(uint32_t change)
{
    uint32_t count = atomic_load_explicit(&gos_graph_count, memory_order_relaxed);

    atomic_store_explicit(&gos_graph_count, count + change, memory_order_relaxed);
}

static struct graph *new_graph(uint64_t number)
{
    uint32_t hash = gos_table_hash(gos_table_mix(number));
    struct graph *graph = gos_slab_take(&graph_slab);

    if (!graph)
        return NULL;
    memset(graph, 0, sizeof(*graph));
    graph->references = 1;
    HASH_ADD_KEYPTR_BYHASHVALUE(hh, graphs, gos_table_key(number), KEY_LENGTH, hash, graph);
    if (!graph->hh.tbl) {
        gos_slab_give(&graph_slab, graph);
        return NULL;
    }
    change_count(1);
    return graph;
}

static void append(struct graph *graph, struct node *node)
{
    if (graph->last)
        graph->last->next = node;
    else
        graph->first = node;
    graph->last = node;
    graph->node_count++;
}

static void add(uint64_t number, const struct gos_allocation *allocation)
{
    struct node *node = gos_slab_take(&node_slab);
    struct graph *graph = node ? find_graph(number) : NULL;

    if (node && !graph)
        graph = new_graph(number);
    if (graph) {
        *node = (struct node){*allocation, NULL};
        append(graph, node);
        return;
    }
    if (node)
        gos_slab_give(&node_slab, node);
    gos_loss_count(GOS_LOSS_MEMORY);
}

void gos_graph_allocates(uint64_t graph, const struct gos_allocation *allocation)
{
    gos_lock_acquire(&lock);
    add(graph, allocation);
    gos_lock_release(&lock);
}

void gos_graph_frees(uint64_t graph, uint64_t address)
{
    struct gos_allocation freed = {.address = address, .kind = GOS_KIND_NONE};

    gos_lock_acquire(&lock);
    add(graph, &freed);
    gos_lock_release(&lock);
}

static void let_go(struct graph *graph)
{
    struct node *next;

    if (--graph->references)
        return;
    for (struct node *node = graph->first; node; node = next) {
        next = node->next;
        gos_slab_give(&node_slab, node);
    }
    gos_slab_give(&graph_slab, graph);
    change_count(-1u);
}

void gos_graph_destroyed(uint64_t number)
{
    struct graph *graph;

    if (!gos_graph_any())
        return;
    gos_lock_acquire(&lock);
    graph = find_graph(number);
    if (graph) {
        HASH_DELETE(hh, graphs, graph);
        let_go(graph);
    }
    gos_lock_release(&lock);
}

static void forget_exec(struct exec *exec)
{
    HASH_DELETE(hh, execs, exec);
    let_go(exec->graph);
    gos_slab_give(&exec_slab, exec);
}

static void new_exec(struct graph *graph, uint64_t number)
{
    uint32_t hash = gos_table_hash(gos_table_mix(number));
    struct exec *exec = gos_slab_take(&exec_slab);

    if (exec) {
        memset(exec, 0, sizeof(*exec));
        exec->graph = graph;
        exec->node_count = graph->node_count;
        HASH_ADD_KEYPTR_BYHASHVALUE(hh, execs, gos_table_key(number), KEY_LENGTH, hash, exec);
    }
    if (exec && exec->hh.tbl) {
        graph->references++;
        return;
    }
    if (exec)
        gos_slab_give(&exec_slab, exec);
    gos_loss_count(GOS_LOSS_MEMORY);
}

void gos_graph_instantiated(uint64_t number, uint64_t exec_number)
{
    struct graph *graph;
    struct exec *stale;

    if (!gos_graph_any())
        return;
    gos_lock_acquire(&lock);
    graph = find_graph(number);
    stale = find_exec(exec_number);
    if (stale)
        forget_exec(stale);
    if (graph)
        new_exec(graph, exec_number);
    gos_lock_release(&lock);
}

void gos_graph_exec_destroyed(uint64_t number)
{
    struct exec *exec;

    if (!gos_graph_any())
        return;
    gos_lock_acquire(&lock);
    exec = find_exec(number);
    if (exec)
        forget_exec(exec);
    gos_lock_release(&lock);
}

static void play(const struct node *node, uint16_t home)
{
    struct gos_allocation live, allocation = node->allocation;
    bool is_live = gos_registry_find(GOS_SPACE_ADDRESS, allocation.address, &live) &&
                   live.kind == GOS_KIND_GRAPH;

    allocation.home = home;
    if (allocation.kind != GOS_KIND_NONE && !is_live)
        gos_registry_add(&allocation);
    else if (allocation.kind == GOS_KIND_NONE && is_live)
        gos_registry_take(GOS_SPACE_ADDRESS, allocation.address, &live);
}

bool gos_graph_launched(uint64_t number, uint16_t home)
{
    const struct exec *exec;

    if (!gos_graph_any())
        return false;
    gos_lock_acquire(&lock);
    exec = find_exec(number);
    if (exec) {
        const struct node *node = exec->graph->first;

        for (uint32_t i = 0; i < exec->node_count; i++, node = node->next)
            play(node, home);
    }
    gos_lock_release(&lock);
    return exec != NULL;
}

void gos_graph_reset_after_fork(void)
{
    gos_lock_reset(&lock);
    graphs = NULL;
    execs = NULL;
    node_slab = (struct gos_slab){.object_bytes = sizeof(struct node)};
    graph_slab = (struct gos_slab){.object_bytes = sizeof(struct graph)};
    exec_slab = (struct gos_slab){.object_bytes = sizeof(struct exec)};
    atomic_store_explicit(&gos_graph_count, 0, memory_order_relaxed);
}
