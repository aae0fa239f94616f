#include "lock.h"

#include <errno.h>

#include "lock_order.h"
#include "os.h"
#include "syscall.h"
#include "thread.h"

enum { FREE, HELD };

/* Critical sections are tens of instructions: waiting that long is cheaper than sleeping. */
#define SPINS 64

/*
 * A release is two plain accesses, because a locked instruction costs as much
 * as the rest of it: the lock becomes free, then it is seen whether somebody
 * waits.  The processor may do the second before the first is visible, and a
 * thread that goes to sleep just then is not woken; so nobody sleeps longer.
 */
#define SLEEP_NS 1000000u

static bool take_if_free(struct gos_lock *lock)
{
    uint32_t expected = FREE;

    return atomic_compare_exchange_strong_explicit(&lock->word, &expected, HELD,
                                                   memory_order_acquire, memory_order_relaxed);
}

static bool take_spinning(struct gos_lock *lock)
{
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&lock->word, memory_order_relaxed) == FREE && take_if_free(lock))
            return true;
        gos_cpu_relax();
    }
    return false;
}

static void sleep_until(struct gos_lock *lock, uint64_t now_ns, uint64_t deadline_ns)
{
    uint64_t left_ns = deadline_ns - now_ns;

    gos_os.futex_wait((uint32_t *)&lock->word, HELD, left_ns < SLEEP_NS ? left_ns : SLEEP_NS);
}

static bool wait_until(struct gos_lock *lock, uint64_t deadline_ns)
{
    bool taken;
    uint64_t now_ns;

    atomic_fetch_add_explicit(&lock->waiters, 1, memory_order_seq_cst);
    while (!(taken = take_if_free(lock)) && (now_ns = gos_os.monotonic_ns()) < deadline_ns)
        sleep_until(lock, now_ns, deadline_ns);
    atomic_fetch_sub_explicit(&lock->waiters, 1, memory_order_relaxed);
    return taken;
}

void gos_lock_acquire(struct gos_lock *lock)
{
    gos_lock_order_check(lock);
    if (!take_if_free(lock) && !take_spinning(lock)) {
        while (!wait_until(lock, UINT64_MAX))
            ;
    }
    gos_lock_order_taken(lock);
}

bool gos_lock_acquire_within(struct gos_lock *lock, uint64_t timeout_ns)
{
    uint64_t deadline_ns;

    gos_lock_order_check(lock);
    if (!take_if_free(lock) && !take_spinning(lock)) {
        if (__builtin_add_overflow(gos_os.monotonic_ns(), timeout_ns, &deadline_ns))
            deadline_ns = UINT64_MAX;
        if (!wait_until(lock, deadline_ns))
            return false;
    }
    gos_lock_order_taken(lock);
    return true;
}

bool gos_lock_try(struct gos_lock *lock)
{
    bool taken = take_if_free(lock);

    if (taken)
        gos_lock_order_taken(lock);
    return taken;
}

void gos_lock_release(struct gos_lock *lock)
{
    gos_lock_order_released(lock);
    atomic_store_explicit(&lock->word, FREE, memory_order_release);
    if (__builtin_expect(atomic_load_explicit(&lock->waiters, memory_order_relaxed) != 0, 0))
        gos_os.futex_wake((uint32_t *)&lock->word, 1);
}

void gos_lock_reset(struct gos_lock *lock)
{
    atomic_store_explicit(&lock->word, FREE, memory_order_relaxed);
    atomic_store_explicit(&lock->waiters, 0, memory_order_relaxed);
}
