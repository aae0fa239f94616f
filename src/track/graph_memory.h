/*
 * Memory nodes of graphs.  A node's address is known when the node is made; its
 * memory is there once the graph was launched, and until it is freed.  So nodes
 * are kept here, by graph, and each launch is played on the registry: what the
 * graph allocates gets a record, what it frees loses its own.
 *
 * A graph's nodes go with the graph and with what was instantiated of it.
 *
 * Hook context: yes.  While no graph with memory nodes is known, asking costs
 * one load, and all functions but gos_graph_allocates and gos_graph_frees end there.
 */
#ifndef GOS_TRACK_GRAPH_MEMORY_H
#define GOS_TRACK_GRAPH_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "registry.h"

extern _Atomic uint32_t gos_graph_count; /* graphs with memory nodes */
static inline bool gos_graph_any(void)
{
    return atomic_load_explicit(&gos_graph_count, memory_order_relaxed) != 0;
}

/* A node of the graph, a CUgraph other than 0, allocates this; its home is not looked at. */
void gos_graph_allocates(uint64_t graph, const struct gos_allocation *allocation);
/* A node of the graph frees that, which may be another graph's. */
void gos_graph_frees(uint64_t graph, uint64_t address);
/* No graph has this number any more. */
void gos_graph_destroyed(uint64_t graph);

/* The CUgraphExec does what the graph's nodes up to now say. */
void gos_graph_instantiated(uint64_t graph, uint64_t exec);
void gos_graph_exec_destroyed(uint64_t exec);
/*
 * What it allocates is in that home; memory that is live already stays as it is
 * (freed by the launch itself).  True if the graph has memory nodes.
 */
bool gos_graph_launched(uint64_t exec, uint16_t home);

void gos_graph_reset_after_fork(void); /* by gos_pool_reset_after_fork */

#endif
