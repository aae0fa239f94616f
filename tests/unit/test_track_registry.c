/* The registry's contract, on one thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <cmocka.h>

#include "../../src/base/loss.h"
#include "../../src/base/os.h"
#include "../../src/base/thread.h"
#include "../../src/track/registry.h"

#define MIB (UINT64_C(1) << 20)

static int start_empty(void **state)
{
    (void)state;
    gos_registry_reset_after_fork();
    return 0;
}

static int add(uint64_t address, uint64_t bytes, enum gos_kind kind, uint32_t device)
{
    struct gos_allocation allocation = {
        .address = address, .bytes = bytes, .kind = kind, .device = device, .site = 7, .home = 3};

    return gos_registry_add(&allocation);
}

static void registry_gives_back_what_was_added(void **state)
{
    struct gos_allocation taken;

    (void)state;
    assert_int_equal(add(0x7f0000000000, 5 * MIB, GOS_KIND_POOL, 2), 0);
    assert_true(gos_registry_take(GOS_SPACE_ADDRESS, 0x7f0000000000, &taken));
    assert_int_equal(taken.address, 0x7f0000000000);
    assert_int_equal(taken.bytes, 5 * MIB);
    assert_int_equal(taken.kind, GOS_KIND_POOL);
    assert_int_equal(taken.device, 2);
    assert_int_equal(taken.site, 7);
    assert_int_equal(taken.home, 3);
    assert_int_equal(taken.thread, gos_thread_index());
    assert_false(gos_registry_take(GOS_SPACE_ADDRESS, 0x7f0000000000, &taken));
}

static void registry_finds_without_taking(void **state)
{
    struct gos_allocation found;

    (void)state;
    add(0x1000, 1, GOS_KIND_DEVICE, 0);
    assert_true(gos_registry_find(GOS_SPACE_ADDRESS, 0x1000, &found));
    assert_true(gos_registry_find(GOS_SPACE_ADDRESS, 0x1000, &found));
    assert_int_equal(found.bytes, 1);
    assert_false(gos_registry_find(GOS_SPACE_ADDRESS, 0x1001, &found));
}

static void registry_keeps_newer_record_when_address_is_reused(void **state)
{
    struct gos_allocation older, found;

    (void)state;
    add(0x1000, 1, GOS_KIND_DEVICE, 0);
    assert_true(gos_registry_take(GOS_SPACE_ADDRESS, 0x1000, &older));
    add(0x1000, 2, GOS_KIND_DEVICE, 0);
    gos_registry_restore(&older);
    assert_true(gos_registry_find(GOS_SPACE_ADDRESS, 0x1000, &found));
    assert_int_equal(found.bytes, 2);
    assert_int_equal(gos_registry_total(0, GOS_KIND_DEVICE).live_count, 1);
    assert_int_equal(gos_registry_total(0, GOS_KIND_DEVICE).live_bytes, 2);
}

static void restore_brings_the_record_back_with_its_age_and_order(void **state)
{
    struct gos_allocation taken, found;

    (void)state;
    add(0x1000, 9, GOS_KIND_HOST, GOS_DEVICE_HOST);
    assert_true(gos_registry_take(GOS_SPACE_ADDRESS, 0x1000, &taken));
    taken.born_ms = 12345;
    taken.thread = 77;
    gos_registry_restore(&taken);
    assert_true(gos_registry_find(GOS_SPACE_ADDRESS, 0x1000, &found));
    assert_int_equal(found.sequence, taken.sequence);
    assert_int_equal(found.born_ms, 12345);
    assert_int_equal(found.thread, 77);
    assert_int_equal(gos_registry_total(GOS_DEVICE_HOST, GOS_KIND_HOST).live_bytes, 9);
}

static void adding_twice_replaces_and_counts_the_missed_free(void **state)
{
    uint64_t untracked = gos_loss_get(GOS_LOSS_UNTRACKED);
    struct gos_allocation found;

    (void)state;
    add(0x1000, 1, GOS_KIND_DEVICE, 0);
    assert_int_equal(add(0x1000, 2, GOS_KIND_POOL, 5), 0);
    assert_int_equal(gos_loss_get(GOS_LOSS_UNTRACKED), untracked + 1);
    assert_int_equal(gos_registry_total(0, GOS_KIND_DEVICE).live_count, 0);
    assert_int_equal(gos_registry_total(5, GOS_KIND_POOL).live_bytes, 2);
    assert_true(gos_registry_find(GOS_SPACE_ADDRESS, 0x1000, &found));
    assert_int_equal(found.device, 5);
}

static void equal_numbers_of_different_spaces_are_different(void **state)
{
    struct gos_allocation found;

    (void)state;
    add(0x1000, 1, GOS_KIND_DEVICE, 0);
    add(0x1000, 2, GOS_KIND_PHYSICAL, 0);
    add(0x1000, 3, GOS_KIND_ARRAY, 0);
    add(0x1000, 4, GOS_KIND_ADDRESS, 0);
    for (int space = GOS_SPACE_ADDRESS; space <= GOS_SPACE_RANGE; space++) {
        assert_true(gos_registry_take((enum gos_space)space, 0x1000, &found));
        assert_int_equal(found.bytes, space + 1);
    }
}

static void a_take_finds_the_record_on_any_device(void **state)
{
    struct gos_allocation taken;

    (void)state;
    for (uint32_t device = 0; device < GOS_DEVICE_TABLES; device++)
        assert_int_equal(add(0x1000 + device * MIB, device, GOS_KIND_DEVICE, device), 0);
    for (uint32_t device = GOS_DEVICE_TABLES; device-- > 0;) {
        assert_true(gos_registry_take(GOS_SPACE_ADDRESS, 0x1000 + device * MIB, &taken));
        assert_int_equal(taken.device, device);
    }
}

static bool is_of_home(const struct gos_allocation *allocation, const void *arg)
{
    return allocation->home == *(const uint16_t *)arg;
}

static void drop_removes_exactly_what_the_predicate_names(void **state)
{
    struct gos_allocation allocation = {.bytes = 10, .kind = GOS_KIND_DEVICE, .device = 1};
    struct gos_allocation found;
    uint16_t dead = 4;

    (void)state;
    for (unsigned i = 0; i < 1000; i++) {
        allocation.address = 0x100000 + i * 512;
        allocation.home = (uint16_t)(i % 5);
        gos_registry_add(&allocation);
    }
    assert_int_equal(gos_registry_drop(is_of_home, &dead), 200);
    assert_int_equal(gos_registry_drop(is_of_home, &dead), 0);
    assert_int_equal(gos_registry_total(1, GOS_KIND_DEVICE).live_bytes, 8000);
    assert_false(gos_registry_find(GOS_SPACE_ADDRESS, 0x100000 + 4 * 512, &found));
    assert_true(gos_registry_find(GOS_SPACE_ADDRESS, 0x100000 + 5 * 512, &found));
}

static void sum_up(const struct gos_allocation *allocation, void *arg)
{
    struct gos_total *total = arg;

    total->live_count++;
    total->live_bytes += allocation->bytes;
}

static void walk_visits_every_record_once(void **state)
{
    struct gos_total total = {0, 0};

    (void)state;
    for (unsigned i = 1; i <= 10000; i++)
        add(i * MIB, i, GOS_KIND_DEVICE, i % GOS_DEVICE_TABLES);
    gos_registry_walk(sum_up, &total);
    assert_int_equal(total.live_count, 10000);
    assert_int_equal(total.live_bytes, 10000 * 10001 / 2);
}

static void counts_follow_adds_takes_restores_and_drops(void **state)
{
    struct gos_allocation taken;
    uint64_t allocated, freed;
    uint16_t home = 3;

    (void)state;
    add(0x1000, 1, GOS_KIND_DEVICE, 0);
    add(0x2000, 1, GOS_KIND_HOST, GOS_DEVICE_HOST);
    add(0x3000, 1, GOS_KIND_POOL, 1);
    gos_registry_take(GOS_SPACE_ADDRESS, 0x1000, &taken);
    gos_registry_counts(&allocated, &freed);
    assert_int_equal(allocated, 3);
    assert_int_equal(freed, 1);
    gos_registry_restore(&taken);
    gos_registry_counts(&allocated, &freed);
    assert_int_equal(allocated, 3);
    assert_int_equal(freed, 0);
    gos_registry_drop(is_of_home, &home);
    gos_registry_counts(&allocated, &freed);
    assert_int_equal(freed, 3);
}

static void peak_is_the_highest_sum_of_what_occupies_the_device(void **state)
{
    const uint64_t tolerance = 4 * MIB;
    struct gos_allocation taken;

    (void)state;
    add(0x1000, 1000 * MIB, GOS_KIND_DEVICE, 0);
    add(0x2000, 500 * MIB, GOS_KIND_POOL, 0);
    add(0x3000, 250 * MIB, GOS_KIND_MANAGED, 0);
    add(0x4000, 9000 * MIB, GOS_KIND_HOST, 0);
    add(0x5000, 9000 * MIB, GOS_KIND_ADDRESS, 0);
    add(0x6000, 9000 * MIB, GOS_KIND_DEVICE, 1);
    assert_int_equal(gos_registry_peak_bytes(0), 1750 * MIB);
    for (uint64_t i = 1; i <= 3; i++)
        gos_registry_take(GOS_SPACE_ADDRESS, i * 0x1000, &taken);
    assert_int_equal(gos_registry_peak_bytes(0), 1750 * MIB);
    assert_in_range(gos_registry_peak_bytes(1), 9000 * MIB - tolerance, 9000 * MIB);
}

static void peak_is_never_above_the_truth_and_little_below(void **state)
{
    const uint64_t count = 4000, shards_touched = count / 32 + 1;
    const uint64_t tolerance = 4 * MIB * shards_touched;
    struct gos_allocation taken;

    (void)state;
    for (int round = 0; round < 3; round++) {
        for (uint64_t i = 1; i <= count; i++)
            add(i * MIB, MIB, GOS_KIND_DEVICE, 0);
        for (uint64_t i = 1; i <= count; i++)
            gos_registry_take(GOS_SPACE_ADDRESS, i * MIB, &taken);
    }
    assert_in_range(gos_registry_peak_bytes(0), count * MIB - tolerance, count * MIB);
}

static void sequence_numbers_of_one_thread_rise_by_one(void **state)
{
    struct gos_allocation found;

    (void)state;
    for (uint64_t i = 1; i <= 100; i++) {
        add(i * 0x1000, 1, GOS_KIND_DEVICE, 0);
        assert_true(gos_registry_find(GOS_SPACE_ADDRESS, i * 0x1000, &found));
        assert_int_equal(found.sequence, i);
    }
}

static void age_counts_from_the_first_allocation(void **state)
{
    struct gos_allocation first, later;

    (void)state;
    add(0x1000, 1, GOS_KIND_DEVICE, 0);
    gos_os.sleep_ns(60 * 1000000);
    add(0x2000, 1, GOS_KIND_DEVICE, 0);
    gos_registry_find(GOS_SPACE_ADDRESS, 0x1000, &first);
    gos_registry_find(GOS_SPACE_ADDRESS, 0x2000, &later);
    assert_int_equal(first.born_ms, 0);
    assert_in_range(later.born_ms, 50, 60000);
    assert_in_range(gos_registry_start_wall_ns(), 1, gos_os.wall_ns());
    assert_int_equal(gos_registry_start_wall_ns(), gos_registry_start_wall_ns());
}

static void impossible_device_or_kind_is_refused_and_counted(void **state)
{
    uint64_t lost = gos_loss_get(GOS_LOSS_TABLE);

    (void)state;
    assert_int_equal(add(0x1000, 1, GOS_KIND_DEVICE, GOS_DEVICE_TABLES), -EINVAL);
    assert_int_equal(add(0x1000, 1, GOS_KIND_NONE, 0), -EINVAL);
    assert_int_equal(gos_loss_get(GOS_LOSS_TABLE), lost + 2);
    assert_int_equal(gos_registry_total(GOS_DEVICE_TABLES, GOS_KIND_DEVICE).live_count, 0);
    assert_int_equal(gos_registry_peak_bytes(GOS_DEVICE_TABLES), 0);
}

static void sizes_are_kept_up_to_48_bits(void **state)
{
    const uint64_t widest = (UINT64_C(1) << 48) - 1;
    struct gos_allocation found;

    (void)state;
    add(0x1000, widest, GOS_KIND_ADDRESS, GOS_DEVICE_HOST);
    add(0x2000, widest + 5, GOS_KIND_ADDRESS, GOS_DEVICE_HOST);
    gos_registry_find(GOS_SPACE_RANGE, 0x1000, &found);
    assert_int_equal(found.bytes, widest);
    gos_registry_find(GOS_SPACE_RANGE, 0x2000, &found);
    assert_int_equal(found.bytes, widest);
}

static void addresses_at_the_ends_of_the_number_range_are_kept(void **state)
{
    const uint64_t addresses[] = {0, 1, UINT64_MAX, UINT64_C(1) << 63};
    struct gos_allocation taken;

    (void)state;
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(add(addresses[i], i, GOS_KIND_DEVICE, 0), 0);
    for (size_t i = 0; i < 4; i++) {
        assert_true(gos_registry_take(GOS_SPACE_ADDRESS, addresses[i], &taken));
        assert_int_equal(taken.bytes, i);
        assert_int_equal(taken.address, addresses[i]);
    }
}

#define TEST(name) cmocka_unit_test_setup(name, start_empty)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(registry_gives_back_what_was_added),
        TEST(registry_finds_without_taking),
        TEST(registry_keeps_newer_record_when_address_is_reused),
        TEST(restore_brings_the_record_back_with_its_age_and_order),
        TEST(adding_twice_replaces_and_counts_the_missed_free),
        TEST(equal_numbers_of_different_spaces_are_different),
        TEST(a_take_finds_the_record_on_any_device),
        TEST(drop_removes_exactly_what_the_predicate_names),
        TEST(walk_visits_every_record_once),
        TEST(counts_follow_adds_takes_restores_and_drops),
        TEST(peak_is_the_highest_sum_of_what_occupies_the_device),
        TEST(peak_is_never_above_the_truth_and_little_below),
        TEST(sequence_numbers_of_one_thread_rise_by_one),
        TEST(age_counts_from_the_first_allocation),
        TEST(impossible_device_or_kind_is_refused_and_counted),
        TEST(sizes_are_kept_up_to_48_bits),
        TEST(addresses_at_the_ends_of_the_number_range_are_kept),
    };

    return cmocka_run_group_tests_name("track_registry", tests, NULL, NULL);
}
