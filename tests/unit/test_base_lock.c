#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pthread.h>

#include <cmocka.h>

/* The order's check is there in debug builds only; here it is looked at by itself. */
#ifndef GOS_DEBUG
#define GOS_DEBUG
#endif
#include "../../src/base/lock.h"
#include "../../src/base/lock_order.h"
#include "../../src/base/os.h"

#define ROUNDS 20000
#define THREADS 4

static struct gos_lock lock = GOS_LOCK_INIT(GOS_RANK_SITE);
static uint64_t counter; /* protected by lock */

static void *count_up(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        gos_lock_acquire(&lock);
        counter++;
        gos_lock_release(&lock);
    }
    return NULL;
}

static void *count_up_impatiently(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        while (!gos_lock_acquire_within(&lock, 1000))
            continue;
        counter++;
        gos_lock_release(&lock);
    }
    return NULL;
}

static void run_threads(void *(*body)(void *))
{
    pthread_t threads[THREADS];

    counter = 0;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, body, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(counter, ROUNDS * THREADS);
}

static void one_thread_at_a_time_holds_the_lock(void **state)
{
    (void)state;
    run_threads(count_up);
}

static void waiters_that_give_up_lose_nothing(void **state)
{
    (void)state;
    run_threads(count_up_impatiently);
}

static void try_fails_only_while_the_lock_is_held(void **state)
{
    (void)state;
    assert_true(gos_lock_try(&lock));
    assert_false(gos_lock_try(&lock));
    gos_lock_release(&lock);
    assert_true(gos_lock_try(&lock));
    gos_lock_release(&lock);
}

static void *hold_for_a_while(void *arg)
{
    gos_lock_acquire(&lock);
    __atomic_store_n((int *)arg, 1, __ATOMIC_RELEASE);
    gos_os.sleep_ns(60000000);
    gos_lock_release(&lock);
    return NULL;
}

static pthread_t start_holder(void)
{
    static int is_held;
    pthread_t holder;

    __atomic_store_n(&is_held, 0, __ATOMIC_RELEASE);
    assert_int_equal(pthread_create(&holder, NULL, hold_for_a_while, &is_held), 0);
    while (!__atomic_load_n(&is_held, __ATOMIC_ACQUIRE))
        gos_os.sleep_ns(100000);
    return holder;
}

static void waiting_ends_when_the_time_is_up(void **state)
{
    pthread_t holder = start_holder();
    uint64_t start = gos_os.monotonic_ns();

    (void)state;
    assert_false(gos_lock_acquire_within(&lock, 5000000));
    assert_true(gos_os.monotonic_ns() - start >= 5000000);
    assert_false(gos_lock_acquire_within(&lock, 0));
    pthread_join(holder, NULL);
}

static void waiting_ends_early_when_the_lock_becomes_free(void **state)
{
    pthread_t holder = start_holder();

    (void)state;
    assert_true(gos_lock_acquire_within(&lock, UINT64_MAX));
    gos_lock_release(&lock);
    pthread_join(holder, NULL);
}

static void a_sleeping_waiter_is_woken(void **state)
{
    pthread_t holder = start_holder();

    (void)state;
    gos_lock_acquire(&lock);
    gos_lock_release(&lock);
    pthread_join(holder, NULL);
    assert_int_equal(lock.word, 0);
}

/* As if a waiter had come between a release and its look at the waiters: nobody wakes it. */
static void wake_nobody(uint32_t *word, int count)
{
    (void)word;
    (void)count;
}

static void a_waiter_that_nobody_wakes_does_not_sleep_for_ever(void **state)
{
    struct gos_os os = gos_os;
    pthread_t holder;

    (void)state;
    gos_os.futex_wake = wake_nobody;
    holder = start_holder();
    gos_lock_acquire(&lock);
    gos_lock_release(&lock);
    pthread_join(holder, NULL);
    gos_os = os;
    assert_int_equal(lock.word, 0);
    assert_int_equal(lock.waiters, 0);
}

static int child_takes_lock(void)
{
    if (gos_lock_try(&lock))
        return 1;
    gos_lock_reset(&lock);
    return gos_lock_try(&lock) ? 0 : 2;
}

static void a_lock_held_elsewhere_at_the_fork_can_be_reset_in_the_child(void **state)
{
    pthread_t holder = start_holder();
    int status = -1;
    pid_t child = fork();

    (void)state;
    if (child == 0)
        _exit(child_takes_lock());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    pthread_join(holder, NULL);
}

static struct gos_lock outer = GOS_LOCK_INIT(GOS_RANK_TURN);
static struct gos_lock inner = GOS_LOCK_INIT(GOS_RANK_MEMORY);

static void locks_in_order_leave_the_fuse_whole(void **state)
{
    (void)state;
    gos_lock_order_check(&outer);
    gos_lock_order_taken(&outer);
    gos_lock_order_check(&inner);
    gos_lock_order_taken(&inner);
    gos_lock_order_released(&outer);
    gos_lock_order_released(&inner);
    gos_lock_order_check(&outer);
    assert_false(gos_fuse_tripped());
    assert_int_equal(gos_thread.rank_mask, 0);
}

static ssize_t write_nothing(int fd, const void *data, size_t bytes)
{
    (void)fd, (void)data;
    return (ssize_t)bytes;
}

static void a_lock_out_of_order_trips_the_fuse(void **state)
{
    ssize_t (*write_before)(int, const void *, size_t) = gos_os.write;

    (void)state;
    gos_os.write = write_nothing;
    gos_lock_order_taken(&inner);
    gos_lock_order_check(&outer);
    gos_lock_order_released(&inner);
    gos_os.write = write_before;
    assert_true(gos_fuse_tripped());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread_at_a_time_holds_the_lock),
        cmocka_unit_test(waiters_that_give_up_lose_nothing),
        cmocka_unit_test(try_fails_only_while_the_lock_is_held),
        cmocka_unit_test(waiting_ends_when_the_time_is_up),
        cmocka_unit_test(waiting_ends_early_when_the_lock_becomes_free),
        cmocka_unit_test(a_sleeping_waiter_is_woken),
        cmocka_unit_test(a_waiter_that_nobody_wakes_does_not_sleep_for_ever),
        cmocka_unit_test(a_lock_held_elsewhere_at_the_fork_can_be_reset_in_the_child),
        cmocka_unit_test(locks_in_order_leave_the_fuse_whole),
        cmocka_unit_test(a_lock_out_of_order_trips_the_fuse),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
