/*
 * Ranked locks on a futex.  Not pthread's: those symbols moved between glibc
 * versions, and a child after fork must be able to start afresh.
 *
 * Order: a thread may take a lock only of a higher rank than all it holds
 * (built with -DGOS_DEBUG, anything else trips the fuse).  None is held across a
 * call into the driver, the loader, the unwinder or the host, but EPISODE, which
 * only failing threads take.
 */
#ifndef GOS_BASE_LOCK_H
#define GOS_BASE_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum gos_rank {
    GOS_RANK_TURN = 1,  /* one recovery at a time */
    GOS_RANK_REPORT,    /* one report being written */
    GOS_RANK_FLUSH,     /* flush callbacks, the interpreter's functions */
    GOS_RANK_VMM,       /* physical handles and mappings */
    GOS_RANK_POOL,      /* pools, streams, contexts */
    GOS_RANK_HISTORY,   /* samples of what sites hold */
    GOS_RANK_SHARD,     /* one registry shard; never two */
    GOS_RANK_SITE,      /* interned stacks */
    GOS_RANK_MODULE,    /* table of loaded objects */
    GOS_RANK_EVENT,     /* ring of recent events */
    GOS_RANK_INTERN,    /* shared strings */
    GOS_RANK_ALLOWANCE, /* what this process may use of each device */
    GOS_RANK_MEMORY,    /* metadata memory */
};

struct gos_lock {
    _Atomic uint32_t word;    /* 0 free, 1 held */
    _Atomic uint32_t waiters; /* that sleep or are about to */
    uint32_t rank;
};

#define GOS_LOCK_INIT(lock_rank)                                                                   \
    {                                                                                              \
        0, 0, (lock_rank)                                                                          \
    }

void gos_lock_acquire(struct gos_lock *lock);
void gos_lock_release(struct gos_lock *lock);
bool gos_lock_try(struct gos_lock *lock); /* exempt from the order: it cannot wait */
/* False when the time ran out. */
bool gos_lock_acquire_within(struct gos_lock *lock, uint64_t timeout_ns);
/* In a forked child only, where no other thread exists. */
void gos_lock_reset(struct gos_lock *lock);

#endif
