/* What a process may use of a limited device, and the reckoning of what it does. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../src/track/allowance.h"

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define BASE UINT64_C(0x7f0000000000)
#define DEVICE 3u

static int start(void **state)
{
    struct gos_limit_option limit = {{0}};

    (void)state;
    gos_registry_reset_after_fork();
    gos_allowance_reset_after_fork();
    limit.bytes[DEVICE] = GIB;
    gos_allowance_open(&limit);
    return 0;
}

static void record(enum gos_kind kind, uint64_t address, uint64_t bytes)
{
    struct gos_allocation allocation = {
        .address = address, .bytes = bytes, .kind = kind, .device = DEVICE};

    assert_int_equal(gos_registry_add(&allocation), 0);
}

static void forget(enum gos_kind kind, uint64_t address)
{
    struct gos_allocation gone;

    assert_true(gos_registry_take(gos_kind_space(kind), address, &gone));
}

static uint64_t used(void)
{
    return gos_allowance_used(DEVICE);
}

/* --- admission -------------------------------------------------------------------------------- */

static void reservations_fill_the_limit_to_the_last_byte_and_no_further(void **state)
{
    (void)state;
    assert_true(gos_allowance_reserve(DEVICE, GIB - 1));
    assert_false(gos_allowance_reserve(DEVICE, 2));
    assert_true(gos_allowance_reserve(DEVICE, 1));
    assert_false(gos_allowance_reserve(DEVICE, 1));
    gos_allowance_release(DEVICE, GIB);
    assert_int_equal(used(), 0);
    assert_false(gos_allowance_reserve(DEVICE, UINT64_MAX));
    assert_false(gos_allowance_reserve(DEVICE, GIB + 1));
}

static void over_the_limit_nothing_is_granted(void **state)
{
    (void)state;
    gos_allowance_set_unbooked(DEVICE, 2 * GIB);
    assert_false(gos_allowance_reserve(DEVICE, 1));
    assert_int_equal(used(), 2 * GIB);
}

static void devices_without_a_limit_have_none(void **state)
{
    (void)state;
    assert_int_equal(gos_allowance_limit(DEVICE), GIB);
    assert_int_equal(gos_allowance_limit(0), 0);
    assert_int_equal(gos_allowance_limit(GOS_DEVICE_HOST), 0);
    assert_int_equal(gos_allowance_limit(UINT32_MAX), 0);
    assert_int_equal(gos_allowance_used(GOS_DEVICE_HOST), 0);
}

