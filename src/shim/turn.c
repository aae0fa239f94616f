#include "turn.h"

#include <stdatomic.h>

#include "../base/lock.h"
#include "../base/lock_order.h"
#include "../base/os.h"
#include "../base/thread.h"

/* How long to wait before looking again whether who has the turn still lives. */
#define LOOK_NS 100000000u

static struct gos_lock lock = GOS_LOCK_INIT(GOS_RANK_EPISODE);
static _Atomic uint32_t owner; /* gos_thread_index; 0: nobody, or one that is just taking it */

static bool note_taken(bool taken)
{
    if (taken)
        atomic_store(&owner, gos_thread_index());
    return taken;
}

bool gos_turn_try(void)
{
    return note_taken(gos_lock_try(&lock));
}

/* The lock stays held; only one can follow the same owner. */
static bool inherit(void)
{
    uint32_t last = atomic_load(&owner);

    if (!last || !gos_thread_is_gone(last) ||
        !atomic_compare_exchange_strong(&owner, &last, gos_thread_index()))
        return false;
    gos_lock_order_taken(&lock);
    return true;
}

static bool take_or_inherit(uint64_t timeout_ns)
{
    return inherit() || note_taken(gos_lock_acquire_within(&lock, timeout_ns));
}

bool gos_turn_take_within(uint64_t timeout_ns)
{
    for (; timeout_ns > LOOK_NS; timeout_ns -= LOOK_NS)
        if (take_or_inherit(LOOK_NS))
            return true;
    return take_or_inherit(timeout_ns);
}

void gos_turn_give_back(void)
{
    atomic_store(&owner, 0);
    gos_lock_release(&lock);
}

void gos_turn_reset_after_fork(void)
{
    atomic_store(&owner, 0);
    gos_lock_reset(&lock);
}
