/*
 * Streams and events, and time: work behind a gate stays undone until the gate
 * is opened, so that "done" and "not done" are what the sequence says and not
 * what the machine was quick enough for.
 *
 * While anything is held, nothing waits, and no other work is issued to
 * threads of the driver: what would be finished when could not be told.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "diff_world.h"

static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_opened = PTHREAD_COND_INITIALIZER;
static bool gate_is_open = true;

/* In the order in which the streams' functions ran; read when all are done. */
enum { ORDER_MAX = 256 };
static atomic_uint order_count;
static atomic_uint order[ORDER_MAX];
static unsigned functions;

static struct diff_stream *slot_of(long long number)
{
    return &world.streams[diff_slot(number, DIFF_STREAMS)];
}

static bool is_default(long long number)
{
    return diff_slot(number, DIFF_STREAMS) < 2;
}

CUstream diff_stream_of(long long number)
{
    return slot_of(number)->handle;
}

static void create(const struct diff_step *step)
{
    struct diff_stream *stream = slot_of(step->a);

    if (is_default(step->a) || stream->handle != NULL)
        return;
    diff_result(cu.stream_create(&stream->handle, CU_STREAM_NON_BLOCKING));
    stream->context = world.current[step->thread];
}

static void destroy_one(struct diff_stream *stream)
{
    diff_result(cu.stream_destroy(stream->handle));
    memset(stream, 0, sizeof(*stream));
}

static void destroy(const struct diff_step *step)
{
    struct diff_stream *stream = slot_of(step->a);

    if (is_default(step->a) || stream->handle == NULL || stream->held || stream->in_capture)
        return;
    destroy_one(stream);
}

static void synchronize(const struct diff_step *step)
{
    if (!world.anything_held)
        diff_result(cu.stream_synchronize(diff_stream_of(step->a)));
}

static void query(const struct diff_step *step)
{
    diff_result(cu.stream_query(diff_stream_of(step->a)));
}

static void wait_for_gate(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&gate_lock);
    while (!gate_is_open)
        pthread_cond_wait(&gate_opened, &gate_lock);
    pthread_mutex_unlock(&gate_lock);
}

static void set_gate(bool open)
{
    pthread_mutex_lock(&gate_lock);
    gate_is_open = open;
    pthread_cond_broadcast(&gate_opened);
    pthread_mutex_unlock(&gate_lock);
}

static void hold(const struct diff_step *step)
{
    struct diff_stream *stream = slot_of(step->a);

    if (is_default(step->a) || stream->handle == NULL || world.capturing >= 0)
        return;
    set_gate(false);
    CUresult result = cu.launch_host(stream->handle, wait_for_gate, NULL);
    diff_result(result);
    stream->held |= result == CUDA_SUCCESS;
    world.anything_held |= stream->held;
    if (!world.anything_held)
        set_gate(true);
}

static void open_gate(const struct diff_step *step)
{
    (void)step;
    set_gate(true);
    for (int i = 0; i < DIFF_STREAMS; i++)
        world.streams[i].held = false;
    for (int i = 0; i < DIFF_EVENTS; i++)
        world.events[i].held = false;
    world.anything_held = false;
}

static void note_order(void *number)
{
    unsigned place = atomic_fetch_add(&order_count, 1);

    if (place < ORDER_MAX)
        atomic_store(&order[place], (unsigned)(uintptr_t)number);
}

/* Functions of one stream run in order; those of held streams, after the gate, in some order. */
static void host_function(const struct diff_step *step)
{
    struct diff_stream *stream = slot_of(step->a);

    if (is_default(step->a) || stream->handle == NULL || (world.anything_held && !stream->held))
        return;
    for (int i = 0; i < DIFF_STREAMS; i++)
        if (&world.streams[i] != stream && world.streams[i].held)
            return;
    diff_result(cu.launch_host(stream->handle, note_order, (void *)(uintptr_t)++functions));
}

/* At most two seconds or so, once. */
static void wait_until_done(struct diff_stream *stream)
{
    struct timespec pause = {0, 50000};

    for (int i = 0; i < 20000 && cu.stream_query(stream->handle) == CUDA_ERROR_NOT_READY; i++)
        nanosleep(&pause, NULL);
    stream->busy = cu.stream_query(stream->handle) == CUDA_ERROR_NOT_READY;
    if (stream->busy)
        diff_say(" busy");
}

static void tell_order(void)
{
    unsigned count = atomic_exchange(&order_count, 0);

    for (unsigned i = 0; i < count && i < ORDER_MAX; i++)
        diff_say(" ran %u", atomic_load(&order[i]));
}

