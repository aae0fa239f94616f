/* The helper thread: time limits, signals, and whose it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "../../src/base/os.h"
#include "../../src/base/thread.h"
#include "../../src/observe/helper_thread.h"

#define MS 1000000u
#define PATIENTLY (10000ull * MS)

static struct gos_os real_os;
static _Atomic int go_on;
static int worker_tid;
static bool worker_is_helper;
static bool worker_was_abandoned;
static sigset_t worker_mask;

static int start(void **state)
{
    (void)state;
    real_os = gos_os;
    atomic_store(&go_on, 0);
    worker_tid = 0;
    worker_was_abandoned = false;
    return 0;
}

static int restore(void **state)
{
    (void)state;
    gos_os = real_os;
    return 0;
}

static void look_around(void)
{
    worker_tid = gos_os.tid();
    worker_is_helper = gos_thread.is_helper;
    sigprocmask(SIG_SETMASK, NULL, &worker_mask);
}

static void wait_for_sign(void)
{
    while (!atomic_load(&go_on))
        usleep(1000);
    worker_was_abandoned = gos_helper_is_abandoned();
}

static void work_is_done_on_another_thread_that_is_marked(void **state)
{
    (void)state;
    assert_true(gos_helper_claim());
    assert_int_equal(gos_helper_run(look_around, PATIENTLY), 0);
    gos_helper_release();
    assert_int_not_equal(worker_tid, 0);
    assert_int_not_equal(worker_tid, gos_os.tid());
    assert_true(worker_is_helper);
    assert_false(gos_thread.is_helper);
}

static void signals_of_the_host_are_blocked_and_the_threads_own_are_not(void **state)
{
    (void)state;
    assert_true(gos_helper_claim());
    assert_int_equal(gos_helper_run(look_around, PATIENTLY), 0);
    gos_helper_release();
    static const int blocked[] = {SIGINT, SIGTERM, SIGALRM, SIGPROF, SIGUSR1, SIGCHLD};
    static const int let_through[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    for (size_t i = 0; i < sizeof blocked / sizeof blocked[0]; i++)
        assert_int_equal(sigismember(&worker_mask, blocked[i]), 1);
    for (size_t i = 0; i < sizeof let_through / sizeof let_through[0]; i++)
        assert_int_equal(sigismember(&worker_mask, let_through[i]), 0);
}

static void mask_of_the_caller_stays_as_it_was(void **state)
{
    sigset_t before, after;

    (void)state;
    sigemptyset(&before);
    sigaddset(&before, SIGUSR2);
    sigprocmask(SIG_SETMASK, &before, NULL);
    assert_true(gos_helper_claim());
    assert_int_equal(gos_helper_run(look_around, PATIENTLY), 0);
    gos_helper_release();
    sigprocmask(SIG_SETMASK, NULL, &after);
    for (int number = 1; number < 32; number++)
        assert_int_equal(sigismember(&after, number), number == SIGUSR2);
    sigemptyset(&before);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

static void there_is_one_at_a_time(void **state)
{
    (void)state;
    assert_true(gos_helper_claim());
    assert_false(gos_helper_claim());
    gos_helper_release();
    assert_true(gos_helper_claim());
    gos_helper_release();
}

static void wait_until_free(void)
{
    for (int i = 0; i < 5000 && !gos_helper_claim(); i++)
        usleep(1000);
    gos_helper_release();
}

static void late_helper_is_left_alone_until_it_has_answered(void **state)
{
    (void)state;
    assert_true(gos_helper_claim());
    uint64_t before_ns = gos_os.monotonic_ns();
    assert_int_equal(gos_helper_run(wait_for_sign, 50 * MS), -ETIMEDOUT);
    assert_true(gos_os.monotonic_ns() - before_ns >= 50 * MS);
    assert_false(gos_helper_claim());
    atomic_store(&go_on, 1);
    wait_until_free();
    assert_true(worker_was_abandoned);
    assert_true(gos_helper_claim());
    assert_int_equal(gos_helper_run(look_around, PATIENTLY), 0);
    gos_helper_release();
}

static void work_in_time_is_not_abandoned(void **state)
{
    (void)state;
    atomic_store(&go_on, 1);
    worker_was_abandoned = true;
    assert_true(gos_helper_claim());
    assert_int_equal(gos_helper_run(wait_for_sign, PATIENTLY), 0);
    gos_helper_release();
    assert_false(worker_was_abandoned);
}

static int refuse_mask(uint64_t set, uint64_t *old)
{
    (void)set;
    (void)old;
    return -EINVAL;
}

static void who_waits_gets_the_helper_when_a_late_one_ends(void **state)
{
    (void)state;
    assert_true(gos_helper_claim());
    assert_int_equal(gos_helper_run(wait_for_sign, 10 * MS), -ETIMEDOUT);
    assert_false(gos_helper_claim_within(20 * MS));
    atomic_store(&go_on, 1);
    assert_true(gos_helper_claim_within(PATIENTLY));
    gos_helper_release();
}

static void loose_work_is_waited_for_by_nobody_and_goes_on(void **state)
{
    (void)state;
    worker_was_abandoned = true;
    assert_true(gos_helper_claim());
    assert_int_equal(gos_helper_start(wait_for_sign), 0);
    assert_false(gos_helper_claim());
    atomic_store(&go_on, 1);
    assert_true(gos_helper_claim_within(PATIENTLY));
    assert_false(worker_was_abandoned);
    gos_helper_release();
}

static void loose_work_without_a_thread_leaves_the_claim(void **state)
{
    (void)state;
    gos_os.signal_mask = refuse_mask;
    assert_true(gos_helper_claim());
    assert_int_equal(gos_helper_start(look_around), -EINVAL);
    assert_int_equal(worker_tid, 0);
    assert_false(gos_helper_claim());
    gos_helper_release();
}

static void without_a_thread_the_claim_remains(void **state)
{
    (void)state;
    gos_os.signal_mask = refuse_mask;
    assert_true(gos_helper_claim());
    assert_int_equal(gos_helper_run(look_around, PATIENTLY), -EINVAL);
    assert_int_equal(worker_tid, 0);
    assert_false(gos_helper_claim());
    gos_helper_release();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, restore)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(work_is_done_on_another_thread_that_is_marked),
        TEST(signals_of_the_host_are_blocked_and_the_threads_own_are_not),
        TEST(mask_of_the_caller_stays_as_it_was),
        TEST(there_is_one_at_a_time),
        TEST(late_helper_is_left_alone_until_it_has_answered),
        TEST(work_in_time_is_not_abandoned),
        TEST(without_a_thread_the_claim_remains),
        TEST(who_waits_gets_the_helper_when_a_late_one_ends),
        TEST(loose_work_is_waited_for_by_nobody_and_goes_on),
        TEST(loose_work_without_a_thread_leaves_the_claim),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
