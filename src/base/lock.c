#include "lock.h"

#include <errno.h>

#include "lock_order.h"
#include "os.h"
#include "syscall.h"
#include "thread.h"

enum { FREE, HELD, CONTENDED };

/* Critical sections are tens of instructions: waiting that long is cheaper than sleeping. */
#define SPINS 64

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

/*
 * Whoever has slept takes the lock as CONTENDED even if it was the last one
 * waiting: it cannot know, and one needless wake is cheaper than a lost one.
 */
static bool take_contended(struct gos_lock *lock)
{
    return atomic_exchange_explicit(&lock->word, CONTENDED, memory_order_acquire) == FREE;
}

void gos_lock_acquire(struct gos_lock *lock)
{
    gos_lock_order_check(lock);
    if (!take_if_free(lock) && !take_spinning(lock)) {
        while (!take_contended(lock))
            gos_os.futex_wait((uint32_t *)&lock->word, CONTENDED, 0);
    }
    gos_lock_order_taken(lock);
}

static bool wait_until(struct gos_lock *lock, uint64_t deadline_ns)
{
    while (!take_contended(lock)) {
        uint64_t now_ns = gos_os.monotonic_ns();

        if (now_ns >= deadline_ns)
            return false;
        gos_os.futex_wait((uint32_t *)&lock->word, CONTENDED, deadline_ns - now_ns);
    }
    return true;
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
    if (atomic_exchange_explicit(&lock->word, FREE, memory_order_release) == CONTENDED)
        gos_os.futex_wake((uint32_t *)&lock->word, 1);
}

void gos_lock_reset(struct gos_lock *lock)
{
    atomic_store_explicit(&lock->word, FREE, memory_order_relaxed);
}