void diff_settle(void)
{
    if (world.anything_held)
        return;
    for (int i = 2; i < DIFF_STREAMS; i++) {
        struct diff_stream *stream = &world.streams[i];
        if (stream->handle != NULL && !stream->in_capture && !stream->busy)
            wait_until_done(stream);
    }
    tell_order();
}

/* --- events ---------------------------------------------------------------------------------- */

static struct diff_event *event_of(long long number)
{
    return &world.events[diff_slot(number, DIFF_EVENTS)];
}

static void event_create(const struct diff_step *step)
{
    struct diff_event *event = event_of(step->a);

    if (event->handle != NULL)
        return;
    diff_result(cu.event_create(&event->handle, CU_EVENT_DISABLE_TIMING));
    event->context = world.current[step->thread];
}

static void event_record(const struct diff_step *step)
{
    struct diff_event *event = event_of(step->a);
    const struct diff_stream *stream = slot_of(step->b);

    if (event->handle == NULL || event->in_capture)
        return;
    CUresult result = cu.event_record(event->handle, stream->handle);
    diff_result(result);
    event->held = result == CUDA_SUCCESS && stream->held;
    event->in_capture = result == CUDA_SUCCESS && stream->in_capture;
}

static void event_wait(const struct diff_step *step)
{
    const struct diff_event *event = event_of(step->a);
    struct diff_stream *stream = slot_of(step->b);

    if (event->handle == NULL || is_default(step->b) || stream->handle == NULL)
        return;
    CUresult result = cu.stream_wait_event(stream->handle, event->handle, 0);
    diff_result(result);
    stream->held |= result == CUDA_SUCCESS && event->held;
    stream->in_capture |= result == CUDA_SUCCESS && event->in_capture;
}

static void event_query(const struct diff_step *step)
{
    const struct diff_event *event = event_of(step->a);

    if (event->handle != NULL && !event->in_capture)
        diff_result(cu.event_query(event->handle));
}

static void event_synchronize(const struct diff_step *step)
{
    const struct diff_event *event = event_of(step->a);

    if (event->handle != NULL && !world.anything_held && !event->in_capture)
        diff_result(cu.event_synchronize(event->handle));
}

static void event_destroy(const struct diff_step *step)
{
    struct diff_event *event = event_of(step->a);

    if (event->handle == NULL || event->held || event->in_capture)
        return;
    diff_result(cu.event_destroy(event->handle));
    memset(event, 0, sizeof(*event));
}

/* Launching anything that is no NULL works on the simulated GPU alone. */
static void launch_kernel(const struct diff_step *step)
{
    static int kernels[4];

    if (!world.anything_held)
        diff_result(cu.launch_kernel((CUfunction)(void *)&kernels[diff_slot(step->b, 4)], 1, 1, 1,
                                     1, 1, 1, 0, diff_stream_of(step->a), NULL, NULL));
}

void diff_release_all(void)
{
    open_gate(NULL);
    diff_end_capture();
}

void diff_streams_of_context_gone(int context)
{
    for (int i = 2; i < DIFF_STREAMS; i++)
        if (world.streams[i].handle != NULL && world.streams[i].context == context)
            memset(&world.streams[i], 0, sizeof(world.streams[i]));
    for (int i = 0; i < DIFF_EVENTS; i++)
        if (world.events[i].handle != NULL && world.events[i].context == context)
            memset(&world.events[i], 0, sizeof(world.events[i]));
}

void diff_clean_streams(void)
{
    for (int i = 0; i < DIFF_EVENTS; i++) {
        if (world.events[i].handle != NULL)
            diff_result(cu.event_destroy(world.events[i].handle));
        memset(&world.events[i], 0, sizeof(world.events[i]));
    }
    for (int i = 2; i < DIFF_STREAMS; i++)
        if (world.streams[i].handle != NULL)
            destroy_one(&world.streams[i]);
    functions = 0;
}

const struct diff_operation diff_stream_operations[] = {
    {"stream_create", create},
    {"stream_destroy", destroy},
    {"stream_sync", synchronize},
    {"stream_query", query},
    {"hold", hold},
    {"open", open_gate},
    {"host_function", host_function},
    {"event_create", event_create},
    {"event_record", event_record},
    {"event_wait", event_wait},
    {"event_query", event_query},
    {"event_sync", event_synchronize},
    {"event_destroy", event_destroy},
    {"launch_kernel", launch_kernel},
    {NULL, NULL},
};
