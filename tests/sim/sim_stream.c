#include "sim_stream.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "sim_call.h"
#include "sim_context.h"
#include "sim_pool.h"

#define STREAM_MAGIC 0x53545231u
#define WORKER_STACK_BYTES (512u << 10)

struct sim_op {
    struct sim_op *next;
    uint64_t ticket;
    CUhostFn function; /* NULL: wait for `other` */
    void *argument;
    CUstream other;
    uint64_t other_ticket;
    _Alignas(16) unsigned char copy[];
};

static CUstream streams;
static uint64_t last_id = 6; /* the first null stream has number 7 [H200] */

CUstream sim_stream_make(CUcontext context, unsigned flags, int priority)
{
    CUstream stream = calloc(1, sizeof(*stream));
    if (stream == NULL)
        return NULL;
    stream->magic = STREAM_MAGIC;
    stream->context = context;
    stream->flags = flags;
    stream->priority = priority;
    stream->id = ++last_id;
    stream->next = streams;
    streams = stream;
    return stream;
}

static CUstream find_thread_stream(CUcontext context)
{
    const struct sim_thread *thread = sim_thread_self();
    for (CUstream stream = streams; stream != NULL; stream = stream->next)
        if (stream->thread == thread && stream->context == context)
            return stream;
    CUstream stream = sim_stream_make(context, CU_STREAM_DEFAULT, 0);
    if (stream != NULL)
        stream->thread = thread;
    return stream;
}

CUstream sim_stream_find(CUstream handle, bool per_thread)
{
    CUcontext context = sim_context_current();
    if (handle == NULL)
        handle = per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
    if (handle == CU_STREAM_LEGACY)
        return context->null_stream;
    if (handle == CU_STREAM_PER_THREAD)
        return find_thread_stream(context);
    return handle->magic == STREAM_MAGIC ? handle : NULL;
}

bool sim_stream_reached(CUstream stream, uint64_t ticket)
{
    return stream->done >= ticket;
}

static bool is_blocking(CUstream stream)
{
    return (stream->flags & CU_STREAM_NON_BLOCKING) == 0;
}

static void finish_op(CUstream stream)
{
    struct sim_op *op = stream->head;
    stream->head = op->next;
    if (stream->head == NULL)
        stream->tail = NULL;
    stream->done = stream->head != NULL ? stream->head->ticket - 1 : stream->issued;
    free(op);
    pthread_cond_broadcast(&sim_progress);
}

static void perform_op(const struct sim_op *op)
{
    if (op->function == NULL) {
        while (!sim_stream_reached(op->other, op->other_ticket))
            pthread_cond_wait(&sim_progress, &sim_lock);
        return;
    }
    pthread_mutex_unlock(&sim_lock);
    op->function(op->argument);
    pthread_mutex_lock(&sim_lock);
}

static void *work(void *argument)
{
    CUstream stream = argument;
    pthread_mutex_lock(&sim_lock);
    while (stream->head != NULL) {
        perform_op(stream->head);
        finish_op(stream);
    }
    stream->working = false;
    pthread_mutex_unlock(&sim_lock);
    return NULL;
}

/* The program's signals are none of the worker's business. */
static bool start_worker(CUstream stream)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, WORKER_STACK_BYTES);
    stream->working = pthread_create(&thread, &attributes, work, stream) == 0;
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return stream->working;
}

static CUresult enqueue(CUstream stream, struct sim_op *op)
{
    if (!stream->working && !start_worker(stream)) {
        free(op);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    op->ticket = ++stream->issued;
    if (stream->tail != NULL)
        stream->tail->next = op;
    else
        stream->head = op;
    stream->tail = op;
    return CUDA_SUCCESS;
}

CUresult sim_stream_after(CUstream stream, CUstream other, uint64_t ticket)
{
    if (stream == other || sim_stream_reached(other, ticket))
        return CUDA_SUCCESS;
    struct sim_op *op = calloc(1, sizeof(*op));
    if (op == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    op->other = other;
    op->other_ticket = ticket;
    return enqueue(stream, op);
}

/* The legacy stream and the blocking streams of its context wait for each other. */
static void order_with_legacy(CUstream stream)
{
    CUstream legacy = stream->context->null_stream;
    if (!is_blocking(stream))
        return;
    if (stream != legacy) {
        sim_stream_after(stream, legacy, legacy->issued);
        return;
    }
    for (CUstream other = streams; other != NULL; other = other->next)
        if (other->context == stream->context && is_blocking(other))
            sim_stream_after(stream, other, other->issued);
}

uint64_t sim_stream_mark(CUstream stream)
{
    order_with_legacy(stream);
    uint64_t ticket = ++stream->issued;
    if (stream->head == NULL)
        stream->done = ticket;
    return ticket;
}

CUresult sim_stream_run(CUstream stream, CUhostFn function, void *argument)
{
    order_with_legacy(stream);
    struct sim_op *op = calloc(1, sizeof(*op));
    if (op == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    op->function = function;
    op->argument = argument;
    return enqueue(stream, op);
}

static CUresult do_later(CUstream stream, CUhostFn function, const void *argument, size_t bytes)
{
    struct sim_op *op = calloc(1, sizeof(*op) + bytes);
    if (op == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(op->copy, argument, bytes);
    op->function = function;
    op->argument = op->copy;
    return enqueue(stream, op);
}

CUresult sim_stream_do(CUstream stream, CUhostFn function, const void *argument, size_t bytes)
{
    _Alignas(16) unsigned char copy[64];
    order_with_legacy(stream);
    if (stream->head != NULL || bytes > sizeof(copy))
        return do_later(stream, function, argument, bytes);
    memcpy(copy, argument, bytes);
    function(copy);
    stream->done = ++stream->issued;
    return CUDA_SUCCESS;
}

void sim_stream_observe(CUstream stream, uint64_t ticket)
{
    while (!sim_stream_reached(stream, ticket))
        sim_wait_for_progress();
    if (stream->observed < ticket)
        stream->observed = ticket;
}

static void observe_all(CUcontext context, bool blocking_only)
{
    for (CUstream stream = streams; stream != NULL; stream = stream->next)
        if (stream->context == context && (!blocking_only || is_blocking(stream)))
            sim_stream_observe(stream, stream->issued);
}

void sim_stream_synchronize(CUstream stream)
{
    if (stream == stream->context->null_stream)
        observe_all(stream->context, true);
    else
        sim_stream_observe(stream, stream->issued);
    sim_pools_settle();
}

void sim_streams_synchronize(CUcontext context)
{
    observe_all(context, false);
    sim_pools_settle();
}

void sim_stream_leave_capture(const struct sim_capture *capture)
{
    for (CUstream stream = streams; stream != NULL; stream = stream->next)
        if (stream->capture == capture)
            stream->capture = NULL;
}

void sim_streams_finish(CUcontext context)
{
    sim_streams_synchronize(context);
    for (CUstream stream = streams; stream != NULL; stream = stream->next)
        if (stream->context == context)
            stream->magic = 0;
}
