/* Stream capture, and the graphs that come of it. */
#include <string.h>

#include "diff_world.h"

static struct diff_graph *graph_of(long long number)
{
    return &world.graphs[diff_slot(number, DIFF_GRAPHS)];
}

static void begin(const struct diff_step *step)
{
    int slot = diff_slot(step->a, DIFF_STREAMS);
    CUstreamCaptureMode mode = (CUstreamCaptureMode)diff_slot(step->b, 3);

    if (slot < 2 || world.streams[slot].handle == NULL || world.capturing >= 0 ||
        world.anything_held)
        return;
    CUresult result = cu.capture_begin(world.streams[slot].handle, mode);
    diff_result(result);
    if (result != CUDA_SUCCESS)
        return;
    world.capturing = slot;
    world.capture_thread = step->thread;
    world.numbers_before_capture = world.numbers;
    world.streams[slot].in_capture = true;
}

/* What a capture without a graph had allocated has never been there. */
static void forget_memory_of_capture(void)
{
    for (int i = 0; i < DIFF_MEMORIES; i++)
        if (world.memories[i].family == DIFF_GRAPH &&
            world.memories[i].number > world.numbers_before_capture)
            memset(&world.memories[i], 0, sizeof(world.memories[i]));
}

static void forget_capture(void)
{
    world.capturing = -1;
    for (int i = 0; i < DIFF_STREAMS; i++)
        world.streams[i].in_capture = false;
    for (int i = 0; i < DIFF_EVENTS; i++)
        world.events[i].in_capture = false;
}

static void end(const struct diff_step *step)
{
    struct diff_graph *graph = graph_of(step->a);
    CUgraph made = NULL;

    if (world.capturing < 0 || world.capture_thread != step->thread || graph->graph != NULL)
        return;
    CUresult result = cu.capture_end(world.streams[world.capturing].handle, &made);
    diff_result(result);
    if (result == CUDA_ERROR_INVALID_CONTEXT) /* none current: the capture goes on */
        return;
    diff_say(" graph %d", made != NULL);
    graph->graph = made;
    forget_capture();
    if (made == NULL)
        forget_memory_of_capture();
}

void diff_end_capture(void)
{
    CUgraph graph = NULL;

    if (world.capturing < 0)
        return;
    diff_result(cu.capture_end(world.streams[world.capturing].handle, &graph));
    if (graph != NULL)
        cu.graph_destroy(graph);
    forget_capture();
    forget_memory_of_capture();
}

/* Its addresses are valid for as long as their graph is. */
static bool owns_memory(void)
{
    for (int i = 0; i < DIFF_MEMORIES; i++)
        if (world.memories[i].family == DIFF_GRAPH)
            return true;
    return false;
}

/* The thread's own attitude to captures; given back by the same step with the mode 0. */
static void change_mode(const struct diff_step *step)
{
    CUstreamCaptureMode mode = (CUstreamCaptureMode)diff_slot(step->a, 3);

    diff_result(cu.capture_mode(&mode));
    diff_say(" was %d", (int)mode);
}

static void instantiate(const struct diff_step *step)
{
    struct diff_graph *graph = graph_of(step->a);

    if (graph->graph == NULL || graph->exec != NULL)
        return;
    diff_result(cu.graph_instantiate(
        &graph->exec, graph->graph,
        step->b % 2 != 0 ? CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH : 0));
}

static void launch(const struct diff_step *step)
{
    const struct diff_graph *graph = graph_of(step->a);

    if (graph->exec != NULL && !world.anything_held && world.capturing < 0)
        diff_result(cu.graph_launch(graph->exec, diff_stream_of(step->b)));
}

static void destroy_exec(const struct diff_step *step)
{
    struct diff_graph *graph = graph_of(step->a);

    if (graph->exec == NULL || owns_memory())
        return;
    diff_result(cu.exec_destroy(graph->exec));
    graph->exec = NULL;
}

static void destroy_graph(const struct diff_step *step)
{
    struct diff_graph *graph = graph_of(step->a);

    if (graph->graph == NULL || owns_memory())
        return;
    diff_result(cu.graph_destroy(graph->graph));
    graph->graph = NULL;
}

void diff_clean_graphs(void)
{
    for (int i = 0; i < DIFF_GRAPHS; i++) {
        struct diff_step step = {.a = i};
        destroy_exec(&step);
        destroy_graph(&step);
    }
}

const struct diff_operation diff_graph_operations[] = {
    {"capture_begin", begin},         {"capture_end", end},
    {"capture_mode", change_mode},    {"graph_instantiate", instantiate},
    {"graph_launch", launch},         {"exec_destroy", destroy_exec},
    {"graph_destroy", destroy_graph}, {NULL, NULL},
};
