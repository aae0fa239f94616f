/* Registered flush functions, and the plan that asks them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "../../src/base/options.h"
#include "../../src/base/thread.h"
#include "../../src/recover/flush_callback.h"
#include "../../src/recover/flush_plan.h"

#define SECOND 1000000000ull

static int seen_device;
static uint64_t seen_bytes;
static int arguments[GOS_FLUSH_CALLBACK_MAX + 1];
static _Atomic int has_begun, may_end, has_ended;

static int answer(void *arg, int device, uint64_t wanted_bytes)
{
    seen_device = device;
    seen_bytes = wanted_bytes;
    return *(int *)arg;
}

static int linger(void *arg, int device, uint64_t wanted_bytes)
{
    (void)arg, (void)device, (void)wanted_bytes;
    atomic_store(&has_begun, 1);
    while (!atomic_load(&may_end))
        usleep(1000);
    atomic_store(&has_ended, 1);
    return 0;
}

static int take_itself_away(void *arg, int device, uint64_t wanted_bytes)
{
    (void)device, (void)wanted_bytes;
    gos_options.flush_budget = SECOND / 100;
    return gos_flush_callback_remove(take_itself_away, arg);
}

static void function_gets_what_was_registered_and_asked(void **state)
{
    char name[] = "cache";
    int result = 0;

    (void)state;
    arguments[0] = 17;
    assert_int_equal(gos_flush_callback_add(name, answer, arguments), 0);
    memset(name, 'x', sizeof name - 1);
    assert_string_equal(gos_flush_callback_name(0), "cache");
    assert_true(gos_flush_callback_call(0, 3, 4096, &result));
    assert_int_equal(result, 17);
    assert_int_equal(seen_device, 3);
    assert_int_equal(seen_bytes, 4096);
    assert_int_equal(gos_flush_callback_remove(answer, arguments), 0);
    assert_null(gos_flush_callback_name(0));
    assert_false(gos_flush_callback_call(0, 3, 4096, &result));
}

static void what_cannot_be_registered_is_refused(void **state)
{
    (void)state;
    assert_int_equal(gos_flush_callback_add(NULL, answer, NULL), -EINVAL);
    assert_int_equal(gos_flush_callback_add("", answer, NULL), -EINVAL);
    assert_int_equal(gos_flush_callback_add("cache", NULL, NULL), -EINVAL);
    assert_int_equal(gos_flush_callback_remove(answer, NULL), -ENOENT);
    assert_int_equal(gos_flush_callback_remove(NULL, NULL), -ENOENT);
    assert_int_equal(gos_flush_callback_count(), 0);
}

static void the_same_function_is_registered_once_for_each_argument(void **state)
{
    (void)state;
    assert_int_equal(gos_flush_callback_add("one", answer, &arguments[0]), 0);
    assert_int_equal(gos_flush_callback_add("two", answer, &arguments[0]), -EEXIST);
    assert_int_equal(gos_flush_callback_add("two", answer, &arguments[1]), 0);
    assert_int_equal(gos_flush_callback_count(), 2);
    assert_int_equal(gos_flush_callback_remove(answer, &arguments[0]), 0);
    assert_int_equal(gos_flush_callback_remove(answer, &arguments[1]), 0);
}

static void a_full_table_refuses_and_takes_again_when_there_is_room(void **state)
{
    (void)state;
    for (int i = 0; i < GOS_FLUSH_CALLBACK_MAX; i++)
        assert_int_equal(gos_flush_callback_add("many", answer, &arguments[i]), 0);
    int *last = &arguments[GOS_FLUSH_CALLBACK_MAX];
    assert_int_equal(gos_flush_callback_add("many", answer, last), -ENOSPC);
    assert_int_equal(gos_flush_callback_remove(answer, &arguments[5]), 0);
    assert_int_equal(gos_flush_callback_add("many", answer, last), 0);
    for (int i = 0; i <= GOS_FLUSH_CALLBACK_MAX; i++)
        assert_int_equal(gos_flush_callback_remove(answer, &arguments[i]), i == 5 ? -ENOENT : 0);
}

static void *call_first(void *unused)
{
    int result;

    gos_flush_callback_call(0, 0, 0, &result);
    return unused;
}

static void begin_lingering(pthread_t *thread)
{
    atomic_store(&has_begun, 0);
    atomic_store(&may_end, 0);
    atomic_store(&has_ended, 0);
    assert_int_equal(gos_flush_callback_add("slow", linger, NULL), 0);
    pthread_create(thread, NULL, call_first, NULL);
    while (!atomic_load(&has_begun))
        usleep(1000);
}

static void *let_end_soon(void *unused)
{
    usleep(50000);
    atomic_store(&may_end, 1);
    return unused;
}

static void after_removal_no_call_goes_on(void **state)
{
    pthread_t thread, other;

    (void)state;
    gos_options.flush_budget = 10 * SECOND;
    begin_lingering(&thread);
    pthread_create(&other, NULL, let_end_soon, NULL);
    assert_int_equal(gos_flush_callback_remove(linger, NULL), 0);
    assert_int_equal(atomic_load(&has_ended), 1);
    pthread_join(thread, NULL);
    pthread_join(other, NULL);
}

static void removal_says_when_a_call_does_not_end(void **state)
{
    pthread_t thread;

    (void)state;
    gos_options.flush_budget = SECOND / 50;
    begin_lingering(&thread);
    assert_int_equal(gos_flush_callback_remove(linger, NULL), -EBUSY);
    /* Its row is not given away while it runs. */
    assert_int_equal(gos_flush_callback_add("next", answer, arguments), 0);
    assert_null(gos_flush_callback_name(0));
    atomic_store(&may_end, 1);
    pthread_join(thread, NULL);
    assert_int_equal(gos_flush_callback_remove(answer, arguments), 0);
}

