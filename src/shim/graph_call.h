/*
 * What graphs do to the books (track/graph_memory.h), as their hooks tell it.
 *
 * Hook context.  While no graph with memory nodes is known, all of it costs a branch.
 */
#ifndef GOS_SHIM_GRAPH_CALL_H
#define GOS_SHIM_GRAPH_CALL_H

#include "../track/graph_memory.h"
#include "call.h"

/* A node that frees was added, or refused. */
void gos_graph_note_free(enum gos_entrypoint entry, CUresult result, CUgraph graph,
                         CUdeviceptr address);

/* They are about to be destroyed. */
void gos_graph_note_destroyed(CUgraph graph);
void gos_graph_note_exec_destroyed(CUgraphExec exec);

void gos_graph_instantiated_slow(CUgraph graph, const CUgraphExec *exec);
static inline void gos_graph_note_instantiated(CUgraph graph, const CUgraphExec *exec)
{
    if (__builtin_expect(gos_graph_any(), 0))
        gos_graph_instantiated_slow(graph, exec);
}

void gos_graph_launched_slow(CUgraphExec exec, CUstream stream, bool per_thread);
static inline void gos_graph_note_launched(CUgraphExec exec, CUstream stream, bool per_thread)
{
    if (__builtin_expect(gos_graph_any(), 0))
        gos_graph_launched_slow(exec, stream, per_thread);
}

#endif
