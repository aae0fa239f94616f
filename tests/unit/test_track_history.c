/*
 * Samples of what sites hold, on a clock of allocations.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "../../src/base/loss.h"
#include "../../src/base/memory.h"
#include "../../src/base/options.h"
#include "../../src/base/thread.h"
#include "../../src/track/history.h"

#define MIB ((uint64_t)1 << 20)

static struct gos_moment moments[GOS_HISTORY_SAMPLES];
static struct gos_history_series series[3];
static uint64_t next_address;

static int begin(void **state)
{
    (void)state;
    gos_thread_reset_after_fork();
    gos_registry_reset_after_fork();
    gos_history_reset_after_fork();
    memset(series, 0, sizeof(series));
    memset(&gos_options, 0, sizeof(gos_options));
    next_address = 0x7f0000000000;
    return 0;
}

/* As a hook does it. */
static uint64_t allocate(uint32_t site, uint64_t bytes, enum gos_kind kind, uint32_t device)
{
    struct gos_allocation allocation = {
        .address = next_address, .bytes = bytes, .kind = kind, .device = device, .site = site};

    next_address += 32 * MIB;
    gos_registry_add(&allocation);
    gos_history_tick();
    return allocation.address;
}

static void release(uint64_t address)
{
    struct gos_allocation gone;

    assert_true(gos_registry_take(GOS_SPACE_ADDRESS, address, &gone));
}

static uint32_t copy(uint32_t first, uint32_t second)
{
    series[0].site = first;
    series[1].site = second;
    return gos_history_copy(moments, series, 3); /* the third is site 0 of device 0: all */
}

static void nothing_is_sampled_before_anything_is_allocated(void **state)
{
    (void)state;
    assert_int_equal(copy(1, 2), 0);
}

static void a_run_of_any_length_has_half_to_all_samples_evenly_spaced(void **state)
{
    (void)state;
    uint64_t longest = 0;
    for (uint64_t i = 1; i <= 60000; i++) {
        release(allocate(1, MIB, GOS_KIND_DEVICE, 0));
        if (i != 100 && i != 1000 && i != 7777 && i != 60000)
            continue;
        uint32_t count = copy(1, 2);
        assert_in_range(count, GOS_HISTORY_SAMPLES / 2, GOS_HISTORY_SAMPLES);
        longest = moments[0].allocated_count;
        for (uint32_t k = 1; k < count; k++) {
            uint64_t distance = moments[k].allocated_count - moments[k - 1].allocated_count;
            longest = distance > longest ? distance : longest;
        }
        assert_true(longest <= i / 6 + 32);
        assert_true(moments[count - 1].allocated_count >= i - i / 6 - 32);
    }
}

static void a_site_that_keeps_is_told_from_one_that_gives_back(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 1000; i++) {
        allocate(1, 3 * MIB, GOS_KIND_DEVICE, 0);
        release(allocate(2, 64 * MIB, GOS_KIND_DEVICE, 0));
    }
    uint32_t count = copy(1, 2);
    for (uint32_t k = 0; k < count; k++) {
        uint64_t rounds = (moments[k].allocated_count + 1) / 2;
        assert_int_equal(series[0].live_kib[k], rounds * 3 * 1024);
        assert_true(series[1].live_kib[k] == 0 || series[1].live_kib[k] == 64 * 1024);
        assert_int_equal(series[2].live_kib[k], series[0].live_kib[k] + series[1].live_kib[k]);
        assert_in_range(moments[k].freed_count, rounds - 1, rounds);
    }
}

static void only_memory_that_takes_room_on_the_device_counts(void **state)
{
    (void)state;
    static const enum gos_kind counted[] = {GOS_KIND_DEVICE, GOS_KIND_POOL, GOS_KIND_PHYSICAL,
                                            GOS_KIND_MANAGED};
    static const enum gos_kind others[] = {GOS_KIND_MAPPING, GOS_KIND_IMPORTED, GOS_KIND_HANDLE};
    for (size_t i = 0; i < 4; i++)
        allocate(1, MIB, counted[i], 0);
    for (size_t i = 0; i < 3; i++)
        allocate(1, MIB, others[i], 0);
    allocate(1, MIB, GOS_KIND_DEVICE, 1);
    allocate(1, MIB, GOS_KIND_HOST, GOS_DEVICE_HOST);
    for (int i = 0; i < 40; i++)
        allocate(0, 0, GOS_KIND_DEVICE, 0);
    uint32_t count = copy(1, 2);
    assert_int_equal(series[0].live_kib[count - 1], 4 * 1024);
    assert_int_equal(series[2].live_kib[count - 1], 4 * 1024);
}

