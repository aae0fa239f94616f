#include "helper_thread.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

#include "../base/module.h"
#include "../base/os.h"
#include "../base/thread.h"
#include "../cuda/relaxed.h"

/* Whose the helper is; a futex. */
enum { FREE, CLAIMED, BUSY, LOOSE, DONE, ABANDONED };
static _Atomic uint32_t phase;
static _Atomic int claimer; /* thread id of whoever claimed it last; 0: nobody */
static void (*work_now)(void);

/* The C library's own: 32 and 33 carry cancellation and setuid to each thread. */
#define SIGNAL_BIT(number) (UINT64_C(1) << ((number)-1))
#define SIGNALS_LET_THROUGH                                                                        \
    (SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS) | SIGNAL_BIT(SIGFPE) | SIGNAL_BIT(SIGILL) |          \
     SIGNAL_BIT(SIGTRAP) | SIGNAL_BIT(SIGSYS) | SIGNAL_BIT(32) | SIGNAL_BIT(33))

typedef int create_function(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static bool change(uint32_t from, uint32_t to)
{
    return atomic_compare_exchange_strong(&phase, &from, to);
}

/* One that ended while it had the helper (its GIL never came back) does not release it. */
static bool inherit(void)
{
    uint32_t now = atomic_load(&phase);
    int last = atomic_load(&claimer);

    if ((now != CLAIMED && now != DONE) || !last || gos_thread_is_alive(last) ||
        !atomic_compare_exchange_strong(&claimer, &last, gos_os.tid()))
        return false;
    atomic_store(&phase, CLAIMED);
    return true;
}

bool gos_helper_claim(void)
{
    if (!change(FREE, CLAIMED))
        return inherit();
    atomic_store(&claimer, gos_os.tid());
    return true;
}

bool gos_helper_claim_within(uint64_t timeout_ns)
{
    uint64_t deadline_ns = gos_os.monotonic_ns() + timeout_ns;

    while (!gos_helper_claim()) {
        uint32_t now = atomic_load(&phase);
        uint64_t now_ns = gos_os.monotonic_ns();

        if (now_ns >= deadline_ns)
            return false;
        if (now != FREE)
            gos_os.futex_wait((uint32_t *)&phase, now, deadline_ns - now_ns);
    }
    return true;
}

void gos_helper_release(void)
{
    atomic_store(&claimer, 0);
    atomic_store(&phase, FREE);
    gos_os.futex_wake((uint32_t *)&phase, INT32_MAX);
}

bool gos_helper_is_abandoned(void)
{
    return atomic_load(&phase) == ABANDONED;
}

static void *help(void *unused)
{
    struct gos_relaxed relaxed; /* to the end of the thread */

    (void)unused;
    gos_thread.is_helper = true;
    gos_relaxed_begin(&relaxed);
    work_now();
    if (change(BUSY, DONE))
        gos_os.futex_wake((uint32_t *)&phase, INT32_MAX);
    else
        gos_helper_release();
    return NULL;
}

/*
 * Not linked: in glibc 2.34 it moved from libpthread to libc under a new
 * version, and a library that asks for that one loads nowhere else.
 */
static create_function *find_create(void)
{
    uintptr_t found = gos_module_symbol(gos_module_named("libc.so.6"), "pthread_create");

    if (!found)
        found = gos_module_symbol(gos_module_named("libpthread.so.0"), "pthread_create");
    return (create_function *)found;
}

/* A thread inherits its maker's mask, so there is no moment at which it could take a signal. */
static int create_masked(create_function *create, const pthread_attr_t *attributes)
{
    pthread_t thread;
    uint64_t host_mask;
    int result = gos_os.signal_mask(~SIGNALS_LET_THROUGH, &host_mask);

    if (result != 0)
        return result;
    result = -create(&thread, attributes, help, NULL);
    gos_os.signal_mask(host_mask, NULL);
    return result;
}

static int create_detached(void)
{
    create_function *create = find_create();
    pthread_attr_t attributes;

    if (!create)
        return -ENOSYS;
    int result = -pthread_attr_init(&attributes);
    if (result != 0)
        return result;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    result = create_masked(create, &attributes);
    pthread_attr_destroy(&attributes);
    return result;
}

static int wait_for_answer(uint64_t timeout_ns)
{
    uint64_t deadline_ns = gos_os.monotonic_ns() + timeout_ns;

    while (atomic_load(&phase) == BUSY) {
        uint64_t now_ns = gos_os.monotonic_ns();

        if (now_ns >= deadline_ns)
            return change(BUSY, ABANDONED) ? -ETIMEDOUT : 0;
        gos_os.futex_wait((uint32_t *)&phase, BUSY, deadline_ns - now_ns);
    }
    return 0;
}

static int begin(void (*work)(void), uint32_t begun)
{
    work_now = work;
    atomic_store(&phase, begun);
    int result = create_detached();
    if (result != 0)
        atomic_store(&phase, CLAIMED);
    return result;
}

int gos_helper_run(void (*work)(void), uint64_t timeout_ns)
{
    int result = begin(work, BUSY);

    return result == 0 ? wait_for_answer(timeout_ns) : result;
}

int gos_helper_start(void (*work)(void))
{
    return begin(work, LOOSE);
}

void gos_helper_reset_after_fork(void)
{
    gos_helper_release();
}
