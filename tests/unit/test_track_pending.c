/* Stream-ordered frees, summed up by stream until it is drained. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <pthread.h>
#include <cmocka.h>

#include "../../src/base/loss.h"
#include "../../src/base/thread.h"
#include "../../src/track/pool.h"

static struct gos_pending list[GOS_STREAM_MAX + 1];

static int start_empty(void **state)
{
    (void)state;
    gos_pool_reset_after_fork();
    return 0;
}

static void add(uint64_t stream, uint64_t context, bool per_thread, uint64_t bytes)
{
    struct gos_pending one = {.stream = stream,
                              .context = context,
                              .device = 2,
                              .per_thread = per_thread,
                              .bytes = bytes,
                              .count = 1};

    gos_pending_add(&one);
}

static uint64_t bytes_listed(void)
{
    size_t count = gos_pending_list(list, GOS_STREAM_MAX + 1);
    uint64_t bytes = 0;

    for (size_t i = 0; i < count; i++)
        bytes += list[i].bytes;
    return bytes;
}

static void frees_of_one_stream_are_summed_up(void **state)
{
    (void)state;
    add(0x5000, 1, false, 100);
    add(0x5000, 1, false, 50);
    add(0x6000, 1, false, 7);
    assert_int_equal(gos_pending_list(list, GOS_STREAM_MAX), 2);
    if (list[0].stream != 0x5000)
        list[0] = list[1];
    assert_int_equal(list[0].stream, 0x5000);
    assert_int_equal(list[0].context, 1);
    assert_int_equal(list[0].device, 2);
    assert_int_equal(list[0].bytes, 150);
    assert_int_equal(list[0].count, 2);
    assert_false(list[0].per_thread);
}

static void drained_stream_has_nothing_pending_and_collects_anew(void **state)
{
    (void)state;
    add(0x5000, 1, false, 100);
    add(0x6000, 1, false, 7);
    gos_pending_drained(0x5000, 1);
    assert_int_equal(bytes_listed(), 7);
    add(0x5000, 1, false, 3);
    assert_int_equal(bytes_listed(), 10);
}

static void stream_is_drained_under_whichever_context_it_was_used(void **state)
{
    (void)state;
    add(0x5000, 1, false, 100);
    add(0x5000, 2, false, 100);
    add(0x6000, 1, false, 7);
    gos_pending_drained(0x5000, 3);
    assert_int_equal(bytes_listed(), 7);
}

static void default_stream_is_drained_per_context(void **state)
{
    (void)state;
    add(0, 1, false, 100);
    add(0, 2, false, 10);
    gos_pending_drained(0, 1);
    assert_int_equal(bytes_listed(), 10);
}

static void legacy_number_and_zero_are_one_stream(void **state)
{
    (void)state;
    add(0, 1, false, 100);
    add(1, 1, false, 10);
    add(1, 1, true, 1);
    assert_int_equal(gos_pending_list(list, GOS_STREAM_MAX), 1);
    assert_int_equal(list[0].stream, 0);
    assert_int_equal(list[0].bytes, 111);
    gos_pending_drained(1, 1);
    assert_int_equal(bytes_listed(), 0);
}

static void per_thread_stream_is_named_two_ways(void **state)
{
    (void)state;
    add(0, 1, true, 100);
    add(2, 1, false, 10);
    add(0, 1, false, 1);
    assert_int_equal(gos_pending_list(list, GOS_STREAM_MAX), 2);
    gos_pending_drained(2, 1);
    assert_int_equal(gos_pending_list(list, GOS_STREAM_MAX), 1);
    assert_int_equal(list[0].bytes, 1);
}

static void created_stream_is_the_same_through_both_interfaces(void **state)
{
    (void)state;
    add(0x5000, 1, true, 100);
    add(0x5000, 1, false, 10);
    assert_int_equal(gos_pending_list(list, GOS_STREAM_MAX), 1);
    assert_false(list[0].per_thread);
}

static void *free_on_own_stream(void *bytes)
{
    add(2, 1, false, *(uint64_t *)bytes);
    return NULL;
}

static void per_thread_streams_of_two_threads_are_two(void **state)
{
    uint64_t bytes = 10;
    pthread_t thread;

    (void)state;
    add(2, 1, false, 100);
    pthread_create(&thread, NULL, free_on_own_stream, &bytes);
    pthread_join(thread, NULL);
    assert_int_equal(gos_pending_list(list, GOS_STREAM_MAX), 2);
    gos_pending_drained(2, 1);
    assert_int_equal(gos_pending_list(list, GOS_STREAM_MAX), 1);
    assert_int_equal(list[0].bytes, 10);
    assert_true(list[0].per_thread);
    assert_int_not_equal(list[0].thread, gos_thread_index());
}

enum { THREADS = 40, FREES = 2000 }; /* more threads than a stream has lines to write */

static void *free_many(void *unused)
{
    for (int i = 0; i < FREES; i++)
        add(0x7000, 1, false, 3);
    return unused;
}

static void frees_of_many_threads_on_one_stream_are_all_counted(void **state)
{
    pthread_t threads[THREADS];

    (void)state;
    add(0x7000, 1, false, 1);
    gos_pending_drained(0x7000, 1);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, free_many, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(gos_pending_list(list, GOS_STREAM_MAX), 1);
    assert_int_equal(list[0].count, THREADS * FREES);
    assert_int_equal(list[0].bytes, 3 * THREADS * FREES);
    gos_pending_drained(0x7000, 1);
    assert_int_equal(gos_pending_list(list, GOS_STREAM_MAX), 0);
}

