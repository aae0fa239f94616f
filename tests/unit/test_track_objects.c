/* Pools, contexts, captures, homes and kinds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "../../src/base/loss.h"
#include "../../src/track/home.h"
#include "../../src/track/kind.h"
#include "../../src/track/pool.h"
#include "../../src/track/registry.h"

static int start_empty(void **state)
{
    (void)state;
    gos_pool_reset_after_fork();
    gos_home_reset_after_fork();
    return 0;
}

/* --- pools --- */

static void pool_is_found_as_it_was_seen(void **state)
{
    struct gos_pool_info info = {.pool = 0x9000, .device = 7, .imported = true, .site = UINT32_MAX};
    struct gos_pool_info found;

    (void)state;
    assert_true(gos_pool_seen(&info));
    assert_true(gos_pool_find(0x9000, &found));
    assert_int_equal(found.pool, 0x9000);
    assert_int_equal(found.device, 7);
    assert_int_equal(found.site, UINT32_MAX);
    assert_true(found.imported);
    assert_false(found.is_default);
    assert_false(gos_pool_find(0x9001, &found));
    assert_false(gos_pool_find(0, &found));
}

static void count_of_a_pool_sticks_for_good(void **state)
{
    struct gos_pool_info first = {.pool = 0x9000, .device = 7, .site = 5};
    struct gos_pool_info found;

    (void)state;
    gos_pool_used_sticks(0x9000); /* of a pool that nobody knows */
    assert_false(gos_pool_find(0x9000, &found));
    gos_pool_seen(&first);
    gos_pool_used_sticks(0x9000);
    gos_pool_seen(&first);
    assert_true(gos_pool_find(0x9000, &found));
    assert_true(found.used_sticks);
    assert_int_equal(found.device, 7);
    assert_int_equal(found.site, 5);
}

/* All that the second look has is new, and nothing that the first one had is in it. */
static void pool_that_is_only_found_to_be_more_is_stored_again(void **state)
{
    struct gos_pool_info first = {.pool = 0x9000, .device = 7};
    struct gos_pool_info again = {.pool = 0x9000, .device = 7, .is_default = true};
    struct gos_pool_info found;

    (void)state;
    gos_pool_seen(&first);
    gos_pool_seen(&again);
    assert_true(gos_pool_find(0x9000, &found));
    assert_true(found.is_default);
}

static void pool_seen_again_keeps_what_is_known_and_learns_the_rest(void **state)
{
    struct gos_pool_info first = {.pool = 0x9000, .device = 7, .site = 5};
    struct gos_pool_info again = {.pool = 0x9000, .device = 7, .is_default = true};
    struct gos_pool_info found, all[4];

    (void)state;
    gos_pool_seen(&first);
    assert_true(gos_pool_seen(&again));
    assert_true(gos_pool_find(0x9000, &found));
    assert_int_equal(found.site, 5);
    assert_true(found.is_default);
    assert_int_equal(gos_pool_list(all, 4), 1);
}

/* Its bytes are no device's alone: no trim and no ledger line is about it. */
static void pool_of_managed_memory_is_known_but_not_listed(void **state)
{
    struct gos_pool_info info = {.pool = 0x9000, .device = 7, .is_managed = true};
    struct gos_pool_info found, all[4];

    (void)state;
    gos_pool_seen(&info);
    assert_true(gos_pool_find(0x9000, &found));
    assert_true(found.is_managed);
    assert_int_equal(found.device, 7);
    assert_int_equal(gos_pool_list(all, 4), 0);
}

static void destroyed_pool_is_unknown_and_its_place_is_used_again(void **state)
{
    struct gos_pool_info info = {.pool = 0x9000}, found, all[4];
    uint64_t generation = gos_handle_generation();

    (void)state;
    gos_pool_seen(&info);
    gos_pool_destroyed(0x9000);
    assert_true(gos_handle_generation() > generation);
    assert_false(gos_pool_find(0x9000, &found));
    info.pool = 0x9100;
    gos_pool_seen(&info);
    assert_int_equal(gos_pool_list(all, 4), 1);
    assert_int_equal(all[0].pool, 0x9100);
    gos_pool_destroyed(0xdead);
}

