/*
 * Streams and events as points on a timeline.
 *
 * A stream hands out tickets, one per piece of work, and remembers how far it
 * got.  Work that takes no time on an idle stream is done at once; a host
 * function runs on the stream's worker thread, and whatever is issued after it
 * waits for it, as behind a kernel.
 *
 * Three different things, which a memory pool cares about:
 *   issued    the program has asked for it
 *   done      the device has finished it
 *   observed  the host has *synchronized* with it; queries do not count [H200]
 *
 * All of this runs under the driver lock; waiting gives the lock up.
 */
#ifndef SIM_STREAM_H
#define SIM_STREAM_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_op;
struct sim_thread;
struct sim_capture;

struct CUstream_st {
    uint32_t magic;
    CUcontext context;
    unsigned flags;
    int priority;
    uint64_t id;
    uint64_t issued, done, observed;
    struct sim_op *head, *tail;
    bool working;                    /* has a worker thread */
    const struct sim_thread *thread; /* of a per-thread default stream */
    struct sim_capture *capture;
    CUstream next; /* all streams ever made; records are never freed */
};

struct CUevent_st {
    uint32_t magic;
    unsigned flags;
    CUcontext context;
    CUstream stream; /* NULL: never recorded */
    uint64_t ticket;
    uint64_t recorded_ns;
    struct sim_capture *capture; /* recorded into this capture */
};

CUstream sim_stream_make(CUcontext context, unsigned flags, int priority);

/*
 * The stream behind a handle, in the current context: the default streams have
 * the handles 0, 1 and 2.  NULL for a handle that is none.
 */
CUstream sim_stream_find(CUstream handle, bool per_thread);

/* Work without a duration; returns its ticket. */
uint64_t sim_stream_mark(CUstream stream);
/* A function on the worker thread, without the lock; `argument` stays the caller's. */
CUresult sim_stream_run(CUstream stream, CUhostFn function, void *argument);
/* Driver work on a copy of `argument`: at once if the stream is idle, else by the worker. */
CUresult sim_stream_do(CUstream stream, CUhostFn function, const void *argument, size_t bytes);
/* Holds the stream until the other one has reached the ticket. */
CUresult sim_stream_after(CUstream stream, CUstream other, uint64_t ticket);

bool sim_stream_reached(CUstream stream, uint64_t ticket);
/* The host waits and has observed everything up to the ticket. */
void sim_stream_observe(CUstream stream, uint64_t ticket);
/* Everything issued so far to the stream; legacy includes the blocking streams. */
void sim_stream_synchronize(CUstream stream);
/* The same for all streams of a context. */
void sim_streams_synchronize(CUcontext context);
/* The capture has ended for every stream that took part in it. */
void sim_stream_leave_capture(const struct sim_capture *capture);
/* Waits for a context's streams and closes them. */
void sim_streams_finish(CUcontext context);

#endif
