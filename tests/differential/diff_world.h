/*
 * The world of one sequence: numbered slots for everything that a call can
 * make, what the host itself knows of them, and the line that is being logged.
 *
 * One thread at a time acts (the main thread hands out the turn), so nothing
 * here is locked.  The log says nothing that may differ between two runs with
 * the same driver: an address becomes the number of its allocation.
 */
#ifndef DIFF_WORLD_H
#define DIFF_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "diff_driver.h"

enum {
    DIFF_THREADS = 4,
    DIFF_DEVICES = 2,
    DIFF_MEMORIES = 24,
    DIFF_STREAMS = 6, /* 0: the legacy default stream, 1: the per-thread one */
    DIFF_EVENTS = 4,
    DIFF_POOLS = 4, /* 0, 1: the default pools of the devices */
    DIFF_HANDLES = 6,
    DIFF_RANGES = 4,
    DIFF_GRAPHS = 4,
    DIFF_CONTEXTS = 5, /* 0, 1: the primary contexts; the others are made */
    DIFF_NO_CONTEXT = DIFF_CONTEXTS,
};

enum diff_family {
    DIFF_NOTHING,
    DIFF_DEVICE,
    DIFF_MANAGED,
    DIFF_POOLED,
    DIFF_GRAPH, /* not on the books */
    DIFF_ARRAY,
    DIFF_HOST,
    DIFF_REGISTERED, /* not on the books */
};

struct diff_memory {
    enum diff_family family;
    CUdeviceptr address; /* of an array: its handle */
    uint64_t bytes;
    int device;  /* -1: host */
    int context; /* with which it dies; DIFF_NO_CONTEXT: with none */
    unsigned number;
    void *own; /* registered: the host's own pages */
};

struct diff_stream {
    CUstream handle;
    int context;
    bool held; /* behind a gate, or behind a stream that is */
    bool in_capture;
    bool busy; /* was waited for in vain, and is not again */
};

struct diff_event {
    CUevent handle;
    int context;
    bool held, in_capture;
};

struct diff_pool {
    CUmemoryPool handle;
    int device;
};

struct diff_handle {
    CUmemGenericAllocationHandle handle; /* 0 after its last release */
    uint64_t bytes;
    int device;
    unsigned references, mappings;
};

struct diff_range {
    CUdeviceptr address;
    uint64_t bytes, mapped_bytes;
    int handle; /* slot of what is mapped at its start; -1: nothing */
};

struct diff_graph {
    CUgraph graph;
    CUgraphExec exec;
};

struct diff_context {
    CUcontext handle;
    int device;
};

struct diff_world {
    int device_count;
    bool tells_free; /* in the log; others may use a real device as well */
    struct diff_memory memories[DIFF_MEMORIES];
    struct diff_stream streams[DIFF_STREAMS];
    struct diff_event events[DIFF_EVENTS];
    struct diff_pool pools[DIFF_POOLS];
    struct diff_handle handles[DIFF_HANDLES];
    struct diff_range ranges[DIFF_RANGES];
    struct diff_graph graphs[DIFF_GRAPHS];
    struct diff_context contexts[DIFF_CONTEXTS];
    int current[DIFF_THREADS]; /* slot of each thread's context */
    bool anything_held;
    int capturing; /* stream slot where the capture began; -1: none */
    int capture_thread;
    unsigned numbers; /* allocations so far */
    unsigned numbers_before_capture;
};

extern struct diff_world world;

/* One step of a sequence, on the thread that it names. */
struct diff_step {
    int thread;
    char name[32];
    long long a, b, c;
};

/* --- the log: diff_log.c --------------------------------------------------------------------- */

__attribute__((format(printf, 1, 2))) void diff_say(const char *format, ...);
void diff_result(CUresult result);
void diff_log_begin(uint64_t seed, unsigned index, const struct diff_step *step);
/* Ends the line with what the device says is free. */
void diff_log_end(void);

/* --- the books: diff_books.c ----------------------------------------------------------------- */

/* An allocation into a slot: what the books hold and the log tells of it. */
void diff_made(CUresult result, struct diff_memory *slot, struct diff_memory made);
/* The memory at that address is gone, whichever slot it is in. */
void diff_gone(CUresult result, CUdeviceptr address);
void diff_context_gone(int context);
/*
 * Compares the shim's live bytes and counts with the host's own and with the
 * simulator's, for each device and the host.  Says on stderr what differs;
 * false then.  True where there is no shim.
 */
bool diff_books_agree(uint64_t seed, unsigned index, const char *name);

/* --- streams: diff_stream.c ------------------------------------------------------------------ */

CUstream diff_stream_of(long long slot);
/* Waits for streams whose work is under way; on the main thread. */
void diff_settle(void);
/* Ends capture and gates, so that everything can be waited for. */
void diff_release_all(void);
void diff_streams_of_context_gone(int context);
/* Of whichever thread began it; its graph is thrown away.  In diff_graph.c. */
void diff_end_capture(void);

/* --- steps ----------------------------------------------------------------------------------- */

typedef void (*diff_function)(const struct diff_step *step);

struct diff_operation {
    const char *name;
    diff_function function;
};

/* Each ends with a row of NULL. */
extern const struct diff_operation diff_memory_operations[];
extern const struct diff_operation diff_stream_operations[];
extern const struct diff_operation diff_pool_operations[];
extern const struct diff_operation diff_vmm_operations[];
extern const struct diff_operation diff_context_operations[];
extern const struct diff_operation diff_graph_operations[];
extern const struct diff_operation diff_runtime_operations[];

/* Frees, destroys and unmaps what the sequence left; steps of the log like others. */
void diff_clean_memories(void);
void diff_clean_streams(void);
void diff_clean_pools(void);
void diff_clean_vmm(void);
void diff_clean_contexts(void);
void diff_clean_graphs(void);

static inline int diff_slot(long long number, int count)
{
    return (int)((unsigned long long)number % (unsigned)count);
}

static inline int diff_device(long long number)
{
    return diff_slot(number, world.device_count);
}

#endif
