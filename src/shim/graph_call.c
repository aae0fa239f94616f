#include "graph_call.h"

#include <errno.h>

#include "../track/history.h"
#include "../track/pool.h"
#include "place.h"

static uint64_t number(const void *handle)
{
    return (uint64_t)(uintptr_t)handle;
}

void gos_graph_note_free(enum gos_entrypoint entry, CUresult result, CUgraph graph,
                         CUdeviceptr address)
{
    int saved = errno;

    if (!gos_call_tracks())
        return;
    gos_thread.depth++;
    if (result != CUDA_SUCCESS)
        gos_call_note(entry, result);
    else
        gos_graph_frees(number(graph), address);
    gos_thread.depth--;
    errno = saved;
}

static void note_end(void (*ended)(uint64_t), uint64_t handle)
{
    int saved = errno;

    if (!gos_graph_any() || !gos_call_tracks())
        return;
    gos_thread.depth++;
    ended(handle);
    gos_thread.depth--;
    errno = saved;
}

void gos_graph_note_destroyed(CUgraph graph)
{
    note_end(gos_graph_destroyed, number(graph));
}

void gos_graph_note_exec_destroyed(CUgraphExec exec)
{
    note_end(gos_graph_exec_destroyed, number(exec));
}

void gos_graph_instantiated_slow(CUgraph graph, const CUgraphExec *exec)
{
    int saved = errno;

    if (!exec || !gos_call_tracks())
        return;
    gos_thread.depth++;
    gos_graph_instantiated(number(graph), number(*exec));
    gos_thread.depth--;
    errno = saved;
}

/* Into a capture the launch becomes a node, and nothing runs. */
static void launch(CUgraphExec exec, uint64_t stream, bool per_thread)
{
    if (!gos_capture_includes(stream, per_thread) &&
        gos_graph_launched(number(exec), gos_place_of_context()->home))
        gos_history_tick();
}

void gos_graph_launched_slow(CUgraphExec exec, CUstream stream, bool per_thread)
{
    int saved = errno;

    if (!gos_call_tracks())
        return;
    gos_thread.depth++;
    launch(exec, number(stream), per_thread);
    gos_thread.depth--;
    errno = saved;
}