static void costs_are_whole_blocks_and_whole_chunks_of_pools(void **state)
{
    static const struct {
        enum gos_kind kind;
        uint64_t bytes, cost;
    } cases[] = {
        {GOS_KIND_DEVICE, 1, 2 * MIB},
        {GOS_KIND_DEVICE, 2 * MIB, 2 * MIB},
        {GOS_KIND_DEVICE, 2 * MIB + 1, 4 * MIB},
        {GOS_KIND_PHYSICAL, 4 * MIB, 4 * MIB},
        {GOS_KIND_ARRAY, 100, 2 * MIB},
        {GOS_KIND_POOL, 1, 32 * MIB},
        {GOS_KIND_POOL, 33 * MIB, 64 * MIB},
        {GOS_KIND_MANAGED, GIB, 0},
        {GOS_KIND_HOST, GIB, 0},
        {GOS_KIND_IMPORTED, GIB, 0},
        {GOS_KIND_HANDLE, GIB, 0},
        {GOS_KIND_DEVICE, UINT64_MAX, UINT64_MAX},
        {GOS_KIND_POOL, UINT64_MAX - MIB, UINT64_MAX},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_true(gos_allowance_cost(cases[i].kind, cases[i].bytes) == cases[i].cost);
}

/* --- books ------------------------------------------------------------------------------------ */

static void records_are_booked_while_they_live(void **state)
{
    (void)state;
    record(GOS_KIND_DEVICE, BASE, 3 * MIB);
    record(GOS_KIND_PHYSICAL, 77, 20 * MIB);
    record(GOS_KIND_ARRAY, 78, MIB);
    assert_int_equal(used(), (4 + 20 + 2) * MIB);
    forget(GOS_KIND_DEVICE, BASE);
    assert_int_equal(used(), 22 * MIB);
    forget(GOS_KIND_PHYSICAL, 77);
    forget(GOS_KIND_ARRAY, 78);
    assert_int_equal(used(), 0);
}

static void what_takes_nothing_from_the_device_is_not_booked(void **state)
{
    (void)state;
    record(GOS_KIND_MANAGED, BASE, 64 * MIB);
    record(GOS_KIND_POOL, BASE + GIB, 64 * MIB);
    record(GOS_KIND_IMPORTED, BASE + 2 * GIB, 64 * MIB);
    record(GOS_KIND_HANDLE, 5, 64 * MIB);
    assert_int_equal(used(), 0);
}

static void small_ones_share_a_block_until_the_last_is_gone(void **state)
{
    (void)state;
    record(GOS_KIND_DEVICE, BASE, MIB);
    record(GOS_KIND_DEVICE, BASE + MIB, MIB);
    assert_int_equal(used(), 2 * MIB);
    record(GOS_KIND_DEVICE, BASE + 2 * MIB, 512);
    assert_int_equal(used(), 4 * MIB);
    forget(GOS_KIND_DEVICE, BASE);
    assert_int_equal(used(), 4 * MIB);
    forget(GOS_KIND_DEVICE, BASE + MIB);
    assert_int_equal(used(), 2 * MIB);
    forget(GOS_KIND_DEVICE, BASE + 2 * MIB);
    assert_int_equal(used(), 0);
}

static void replaced_record_is_booked_once(void **state)
{
    (void)state;
    record(GOS_KIND_DEVICE, BASE, 8 * MIB);
    record(GOS_KIND_DEVICE, BASE, 4 * MIB);
    assert_int_equal(used(), 4 * MIB);
    forget(GOS_KIND_DEVICE, BASE);
    assert_int_equal(used(), 0);
}

static void room_of_a_free_is_there_only_when_the_driver_has_done_it(void **state)
{
    (void)state;
    record(GOS_KIND_DEVICE, BASE, GIB);
    gos_allowance_hold();
    forget(GOS_KIND_DEVICE, BASE);
    assert_int_equal(used(), GIB);
    assert_false(gos_allowance_reserve(DEVICE, 1));
    gos_allowance_let_go();
    assert_int_equal(used(), 0);
    gos_allowance_let_go();
    assert_int_equal(used(), 0);
}

static void refused_free_leaves_the_books_as_they_were(void **state)
{
    struct gos_allocation gone;

    (void)state;
    record(GOS_KIND_DEVICE, BASE, 64 * MIB);
    gos_allowance_hold();
    assert_true(gos_registry_take(GOS_SPACE_ADDRESS, BASE, &gone));
    gos_registry_restore(&gone);
    gos_allowance_let_go();
    assert_int_equal(used(), 64 * MIB);
    forget(GOS_KIND_DEVICE, BASE);
    assert_int_equal(used(), 0);
}

static void without_room_a_small_one_is_kept_only_in_a_booked_block(void **state)
{
    (void)state;
    record(GOS_KIND_DEVICE, BASE, MIB);
    assert_true(gos_allowance_reserve(DEVICE, GIB - 2 * MIB));
    assert_true(gos_allowance_claim(DEVICE, BASE + MIB));
    assert_false(gos_allowance_claim(DEVICE, BASE + 2 * MIB));
    forget(GOS_KIND_DEVICE, BASE);
    assert_int_equal(used(), GIB); /* the claim keeps the block */
    record(GOS_KIND_DEVICE, BASE + MIB, MIB);
    gos_allowance_unclaim(DEVICE, BASE + MIB);
    assert_int_equal(used(), GIB);
    forget(GOS_KIND_DEVICE, BASE + MIB);
    assert_true(gos_allowance_claim(DEVICE, BASE + 2 * MIB)); /* there is room now */
    gos_allowance_unclaim(DEVICE, BASE + 2 * MIB);
    assert_int_equal(used(), GIB - 2 * MIB);
}

/* --- measuring -------------------------------------------------------------------------------- */

static void drawn_bytes_are_as_measured_and_what_came_since(void **state)
{
    struct gos_allowance_mark mark;

    (void)state;
    assert_true(gos_allowance_reserve(DEVICE, 64 * MIB));
    gos_allowance_draw(DEVICE, 64 * MIB);
    assert_int_equal(used(), 64 * MIB);
    mark = gos_allowance_mark(DEVICE);
    assert_true(gos_allowance_reserve(DEVICE, 32 * MIB));
    gos_allowance_draw(DEVICE, 32 * MIB);
    gos_allowance_set_drawn(DEVICE, &mark, 10 * MIB);
    assert_int_equal(used(), 42 * MIB); /* 32 may or may not be among the 10 */
    assert_true(gos_allowance_moved(DEVICE, &mark));
    mark = gos_allowance_mark(DEVICE);
    gos_allowance_set_drawn(DEVICE, &mark, 42 * MIB);
    assert_int_equal(used(), 42 * MIB);
    assert_false(gos_allowance_moved(DEVICE, &mark));
}

static void what_is_in_flight_is_never_lost_by_measuring(void **state)
{
    struct gos_allowance_mark mark = gos_allowance_mark(DEVICE);

    (void)state;
    assert_true(gos_allowance_reserve(DEVICE, 64 * MIB));
    gos_allowance_set_drawn(DEVICE, &mark, 0);
    assert_int_equal(used(), 64 * MIB);
    assert_true(gos_allowance_is_busy(DEVICE));
    assert_false(gos_allowance_set_own(DEVICE, &mark, 600 * MIB));
    assert_int_equal(used(), 64 * MIB);
    gos_allowance_release(DEVICE, 64 * MIB);
    assert_false(gos_allowance_is_busy(DEVICE));
    assert_false(gos_allowance_set_own(DEVICE, &mark, 600 * MIB)); /* it moved since */
}

static void contexts_and_modules_are_what_is_not_on_the_books(void **state)
{
    struct gos_allowance_mark mark;

    (void)state;
    record(GOS_KIND_DEVICE, BASE, 64 * MIB);
    mark = gos_allowance_mark(DEVICE);
    gos_allowance_set_drawn(DEVICE, &mark, 32 * MIB);
    assert_true(gos_allowance_set_own(DEVICE, &mark, 600 * MIB));
    assert_int_equal(used(), 600 * MIB);
    assert_int_equal(gos_allowance_unbooked(DEVICE), 504 * MIB);
    assert_true(gos_allowance_set_own(DEVICE, &mark, 10 * MIB)); /* less than the books: nothing */
    assert_int_equal(used(), 96 * MIB);
}

static void child_starts_with_nothing_used_and_the_same_limit(void **state)
{
    (void)state;
    record(GOS_KIND_DEVICE, BASE, MIB);
    assert_true(gos_allowance_reserve(DEVICE, 64 * MIB));
    gos_registry_reset_after_fork();
    gos_allowance_reset_after_fork();
    assert_int_equal(used(), 0);
    assert_int_equal(gos_allowance_limit(DEVICE), GIB);
    record(GOS_KIND_DEVICE, BASE, MIB);
    assert_int_equal(used(), 2 * MIB);
}

/* --- threads ---------------------------------------------------------------------------------- */

#define THREADS 16
#define ROUNDS 2000

static void *take_and_give(void *arg)
{
    uint64_t base = BASE + (uint64_t)(uintptr_t)arg * GIB;

    for (uint64_t i = 0; i < ROUNDS; i++) {
        uint64_t bytes = (1 + i % 8) * 16 * MIB;
        if (!gos_allowance_reserve(DEVICE, bytes))
            continue;
        record(GOS_KIND_DEVICE, base, bytes);
        gos_allowance_release(DEVICE, bytes);
        gos_allowance_hold();
        forget(GOS_KIND_DEVICE, base);
        gos_allowance_let_go();
    }
    return NULL;
}

static void sum_of_many_threads_comes_out_at_zero(void **state)
{
    pthread_t threads[THREADS];

    (void)state;
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(used(), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, start)
    const struct CMUnitTest tests[] = {
        TEST(reservations_fill_the_limit_to_the_last_byte_and_no_further),
        TEST(over_the_limit_nothing_is_granted),
        TEST(devices_without_a_limit_have_none),
        TEST(costs_are_whole_blocks_and_whole_chunks_of_pools),
        TEST(records_are_booked_while_they_live),
        TEST(what_takes_nothing_from_the_device_is_not_booked),
        TEST(small_ones_share_a_block_until_the_last_is_gone),
        TEST(replaced_record_is_booked_once),
        TEST(room_of_a_free_is_there_only_when_the_driver_has_done_it),
        TEST(refused_free_leaves_the_books_as_they_were),
        TEST(without_room_a_small_one_is_kept_only_in_a_booked_block),
        TEST(drawn_bytes_are_as_measured_and_what_came_since),
        TEST(what_is_in_flight_is_never_lost_by_measuring),
        TEST(contexts_and_modules_are_what_is_not_on_the_books),
        TEST(child_starts_with_nothing_used_and_the_same_limit),
        TEST(sum_of_many_threads_comes_out_at_zero),
    };

    return cmocka_run_group_tests_name("allowance", tests, NULL, NULL);
}
