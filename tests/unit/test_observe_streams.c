#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "../../src/base/thread.h"
#include "../../src/observe/streams.h"
#include "../../src/track/pool.h"
#include "observe_fake_gpu.h"

static struct gos_evidence evidence;

static int begin(void **state)
{
    (void)state;
    gos_pool_reset_after_fork();
    fake_gpu_install();
    gos_context_seen(FAKE_CONTEXT(0), 0);
    gos_context_seen(FAKE_CONTEXT(1), 1);
    memset(&evidence, 0, sizeof(evidence));
    return 0;
}

static int end(void **state)
{
    (void)state;
    gos_scratch_release(&evidence.scratch);
    return 0;
}

static void free_in_order(uint64_t stream, uint32_t device, bool per_thread)
{
    gos_pending_add(&(struct gos_pending){.stream = stream,
                                          .context = FAKE_CONTEXT(device),
                                          .device = device,
                                          .per_thread = per_thread,
                                          .bytes = 1000,
                                          .count = 1});
}

static void a_busy_stream_is_told_from_an_idle_one(void **state)
{
    (void)state;
    free_in_order(0x51, 0, false);
    free_in_order(0x52, 0, false);
    fake_gpu.busy_stream = 0x52;
    gos_streams_observe(&evidence, true);
    assert_int_equal(evidence.stream_count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_true(evidence.streams[i].asked);
        assert_int_equal(evidence.streams[i].running, evidence.streams[i].stream == 0x52);
        assert_int_equal(evidence.streams[i].freed_bytes, 1000);
    }
    assert_int_equal(evidence.incomplete_count, 0);
}

static void the_default_stream_is_asked_in_its_own_context(void **state)
{
    (void)state;
    free_in_order(0, 1, false);
    gos_streams_observe(&evidence, true);
    assert_int_equal(fake_gpu.query_calls, 1);
    assert_int_equal(fake_gpu.queried_in, FAKE_CONTEXT(1));
    assert_int_equal(fake_gpu.depth, 1);
    assert_int_equal(fake_gpu.stack[0], FAKE_CONTEXT(0));
}

static void the_per_thread_default_stream_is_asked_by_its_own_function(void **state)
{
    (void)state;
    free_in_order(0, 0, true);
    gos_streams_observe(&evidence, true);
    assert_int_equal(fake_gpu.query_thread_calls, 1);
    assert_true(evidence.streams[0].asked);
    assert_int_equal(evidence.incomplete_count, 0);
}

static void *free_on_per_thread_stream(void *arg)
{
    (void)arg;
    free_in_order(0, 0, true);
    return NULL;
}

static void the_per_thread_stream_of_another_thread_is_not_asked(void **state)
{
    pthread_t thread;

    (void)state;
    gos_thread_index();
    assert_int_equal(pthread_create(&thread, NULL, free_on_per_thread_stream, NULL), 0);
    pthread_join(thread, NULL);
    gos_streams_observe(&evidence, true);
    assert_int_equal(fake_gpu.query_calls, 0);
    assert_true(evidence.streams[0].of_other_thread);
    assert_false(evidence.streams[0].asked);
    assert_int_equal(evidence.incomplete_count, 1);
}

static void nothing_is_asked_while_anything_is_captured(void **state)
{
    (void)state;
    free_in_order(0x51, 0, false);
    gos_capture_began(0x99, 0xc0);
    gos_streams_observe(&evidence, true);
    gos_capture_ended(0x99);
    assert_int_equal(fake_gpu.query_calls, 0);
    assert_int_equal(evidence.stream_count, 1);
    assert_false(evidence.streams[0].asked);
    assert_non_null(strstr(evidence.incomplete[0], "1 streams"));
}

static void a_stream_that_gives_an_error_counts_as_not_asked(void **state)
{
    (void)state;
    free_in_order(0x51, 0, false);
    fake_gpu.fail_nth = 2; /* 1 is the look at the current context */
    gos_streams_observe(&evidence, true);
    assert_true(fake_gpu.failed);
    assert_int_equal(fake_gpu.query_calls, 1);
    assert_false(evidence.streams[0].asked);
    assert_int_equal(evidence.incomplete_count, 1);
}

static void a_stream_of_a_dead_context_is_not_asked(void **state)
{
    (void)state;
    gos_pending_add(
        &(struct gos_pending){.stream = 0x51, .context = 0xDEAD, .bytes = 5, .count = 1});
    gos_streams_observe(&evidence, true);
    assert_int_equal(fake_gpu.query_calls, 0);
    assert_false(evidence.streams[0].asked);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_busy_stream_is_told_from_an_idle_one),
        TEST(the_default_stream_is_asked_in_its_own_context),
        TEST(the_per_thread_default_stream_is_asked_by_its_own_function),
        TEST(the_per_thread_stream_of_another_thread_is_not_asked),
        TEST(nothing_is_asked_while_anything_is_captured),
        TEST(a_stream_that_gives_an_error_counts_as_not_asked),
        TEST(a_stream_of_a_dead_context_is_not_asked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