static void pool_too_many_is_refused_and_counted(void **state)
{
    uint64_t lost = gos_loss_get(GOS_LOSS_TABLE);
    struct gos_pool_info info = {.pool = 1}, all[GOS_POOL_MAX + 1];

    (void)state;
    for (uint64_t i = 1; i <= GOS_POOL_MAX; i++) {
        info.pool = i;
        assert_true(gos_pool_seen(&info));
    }
    info.pool = GOS_POOL_MAX + 1;
    assert_false(gos_pool_seen(&info));
    assert_int_equal(gos_loss_get(GOS_LOSS_TABLE), lost + 1);
    assert_int_equal(gos_pool_list(all, GOS_POOL_MAX + 1), GOS_POOL_MAX);
    assert_int_equal(gos_pool_list(all, 3), 3);
    gos_pool_destroyed(5);
    assert_true(gos_pool_seen(&info));
}

/* --- contexts --- */

static void context_keeps_its_device_until_destroyed(void **state)
{
    uint32_t device = 99;

    (void)state;
    assert_false(gos_context_device(0xc0, &device));
    gos_context_seen(0xc0, 3);
    gos_context_seen(0xc1, 4);
    gos_context_seen(0xc0, 3);
    assert_true(gos_context_device(0xc0, &device));
    assert_int_equal(device, 3);
    gos_context_destroyed(0xc0);
    assert_false(gos_context_device(0xc0, &device));
    assert_true(gos_context_device(0xc1, &device));
    assert_int_equal(device, 4);
}

static void context_number_given_out_again_has_its_new_device(void **state)
{
    uint32_t device;

    (void)state;
    gos_context_seen(0xc0, 3);
    gos_context_destroyed(0xc0);
    gos_context_seen(0xc0, 1);
    assert_true(gos_context_device(0xc0, &device));
    assert_int_equal(device, 1);
}

static void no_context_is_no_context(void **state)
{
    uint32_t device;

    (void)state;
    gos_context_seen(0, 3);
    assert_false(gos_context_device(0, &device));
}

static void only_context_is_told_until_there_is_a_second_one(void **state)
{
    (void)state;
    assert_int_equal(gos_context_only(), 0);
    gos_context_seen(0xc0, 3);
    gos_context_seen(0xc0, 3);
    assert_int_equal(gos_context_only(), 0xc0);
    gos_context_seen(0xc1, 3);
    assert_int_equal(gos_context_only(), 0);
    gos_context_destroyed(0xc1);
    gos_context_seen(0xc0, 3);
    assert_int_equal(gos_context_only(), 0);
    gos_context_reset_after_fork();
    gos_context_seen(0xc2, 3);
    assert_int_equal(gos_context_only(), 0xc2);
}

/* --- captures --- */

static void captures_are_known_by_stream(void **state)
{
    (void)state;
    assert_int_equal(gos_capture_count(), 0);
    gos_capture_began(0x5000, 0xc0);
    gos_capture_began(0x6000, 0xc0);
    assert_int_equal(gos_capture_count(), 2);
    assert_true(gos_capture_has(0x5000));
    assert_false(gos_capture_has(0x7000));
    gos_capture_ended(0x5000);
    assert_false(gos_capture_has(0x5000));
    assert_int_equal(gos_capture_count(), 1);
}

static void capture_that_is_refused_leaves_the_one_that_goes_on(void **state)
{
    (void)state;
    gos_capture_began(0x5000, 0xc0);
    gos_capture_makes(0x5000, 0x81000);
    gos_capture_began(0x5000, 0xc0);
    gos_capture_ended(0x5000);
    assert_int_equal(gos_capture_made(0x5000), 0x81000);
    gos_capture_ended(0x5000);
    gos_capture_began(0x5000, 0xc0);
    assert_int_equal(gos_capture_made(0x5000), 0);
    gos_capture_ended(0x5000);
    assert_int_equal(gos_capture_count(), 0);
}

static void two_threads_capture_the_same_number(void **state)
{
    (void)state;
    gos_capture_began(2, 0xc0);
    gos_capture_began(2, 0xc0);
    gos_capture_ended(2);
    assert_true(gos_capture_has(2));
    gos_capture_ended(2);
    assert_false(gos_capture_has(2));
    assert_int_equal(gos_capture_count(), 0);
}

