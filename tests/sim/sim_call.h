/*
 * The frame around every driver call.
 *
 * An entry point is one SIM_CALL: admission (is the driver alive, is there a
 * context, does the context carry a sticky error, is a failure ordered, does a
 * capture forbid it), the call's own work, and the way out (sticky errors,
 * trace, unlocking).  The work of a locked call runs under the one driver
 * lock; it must not call an exported entry point.
 */
#ifndef SIM_CALL_H
#define SIM_CALL_H

#include <cuda.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim_newer.h"
#include "sim_settings.h"

enum sim_call_id {
#define SIM_ENTRY(symbol, base, version, stream) SIM_ID_##symbol,
#define SIM_PAIR(symbol, base, version, twin_version, suffix)                                      \
    SIM_ID_##symbol, SIM_ID_##symbol##_##suffix,
#include "sim_entries.def"
#undef SIM_ENTRY
#undef SIM_PAIR
    SIM_CALL_COUNT
};

/* What a call needs. */
enum {
    SIM_ANYTIME = 0,    /* works before cuInit and in a forked child */
    SIM_STARTED = 1,    /* after cuInit, in the process that called it */
    SIM_LOCKED = 2,     /* runs under the driver lock */
    SIM_CURRENT = 4,    /* a current context without a sticky error */
    SIM_NO_CAPTURE = 8, /* "unsafe" for a stream capture: 900 and invalidation */
    SIM_READY = SIM_STARTED | SIM_LOCKED,
    SIM_CONTEXT = SIM_READY | SIM_CURRENT,
    SIM_UNSAFE = SIM_CONTEXT | SIM_NO_CAPTURE,
};

#define SIM_CALL(symbol, needs, work)                                                              \
    sim_leave(SIM_ID_##symbol,                                                                     \
              sim_admit(SIM_ID_##symbol, (needs)) ? (CUresult)(work) : sim_refusal())

/*
 * Defines an entry point and its twin for per-thread default streams; the
 * work sees which of the two was called in `per_thread`.
 */
#define SIM_TWO_CALLS(symbol, suffix, parameters, needs, work)                                     \
    CUresult symbol parameters                                                                     \
    {                                                                                              \
        const bool per_thread = false;                                                             \
        (void)per_thread;                                                                          \
        return SIM_CALL(symbol, needs, work);                                                      \
    }                                                                                              \
    CUresult symbol##_##suffix parameters                                                          \
    {                                                                                              \
        const bool per_thread = true;                                                              \
        (void)per_thread;                                                                          \
        return SIM_CALL(symbol##_##suffix, needs, work);                                           \
    }

#define SIM_CONTEXTS_MAX 32

/* One thread of the program, as the driver knows it. */
struct sim_thread {
    CUcontext contexts[SIM_CONTEXTS_MAX]; /* the last one is current */
    unsigned context_count;
    CUstreamCaptureMode capture_mode;
    CUresult refusal;
    bool holds_lock;
    sigset_t signals; /* blocked outside the driver, while holds_lock */
};

/*
 * Signals are blocked while a call holds it: a handler that calls exit would
 * meet it again on the way out.
 */
extern pthread_mutex_t sim_lock;
/* Broadcast, under the lock, when any stream got further. */
extern pthread_cond_t sim_progress;
/* In a locked call: wait for that broadcast, with the program's signals let through. */
void sim_wait_for_progress(void);
/* Under the lock, which may be given up meanwhile: calls of other threads wait until it is over. */
void sim_be_alone(bool is_alone);

bool sim_admit(enum sim_call_id id, unsigned needs);
CUresult sim_refusal(void);
CUresult sim_leave(enum sim_call_id id, CUresult result);

/* cuInit's work; and what is left of it in a child of fork. */
CUresult sim_start(unsigned flags);

/* The calling thread's record; made on first use, freed when the thread ends. */
struct sim_thread *sim_thread_self(void);

/* Number of calls so far; exported for tests, unknown names give 0. */
uint64_t gpusim_calls(const char *symbol);
/* The private capacity table, for the simulated NVML of the same process. */
void *gpusim_capacity(void);

#endif