static void function_may_remove_itself(void **state)
{
    int result = -1;

    (void)state;
    assert_int_equal(gos_flush_callback_add("once", take_itself_away, NULL), 0);
    gos_thread.is_helper = true;
    assert_true(gos_flush_callback_call(0, 0, 0, &result));
    gos_thread.is_helper = false;
    assert_int_equal(result, 0);
    assert_int_equal(gos_flush_callback_count(), 0);
}

static void plan_asks_registered_functions_and_nobody_else_without_an_interpreter(void **state)
{
    struct gos_evidence evidence = {.request = {.api = "cuMemAlloc", .bytes = 1, .result = 2}};
    struct gos_diagnosis diagnosis = {.evidence = &evidence, .holder_count = 1};
    struct gos_flush_plan plan;

    (void)state;
    diagnosis.holders[0].name = "torch";
    diagnosis.holders[0].live_bytes = 1u << 30;
    diagnosis.verdict.short_bytes = UINT64_MAX;
    assert_non_null(strstr(gos_flush_plan_make(&diagnosis, &plan), "nobody"));
    assert_int_equal(gos_flush_callback_add("cache", answer, arguments), 0);
    assert_null(gos_flush_plan_make(&diagnosis, &plan));
    assert_true(plan.callbacks);
    assert_false(plan.torch || plan.cupy || plan.named);
    assert_int_equal(gos_flush_callback_remove(answer, arguments), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(function_gets_what_was_registered_and_asked),
        cmocka_unit_test(what_cannot_be_registered_is_refused),
        cmocka_unit_test(the_same_function_is_registered_once_for_each_argument),
        cmocka_unit_test(a_full_table_refuses_and_takes_again_when_there_is_room),
        cmocka_unit_test(after_removal_no_call_goes_on),
        cmocka_unit_test(removal_says_when_a_call_does_not_end),
        cmocka_unit_test(function_may_remove_itself),
        cmocka_unit_test(plan_asks_registered_functions_and_nobody_else_without_an_interpreter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