static void end_of_an_unseen_capture_counts_nothing_down(void **state)
{
    (void)state;
    gos_capture_ended(0x5000);
    assert_int_equal(gos_capture_count(), 0);
}

static void capture_knows_its_line_until_it_ends(void **state)
{
    (void)state;
    assert_int_equal(gos_capture_find(0x5000).began_wall_ns, 0);
    gos_capture_began(0x5000, 0xc0);
    gos_capture_begun_at(0x5000, 7);
    gos_capture_began(0x6000, 0xc0);
    gos_capture_begun_at(0x6000, 8);
    assert_int_equal(gos_capture_find(0x5000).site, 7);
    assert_int_not_equal(gos_capture_find(0x5000).began_wall_ns, 0);
    assert_int_equal(gos_capture_find(0x9000).stream, 0x6000); /* another stream's: the newest */
    gos_capture_ended(0x6000);
    assert_int_equal(gos_capture_find(0x9000).site, 7);
    gos_capture_ended(0x5000);
    gos_capture_began(0x5000, 0xc0);
    assert_int_equal(gos_capture_find(0x5000).site, 0); /* of the next one it is not known yet */
    gos_capture_ended(0x5000);
}

static void refused_beginning_does_not_take_over_the_line(void **state)
{
    (void)state;
    gos_capture_began(0x5000, 0xc0);
    gos_capture_begun_at(0x5000, 7);
    gos_capture_began(0x5000, 0xc0);
    gos_capture_begun_at(0x5000, 8);
    gos_capture_ended(0x5000);
    assert_int_equal(gos_capture_find(0x5000).site, 7);
    gos_capture_ended(0x5000);
}

static void captures_end_with_their_context(void **state)
{
    (void)state;
    gos_capture_began(0x5000, 0xc0);
    gos_capture_began(2, 0xc0);
    gos_capture_began(2, 0xc1);
    gos_capture_began(2, 0xc0);
    gos_context_destroyed(0xc0);
    assert_int_equal(gos_capture_count(), 1);
    assert_true(gos_capture_has(2));
    assert_true(gos_capture_ended(2));
    assert_false(gos_capture_ended(2));
}

static void captures_too_many_are_still_counted(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < GOS_CAPTURE_MAX + 3; i++)
        gos_capture_began(i, 0xc0);
    assert_int_equal(gos_capture_count(), GOS_CAPTURE_MAX + 3);
    for (uint64_t i = 0; i < GOS_CAPTURE_MAX + 3; i++)
        gos_capture_ended(i);
    assert_int_equal(gos_capture_count(), 0);
}

/* --- homes --- */

static void equal_homes_have_one_number(void **state)
{
    struct gos_home a = {1, 2}, b = {1, 3}, got;
    uint16_t number = gos_home_intern(&a);

    (void)state;
    assert_int_not_equal(number, GOS_HOME_UNKNOWN);
    assert_int_not_equal(gos_home_intern(&b), number);
    assert_int_equal(gos_home_intern(&a), number);
    got = gos_home_get(number);
    assert_memory_equal(&got, &a, sizeof(a));
}

static void home_of_all_zeroes_is_a_home(void **state)
{
    struct gos_home none = {0, 0};

    (void)state;
    assert_int_not_equal(gos_home_intern(&none), GOS_HOME_UNKNOWN);
}

static void unknown_home_is_all_zeroes(void **state)
{
    struct gos_home got = gos_home_get(GOS_HOME_UNKNOWN);

    (void)state;
    assert_int_equal(got.context | got.pool, 0);
}

static void homes_beyond_the_table_are_unknown_and_counted(void **state)
{
    uint64_t lost = gos_loss_get(GOS_LOSS_TABLE);
    struct gos_home home = {0, 0};

    (void)state;
    for (uint64_t i = 1; i <= GOS_HOME_MAX; i++) {
        home.pool = i << 4;
        assert_int_equal(gos_home_get(gos_home_intern(&home)).pool, i << 4);
    }
    home.pool = 1;
    assert_int_equal(gos_home_intern(&home), GOS_HOME_UNKNOWN);
    assert_int_equal(gos_loss_get(GOS_LOSS_TABLE), lost + 1);
    home.pool = 77 << 4;
    assert_int_equal(gos_home_get(gos_home_intern(&home)).pool, 77 << 4);
}

