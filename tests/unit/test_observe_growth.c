/* The series of the sites that hold most, up to now. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "../../src/base/thread.h"
#include "../../src/observe/growth.h"
#include "../../src/observe/snapshot.h"

#define MIB ((uint64_t)1 << 20)

static struct gos_evidence evidence;
static struct gos_snapshot snapshot;
static uint64_t next_address;

static int begin(void **state)
{
    (void)state;
    gos_thread_reset_after_fork();
    gos_registry_reset_after_fork();
    gos_history_reset_after_fork();
    memset(&evidence, 0, sizeof(evidence));
    next_address = 0x7f0000000000;
    return 0;
}

static int end(void **state)
{
    (void)state;
    gos_scratch_release(&evidence.scratch);
    return 0;
}

static void allocate(uint32_t site, uint64_t bytes, enum gos_kind kind, uint32_t device)
{
    struct gos_allocation allocation = {
        .address = next_address, .bytes = bytes, .kind = kind, .device = device, .site = site};

    next_address += 32 * MIB;
    assert_int_equal(gos_registry_add(&allocation), 0);
    gos_history_tick();
}

static void observe(void)
{
    gos_snapshot_take(&snapshot, &evidence);
    gos_growth_observe(&evidence);
}

static const struct gos_growth_series *series_of(uint32_t site, uint32_t device)
{
    for (size_t i = 0; i < evidence.growth.series_count; i++)
        if (evidence.growth.series[i].site == site && evidence.growth.series[i].device == device)
            return &evidence.growth.series[i];
    return NULL;
}

static void the_last_moment_is_now_with_all_kinds_of_the_site(void **state)
{
    (void)state;
    for (int i = 0; i < 60; i++)
        allocate(1, MIB, GOS_KIND_DEVICE, 0);
    allocate(1, 5 * MIB + 100, GOS_KIND_POOL, 0);
    allocate(2, 7 * MIB, GOS_KIND_DEVICE, 1);
    allocate(0, 9 * MIB, GOS_KIND_DEVICE, 0);
    allocate(3, 9 * MIB, GOS_KIND_HOST, GOS_DEVICE_HOST);
    observe();

    const struct gos_growth *growth = &evidence.growth;
    size_t now = growth->moment_count - 1;
    assert_in_range(growth->moment_count, GOS_HISTORY_SAMPLES / 2, GOS_HISTORY_SAMPLES + 1);
    assert_int_equal(growth->moments[now].allocated_count, 64);
    assert_int_equal(growth->moments[now].freed_count, 0);
    assert_int_equal(series_of(1, 0)->live_bytes[now], 65 * MIB + 100);
    assert_int_equal(series_of(0, 0)->live_bytes[now], 74 * MIB + 100);
    assert_int_equal(series_of(0, 1)->live_bytes[now], 7 * MIB);
    assert_int_equal(series_of(2, 1)->live_bytes[0], 0);
    assert_null(series_of(3, GOS_DEVICE_HOST));
    for (size_t i = 0; i < now; i++) {
        uint64_t made = growth->moments[i].allocated_count;
        assert_int_equal(series_of(1, 0)->live_bytes[i],
                         (made < 60 ? made : 60) * MIB + (made > 60 ? 5 * MIB : 0));
    }
}

static void devices_come_first_then_sites_by_what_they_hold(void **state)
{
    (void)state;
    for (uint32_t site = 1; site <= 100; site++)
        allocate(site, site * MIB, GOS_KIND_DEVICE, 0);
    observe();
    assert_int_equal(evidence.growth.series[0].site, 0);
    assert_int_equal(evidence.growth.series[1].site, 100);
    assert_int_equal(evidence.growth.series[2].site, 99);
    assert_true(evidence.growth.series_count >= 32);
    assert_null(series_of(1, 0));
}

static void without_device_memory_there_is_no_growth(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++)
        allocate(1, MIB, GOS_KIND_HOST, GOS_DEVICE_HOST);
    observe();
    assert_int_equal(evidence.growth.series_count, 0);
    assert_int_equal(evidence.growth.moment_count, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_last_moment_is_now_with_all_kinds_of_the_site),
        TEST(devices_come_first_then_sites_by_what_they_hold),
        TEST(without_device_memory_there_is_no_growth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