static void stream_that_took_a_forgotten_ones_place_starts_at_zero(void **state)
{
    (void)state;
    add(0x7000, 1, false, 3);
    gos_pending_stream_destroyed(0x7000);
    add(0x7000, 2, false, 4);
    add(0x7000, 2, false, 4);
    assert_int_equal(gos_pending_list(list, GOS_STREAM_MAX), 1);
    assert_int_equal(list[0].bytes, 8);
    assert_int_equal(list[0].context, 2);
}

static void destroyed_stream_is_forgotten_and_its_number_starts_at_zero(void **state)
{
    uint64_t generation = gos_handle_generation();

    (void)state;
    add(0x5000, 1, false, 100);
    gos_pending_stream_destroyed(0x5000);
    assert_true(gos_handle_generation() > generation);
    assert_int_equal(bytes_listed(), 0);
    add(0x5000, 1, false, 5);
    assert_int_equal(bytes_listed(), 5);
}

static void default_streams_are_never_destroyed(void **state)
{
    (void)state;
    add(0, 1, false, 100);
    gos_pending_stream_destroyed(0);
    gos_pending_stream_destroyed(1);
    gos_pending_stream_destroyed(2);
    assert_int_equal(bytes_listed(), 100);
}

static void destroyed_context_takes_its_pending_frees_along(void **state)
{
    (void)state;
    add(0, 1, false, 100);
    add(0x5000, 1, false, 10);
    add(0, 2, false, 1);
    gos_context_destroyed(1);
    assert_int_equal(bytes_listed(), 1);
}

static void full_table_forgets_drained_streams_first(void **state)
{
    uint64_t lost = gos_loss_get(GOS_LOSS_TABLE);

    (void)state;
    for (uint64_t i = 0; i < GOS_STREAM_MAX; i++)
        add(0x5000 + i * 16, 1, false, 1);
    gos_pending_drained(0x5000, 1);
    add(0x4000, 1, false, 1);
    assert_int_equal(bytes_listed(), GOS_STREAM_MAX);
    assert_int_equal(gos_loss_get(GOS_LOSS_TABLE), lost);
}

static void stream_too_many_is_counted_as_lost_until_there_is_room(void **state)
{
    uint64_t lost = gos_loss_get(GOS_LOSS_TABLE);

    (void)state;
    for (uint64_t i = 0; i < GOS_STREAM_MAX; i++)
        add(0x5000 + i * 16, 1, false, 1);
    add(0x4000, 1, false, 1);
    add(0x4000, 1, false, 1);
    assert_int_equal(gos_loss_get(GOS_LOSS_TABLE), lost + 2);
    assert_int_equal(bytes_listed(), GOS_STREAM_MAX);
    add(0x5000, 1, false, 1);
    assert_int_equal(bytes_listed(), GOS_STREAM_MAX + 1);
    gos_pending_stream_destroyed(0x5000);
    add(0x4000, 1, false, 1);
    assert_int_equal(bytes_listed(), GOS_STREAM_MAX);
    assert_int_equal(gos_loss_get(GOS_LOSS_TABLE), lost + 2);
}

#if defined(__SANITIZE_THREAD__)
enum { CHURN_COUNT = 10000 }; /* forty times as slow there, and of one thread */
#else
enum { CHURN_COUNT = 200000 };
#endif

/* Streams come and go for long: every one is still found, alone, at its number. */
static void churn_of_streams_loses_none(void **state)
{
    uint64_t expected = 0;

    (void)state;
    srandom(1);
    for (int i = 0; i < CHURN_COUNT; i++) {
        uint64_t stream = 0x5000 + (uint64_t)(random() % 900) * 48;

        if (random() % 3) {
            add(stream, 1, false, 1);
            expected++;
        } else {
            size_t count = gos_pending_list(list, GOS_STREAM_MAX);

            for (size_t j = 0; j < count && i % 64 == 0; j++)
                assert_true(list[j].count == list[j].bytes);
            expected = bytes_listed();
            gos_pending_stream_destroyed(stream);
            for (size_t j = 0; j < count; j++)
                expected -= list[j].stream == stream ? list[j].bytes : 0;
            assert_int_equal(bytes_listed(), expected);
        }
    }
}

static void list_is_cut_at_the_callers_room(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 10; i++)
        add(0x5000 + i, 1, false, 1);
    assert_int_equal(gos_pending_list(list, 4), 4);
    assert_int_equal(gos_pending_list(list, 0), 0);
}

#define TEST(name) cmocka_unit_test_setup(name, start_empty)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(frees_of_one_stream_are_summed_up),
        TEST(drained_stream_has_nothing_pending_and_collects_anew),
        TEST(stream_is_drained_under_whichever_context_it_was_used),
        TEST(default_stream_is_drained_per_context),
        TEST(legacy_number_and_zero_are_one_stream),
        TEST(per_thread_stream_is_named_two_ways),
        TEST(created_stream_is_the_same_through_both_interfaces),
        TEST(per_thread_streams_of_two_threads_are_two),
        TEST(frees_of_many_threads_on_one_stream_are_all_counted),
        TEST(stream_that_took_a_forgotten_ones_place_starts_at_zero),
        TEST(destroyed_stream_is_forgotten_and_its_number_starts_at_zero),
        TEST(default_streams_are_never_destroyed),
        TEST(destroyed_context_takes_its_pending_frees_along),
        TEST(full_table_forgets_drained_streams_first),
        TEST(stream_too_many_is_counted_as_lost_until_there_is_room),
        TEST(churn_of_streams_loses_none),
        TEST(list_is_cut_at_the_callers_room),
    };

    return cmocka_run_group_tests_name("track_pending", tests, NULL, NULL);
}