static void homes_of_contexts_and_pools_that_come_and_go_never_run_out(void **state)
{
    uint16_t keeper = gos_home_intern(&(struct gos_home){.context = 1});

    (void)state;
    for (uint64_t i = 1; i <= 2 * UINT16_MAX; i++) {
        struct gos_home context = {.context = i << 4}, pool = {.pool = i << 4};

        assert_int_not_equal(gos_home_intern(&context), GOS_HOME_UNKNOWN);
        assert_int_not_equal(gos_home_intern(&pool), GOS_HOME_UNKNOWN);
        gos_context_destroyed(context.context);
        gos_home_pool_ends(pool.pool);
    }
    assert_int_equal(gos_home_intern(&(struct gos_home){.context = 1}), keeper);
}

static void home_of_a_pool_stays_with_what_outlives_the_pool(void **state)
{
    struct gos_home home = {.pool = 0x9000};
    struct gos_allocation one = {.address = 0x1000,
                                 .bytes = 1,
                                 .kind = GOS_KIND_POOL,
                                 .device = 1,
                                 .home = gos_home_intern(&home)};

    (void)state;
    gos_registry_add(&one);
    gos_home_pool_ends(home.pool);
    assert_int_equal(gos_home_get(one.home).pool, home.pool);
    gos_registry_take(GOS_SPACE_ADDRESS, one.address, &one);
    gos_home_pool_ends(home.pool);
    assert_int_equal(gos_home_get(one.home).pool, 0);
}

/* --- kinds --- */

static void every_kind_has_a_code_and_words(void **state)
{
    (void)state;
    for (int kind = 0; kind < GOS_KIND_COUNT; kind++) {
        assert_true(strlen(gos_kind_code((enum gos_kind)kind)) > 0);
        assert_true(strlen(gos_kind_words((enum gos_kind)kind)) > 0);
    }
    assert_string_equal(gos_kind_code((enum gos_kind)1000), "none");
}

static void only_small_device_memory_shares_blocks(void **state)
{
    (void)state;
    assert_true(gos_kind_may_share_block(GOS_KIND_DEVICE));
    assert_false(gos_kind_may_share_block(GOS_KIND_PHYSICAL));
    assert_true(gos_kind_on_device_books(GOS_KIND_PHYSICAL));
    assert_false(gos_kind_on_device_books(GOS_KIND_MAPPING));
}

#define TEST(name) cmocka_unit_test_setup(name, start_empty)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pool_is_found_as_it_was_seen),
        TEST(pool_seen_again_keeps_what_is_known_and_learns_the_rest),
        TEST(count_of_a_pool_sticks_for_good),
        TEST(pool_that_is_only_found_to_be_more_is_stored_again),
        TEST(pool_of_managed_memory_is_known_but_not_listed),
        TEST(destroyed_pool_is_unknown_and_its_place_is_used_again),
        TEST(pool_too_many_is_refused_and_counted),
        TEST(context_keeps_its_device_until_destroyed),
        TEST(context_number_given_out_again_has_its_new_device),
        TEST(no_context_is_no_context),
        TEST(only_context_is_told_until_there_is_a_second_one),
        TEST(captures_are_known_by_stream),
        TEST(capture_that_is_refused_leaves_the_one_that_goes_on),
        TEST(two_threads_capture_the_same_number),
        TEST(end_of_an_unseen_capture_counts_nothing_down),
        TEST(capture_knows_its_line_until_it_ends),
        TEST(refused_beginning_does_not_take_over_the_line),
        TEST(captures_end_with_their_context),
        TEST(captures_too_many_are_still_counted),
        TEST(equal_homes_have_one_number),
        TEST(home_of_all_zeroes_is_a_home),
        TEST(unknown_home_is_all_zeroes),
        TEST(homes_beyond_the_table_are_unknown_and_counted),
        TEST(homes_of_contexts_and_pools_that_come_and_go_never_run_out),
        TEST(home_of_a_pool_stays_with_what_outlives_the_pool),
        TEST(every_kind_has_a_code_and_words),
        TEST(only_small_device_memory_shares_blocks),
    };

    return cmocka_run_group_tests_name("track_objects", tests, NULL, NULL);
}
