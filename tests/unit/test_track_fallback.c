/* The table of what stands in for device memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>

#include "../../src/track/fallback.h"

static struct gos_fallback_memory memory(uint64_t address, enum gos_fallback way)
{
    return (struct gos_fallback_memory){
        .address = address, .bytes = 4096, .context = 0xc0, .device = 1, .way = way};
}

static int start_empty(void **state)
{
    (void)state;
    gos_fallback_reset_after_fork();
    return 0;
}

static bool add(uint64_t address, enum gos_fallback way, uint64_t event)
{
    struct gos_fallback_memory one = memory(address, way);

    one.event = event;
    return gos_fallback_add(&one);
}

static void what_was_added_is_found_until_it_is_taken(void **state)
{
    struct gos_fallback_memory found;

    (void)state;
    assert_true(add(0x1000, GOS_FALLBACK_MANAGED, 0));
    assert_true(gos_fallback_find(0x1000, &found));
    assert_int_equal(found.way, GOS_FALLBACK_MANAGED);
    assert_int_equal(gos_fallback_total(1, GOS_FALLBACK_MANAGED).live_bytes, 4096);
    assert_int_equal(gos_fallback_total(0, GOS_FALLBACK_MANAGED).live_bytes, 0);
    assert_true(gos_fallback_take(0x1000, &found));
    assert_false(gos_fallback_take(0x1000, &found));
    assert_false(gos_fallback_find(0x1000, &found));
    assert_int_equal(gos_fallback_count, 0);
}

static void one_too_many_is_refused(void **state)
{
    struct gos_fallback_memory taken;

    (void)state;
    for (uint64_t i = 0; i < GOS_FALLBACK_MAX; i++)
        assert_true(add(0x1000 + i, GOS_FALLBACK_HOST, 0));
    assert_false(add(0x100, GOS_FALLBACK_HOST, 0));
    assert_true(gos_fallback_take(0x1007, &taken));
    assert_true(add(0x100, GOS_FALLBACK_HOST, 0));
}

static bool is_even(uint64_t event)
{
    return event % 2 == 0;
}

/* Its address may be the host's again before ours is freed: it must not be taken for that. */
static void what_the_host_freed_is_found_by_its_event_alone(void **state)
{
    struct gos_fallback_memory taken;

    (void)state;
    assert_true(add(0x1000, GOS_FALLBACK_HOST, 3));
    assert_false(gos_fallback_find(0x1000, &taken));
    assert_false(gos_fallback_take_freed(is_even, &taken));
    assert_true(add(0x2000, GOS_FALLBACK_HOST, 4));
    assert_true(gos_fallback_take_freed(is_even, &taken));
    assert_int_equal(taken.address, 0x2000);
    assert_false(gos_fallback_take_freed(is_even, &taken));
    assert_int_equal(gos_fallback_count, 1);
}

static void end_of_a_context_ends_what_lives_in_it(void **state)
{
    struct gos_fallback_memory found;

    (void)state;
    assert_true(add(0x1000, GOS_FALLBACK_MANAGED, 0));
    gos_fallback_context_ended(0xc1);
    assert_true(gos_fallback_find(0x1000, &found));
    gos_fallback_context_ended(0xc0);
    assert_false(gos_fallback_find(0x1000, &found));
}

static void *come_and_go(void *number)
{
    struct gos_fallback_memory taken;
    uint64_t base = (uint64_t)(uintptr_t)number << 32;

    for (uint64_t i = 2; i < 20000; i++) {
        assert_true(add(base + i, GOS_FALLBACK_SYNC, 0));
        assert_true(gos_fallback_take(base + i, &taken));
        assert_int_equal(taken.address, base + i);
    }
    return NULL;
}

static void threads_do_not_lose_each_others(void **state)
{
    pthread_t threads[4];

    (void)state;
    for (uintptr_t i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, come_and_go, (void *)(i + 1));
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(gos_fallback_count, 0);
}

#define TEST(name) cmocka_unit_test_setup(name, start_empty)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_added_is_found_until_it_is_taken),
        TEST(one_too_many_is_refused),
        TEST(what_the_host_freed_is_found_by_its_event_alone),
        TEST(end_of_a_context_ends_what_lives_in_it),
        TEST(threads_do_not_lose_each_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
