/*
 * Whether hooks do anything, and the few moments at which the shim itself
 * starts and stops.
 *
 * There is no constructor: a process that never calls cuInit pays for nothing.
 */
#ifndef GOS_SHIM_STATE_H
#define GOS_SHIM_STATE_H

#include <stdatomic.h>
#include <stdbool.h>

enum gos_shim_mode {
    GOS_SHIM_UNSTARTED, /* before the first successful cuInit */
    GOS_SHIM_ACTIVE,
    GOS_SHIM_PASSIVE, /* disabled, fuse tripped, or the process is ending */
};

extern _Atomic int gos_shim_mode_now;

/* Hook context; the only question that a hook asks before it does something. */
static inline bool gos_shim_active(void)
{
    return atomic_load_explicit(&gos_shim_mode_now, memory_order_relaxed) == GOS_SHIM_ACTIVE;
}

/*
 * Whoever may come in before the first cuInit and takes a lock of ours calls
 * this first.  In a child of a process that forked before then, it starts
 * afresh: a thread that the child does not have may have held the lock.
 */
extern _Atomic bool gos_shim_watches_fork;
void gos_shim_notice_fork_slow(void);
static inline void gos_shim_notice_fork(void)
{
    if (!atomic_load_explicit(&gos_shim_watches_fork, memory_order_relaxed))
        gos_shim_notice_fork_slow();
}

/*
 * False with GPUOOMSHIM_DISABLE=1: no pointer is substituted.  Reads the
 * settings on the first call; allowed inside dlsym.
 */
bool gos_shim_enabled(void);

/* After the driver's cuInit succeeded: loader context (opens the unwinder and NVML).  Idempotent.
 */
void gos_shim_start(void);

/* pid of the process that called cuInit; 0 before that. */
int gos_shim_initialised_pid(void);

/* The driver's pointer made ours if it belongs to a row; else as it is. */
void *gos_substitute(void *found);

#endif