static void allocations_without_a_site_count_for_the_device_alone(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++)
        allocate(0, MIB, GOS_KIND_DEVICE, 0);
    uint32_t count = copy(1, 2);
    assert_int_equal(series[0].live_kib[count - 1], 0);
    assert_int_equal(series[2].live_kib[count - 1], moments[count - 1].allocated_count * 1024);
}

static void with_sampled_stacks_the_series_is_an_estimate(void **state)
{
    (void)state;
    gos_options.stack_sample = 1024 * MIB;
    for (int i = 0; i < 100; i++)
        allocate(1, MIB, GOS_KIND_POOL, 0);
    uint32_t count = copy(1, 2);
    /* Each stands for about as much as lies between two stacks. */
    assert_true(series[0].live_kib[count - 1] > moments[count - 1].allocated_count * 1000 * 1024);
    assert_int_equal(series[2].live_kib[count - 1], moments[count - 1].allocated_count * 1024);
}

static void sites_that_hold_nothing_any_more_make_room_for_others(void **state)
{
    (void)state;
    for (uint32_t site = 1; site <= 3 * GOS_HISTORY_SITES; site++)
        release(allocate(site, MIB, GOS_KIND_DEVICE, 0));
    for (uint32_t i = 0; i < 3 * GOS_HISTORY_SITES; i++)
        allocate(7, 1024, GOS_KIND_DEVICE, 0);
    uint32_t count = copy(7, 8);
    assert_true(series[0].live_kib[count - 1] > GOS_HISTORY_SITES);
    assert_int_equal(gos_loss_get(GOS_LOSS_TABLE), 0);
}

static void sites_beyond_the_table_are_counted_and_the_device_is_right(void **state)
{
    (void)state;
    uint64_t before = gos_loss_get(GOS_LOSS_TABLE);
    for (uint32_t site = 1; site <= 2 * GOS_HISTORY_SITES; site++)
        allocate(site, 1024, GOS_KIND_DEVICE, 0);
    uint32_t count = copy(1, 2 * GOS_HISTORY_SITES);
    assert_true(gos_loss_get(GOS_LOSS_TABLE) > before);
    assert_int_equal(series[0].live_kib[count - 1], 1);
    assert_int_equal(series[2].live_kib[count - 1], moments[count - 1].allocated_count);
}

/* Without the limit there would be sixteen samples for each doubling: some sixty walks more. */
static void walks_over_many_records_are_rationed(void **state)
{
    (void)state;
    uint64_t visits = 0;
    uint64_t known = 0;
    for (uint64_t i = 0; i < 400000; i++) {
        allocate(1, 1024, GOS_KIND_DEVICE, 0);
        if (i % 64 != 0)
            continue;
        uint32_t count = copy(1, 2);
        if (count > 0 && moments[count - 1].allocated_count != known)
            visits += known = moments[count - 1].allocated_count;
    }
    /* The grant, one walk too many, and what the time has earned. */
    uint32_t count = copy(1, 2);
    assert_true(visits <= GOS_HISTORY_GRANT + 400000 + moments[count - 1].age_ms * 320u);
    assert_true(visits >= GOS_HISTORY_GRANT / 4);
}

static void a_forked_child_starts_without_samples(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++)
        allocate(1, MIB, GOS_KIND_DEVICE, 0);
    assert_true(copy(1, 2) > 0);
    gos_memory_reset_after_fork();
    gos_thread_reset_after_fork();
    gos_registry_reset_after_fork();
    gos_history_reset_after_fork();
    assert_int_equal(copy(1, 2), 0);
    for (int i = 0; i < 100; i++)
        allocate(1, MIB, GOS_KIND_DEVICE, 0);
    uint32_t count = copy(1, 2);
    assert_int_equal(series[0].live_kib[count - 1], moments[count - 1].allocated_count * 1024);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_sampled_before_anything_is_allocated),
        TEST(a_run_of_any_length_has_half_to_all_samples_evenly_spaced),
        TEST(a_site_that_keeps_is_told_from_one_that_gives_back),
        TEST(only_memory_that_takes_room_on_the_device_counts),
        TEST(allocations_without_a_site_count_for_the_device_alone),
        TEST(with_sampled_stacks_the_series_is_an_estimate),
        TEST(sites_that_hold_nothing_any_more_make_room_for_others),
        TEST(sites_beyond_the_table_are_counted_and_the_device_is_right),
        TEST(walks_over_many_records_are_rationed),
        TEST(a_forked_child_starts_without_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
