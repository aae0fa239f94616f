/*
 * The check of the lock order: real when built with -DGOS_DEBUG, nothing
 * otherwise.  gos_lock_try cannot wait and so is exempt from the order, but
 * what it took still counts.
 */
#ifndef GOS_BASE_LOCK_ORDER_H
#define GOS_BASE_LOCK_ORDER_H

#include "lock.h"

#ifdef GOS_DEBUG

#include "loss.h"
#include "thread.h"

static inline void gos_lock_order_check(const struct gos_lock *lock)
{
    if (gos_thread.rank_mask >> lock->rank)
        gos_fuse_trip("a lock was taken out of order");
}

static inline void gos_lock_order_taken(const struct gos_lock *lock)
{
    gos_thread.rank_mask |= 1u << lock->rank;
}

static inline void gos_lock_order_released(const struct gos_lock *lock)
{
    gos_thread.rank_mask &= ~(1u << lock->rank);
}

#else

static inline void gos_lock_order_check(const struct gos_lock *lock)
{
    (void)lock;
}

static inline void gos_lock_order_taken(const struct gos_lock *lock)
{
    (void)lock;
}

static inline void gos_lock_order_released(const struct gos_lock *lock)
{
    (void)lock;
}

#endif

#endif
