#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pthread.h>

#include <cmocka.h>

#include "../../src/base/thread.h"

struct seen {
    uint32_t index, again;
    int tid, kernel_tid;
    uint32_t depth_at_start;
};

static void *look(void *arg)
{
    struct seen *seen = arg;

    seen->depth_at_start = gos_thread.depth;
    gos_thread.depth = 7;
    seen->index = gos_thread_index();
    seen->again = gos_thread_index();
    seen->tid = gos_thread.tid;
    seen->kernel_tid = (int)syscall(SYS_gettid);
    return NULL;
}

static struct seen look_from_a_new_thread(void)
{
    struct seen seen = {0};
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, look, &seen), 0);
    pthread_join(thread, NULL);
    return seen;
}

static void a_thread_keeps_its_number_and_kernel_id(void **state)
{
    struct seen seen = look_from_a_new_thread();

    (void)state;
    assert_true(seen.index >= 1);
    assert_int_equal(seen.index, seen.again);
    assert_int_equal(seen.tid, seen.kernel_tid);
}

static void numbers_are_not_given_out_twice(void **state)
{
    struct seen one = look_from_a_new_thread(), other = look_from_a_new_thread();

    (void)state;
    assert_int_not_equal(one.index, other.index);
    assert_int_not_equal(one.index, gos_thread_index());
}

static void each_thread_starts_outside_any_hook(void **state)
{
    (void)state;
    assert_int_equal(look_from_a_new_thread().depth_at_start, 0);
    assert_int_equal(gos_thread.depth, 0);
}

static int child_checks(void)
{
    gos_thread_reset_after_fork();
    return gos_thread_index() != 1 || gos_thread.tid != getpid();
}

static void a_forked_child_is_thread_number_one(void **state)
{
    (void)state;
    look_from_a_new_thread();
    int status = -1;
    pid_t child = fork();
    if (child == 0)
        _exit(child_checks());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_keeps_its_number_and_kernel_id),
        cmocka_unit_test(numbers_are_not_given_out_twice),
        cmocka_unit_test(each_thread_starts_outside_any_hook),
        cmocka_unit_test(a_forked_child_is_thread_number_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
