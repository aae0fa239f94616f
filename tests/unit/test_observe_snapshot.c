#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../../src/base/os.h"
#include "../../src/observe/snapshot.h"
#include "../../src/track/registry.h"

#define MIB ((uint64_t)1 << 20)

static struct gos_evidence evidence;
static struct gos_snapshot snapshot;

static int begin(void **state)
{
    (void)state;
    gos_registry_reset_after_fork();
    memset(&evidence, 0, sizeof(evidence));
    return 0;
}

static int end(void **state)
{
    (void)state;
    gos_scratch_release(&evidence.scratch);
    return 0;
}

static void allocate(uint64_t address, uint64_t bytes, enum gos_kind kind, uint32_t device,
                     uint32_t site, uint16_t home)
{
    struct gos_allocation allocation = {.address = address,
                                        .bytes = bytes,
                                        .kind = kind,
                                        .device = device,
                                        .site = site,
                                        .home = home};

    assert_int_equal(gos_registry_add(&allocation), 0);
}

static void allocations_are_summed_by_site_kind_and_device(void **state)
{
    (void)state;
    allocate(0x1000000, 10 * MIB, GOS_KIND_DEVICE, 0, 1, 0);
    allocate(0x3000000, 30 * MIB, GOS_KIND_DEVICE, 0, 1, 0);
    allocate(0x6000000, 25 * MIB, GOS_KIND_DEVICE, 1, 1, 0);
    allocate(0x9000000, 50 * MIB, GOS_KIND_POOL, 0, 1, 0);
    allocate(0xF000000, 5 * MIB, GOS_KIND_HOST, GOS_DEVICE_HOST, 2, 0);
    gos_snapshot_take(&snapshot, &evidence);

    assert_int_equal(evidence.use_count, 4);
    assert_int_equal(evidence.uses[0].kind, GOS_KIND_POOL);
    assert_int_equal(evidence.uses[1].live_bytes, 40 * MIB);
    assert_int_equal(evidence.uses[1].live_count, 2);
    assert_int_equal(evidence.uses[1].largest_bytes, 30 * MIB);
    assert_int_equal(evidence.uses[2].device, 1);
    assert_int_equal(evidence.uses[3].device, GOS_DEVICE_HOST);
    assert_int_equal(evidence.devices[0].live[GOS_KIND_DEVICE].live_bytes, 40 * MIB);
    assert_int_equal(evidence.devices[0].live[GOS_KIND_POOL].live_count, 1);
    assert_int_equal(evidence.host_live[GOS_KIND_HOST].live_bytes, 5 * MIB);
    assert_int_equal(evidence.allocated_count, 5);
    assert_int_equal(evidence.incomplete_count, 0);
}

static void small_device_allocations_are_listed_by_address(void **state)
{
    (void)state;
    allocate(0x5000000, MIB, GOS_KIND_DEVICE, 0, 7, 0);
    allocate(0x4000000, 512, GOS_KIND_DEVICE, 0, 8, 0);
    allocate(0x6000000, MIB + 512, GOS_KIND_DEVICE, 0, 9, 0);
    allocate(0x3000000, 512, GOS_KIND_POOL, 0, 9, 0);
    gos_snapshot_take(&snapshot, &evidence);

    assert_int_equal(evidence.devices[0].small_count, 2);
    assert_int_equal(evidence.devices[0].smalls[0].address, 0x4000000);
    assert_int_equal(evidence.devices[0].smalls[0].site, 8);
    assert_int_equal(evidence.devices[0].smalls[1].bytes, MIB);
}

static void rounding_counts_only_what_takes_whole_blocks(void **state)
{
    (void)state;
    allocate(0x10000000, MIB + 512, GOS_KIND_DEVICE, 0, 1, 0);
    allocate(0x20000000, 2 * MIB, GOS_KIND_DEVICE, 0, 1, 0);
    allocate(0x30000000, 2 * MIB + 512, GOS_KIND_DEVICE, 0, 1, 0);
    allocate(0x40000000, 512, GOS_KIND_DEVICE, 0, 1, 0);
    allocate(0x50000000, 3 * MIB, GOS_KIND_ARRAY, 0, 1, 0);
    gos_snapshot_take(&snapshot, &evidence);

    assert_int_equal(evidence.devices[0].large_rounding_bytes, MIB - 512 + 2 * MIB - 512);
}

static void bytes_are_summed_for_each_pool(void **state)
{
    uint16_t one = gos_home_intern(&(struct gos_home){.pool = 0xAAA});
    uint16_t other = gos_home_intern(&(struct gos_home){.pool = 0xBBB});

    (void)state;
    allocate(0x1000, 100, GOS_KIND_POOL, 0, 1, one);
    allocate(0x2000, 200, GOS_KIND_POOL, 0, 1, one);
    allocate(0x3000, 400, GOS_KIND_POOL, 0, 1, other);
    gos_snapshot_take(&snapshot, &evidence);

    assert_int_equal(gos_snapshot_pool_bytes(&snapshot, 0xAAA), 300);
    assert_int_equal(gos_snapshot_pool_bytes(&snapshot, 0xBBB), 400);
    assert_int_equal(gos_snapshot_pool_bytes(&snapshot, 0xCCC), 0);
}

static uint64_t first_seen;

static void keep_context(uint64_t context, void *arg)
{
    *(int *)arg += 1;
    first_seen = context;
}

static void contexts_come_from_live_allocations_only(void **state)
{
    uint16_t live = gos_home_intern(&(struct gos_home){.context = 0xC1});
    uint16_t dead = gos_home_intern(&(struct gos_home){.context = 0xC2});
    struct gos_allocation taken;
    int count = 0;

    (void)state;
    allocate(0x1000, 100, GOS_KIND_DEVICE, 0, 1, live);
    allocate(0x2000, 100, GOS_KIND_DEVICE, 0, 1, dead);
    assert_true(gos_registry_take(GOS_SPACE_ADDRESS, 0x2000, &taken));
    gos_snapshot_take(&snapshot, &evidence);
    gos_snapshot_contexts(&snapshot, keep_context, &count);

    assert_int_equal(count, 1);
    assert_int_equal(first_seen, 0xC1);
}

static void thousands_of_sites_keep_their_sums_apart(void **state)
{
    const uint32_t sites = 900;
    uint64_t bytes = 0, count = 0;

    (void)state;
    for (uint32_t i = 0; i < 30 * sites; i++)
        allocate(0x100000 + i * 0x1000ul, 1 + i % sites, GOS_KIND_DEVICE, 0, i % sites, 0);
    gos_snapshot_take(&snapshot, &evidence);

    assert_int_equal(evidence.use_count, sites);
    for (size_t i = 0; i < evidence.use_count; i++) {
        assert_int_equal(evidence.uses[i].live_count, 30);
        assert_int_equal(evidence.uses[i].live_bytes, 30 * (evidence.uses[i].site + 1));
        bytes += evidence.uses[i].live_bytes;
        count += evidence.uses[i].live_count;
    }
    assert_int_equal(bytes, evidence.devices[0].live[GOS_KIND_DEVICE].live_bytes);
    assert_int_equal(count, evidence.devices[0].small_count);
}

static void what_does_not_fit_is_counted_and_totals_stay_exact(void **state)
{
    const uint32_t count = 4000;
    uint64_t listed = 0;

    (void)state;
    /* More sites than were ever interned: the room that is made for them does not do. */
    for (uint32_t i = 0; i < count; i++)
        allocate(0x100000 + i * 0x1000ul, 10, GOS_KIND_DEVICE, 0, i, 0);
    gos_snapshot_take(&snapshot, &evidence);

    for (size_t i = 0; i < evidence.use_count; i++)
        listed += evidence.uses[i].live_count;
    assert_true(snapshot.uses_lost > 0);
    assert_int_equal(listed + snapshot.uses_lost, count);
    assert_int_equal(evidence.incomplete_count, 1);
    assert_int_equal(evidence.devices[0].live[GOS_KIND_DEVICE].live_count, count);
}

static void *no_memory(size_t bytes)
{
    (void)bytes;
    return NULL;
}

static void without_memory_totals_are_still_exact(void **state)
{
    void *(*map)(size_t) = gos_os.map;

    (void)state;
    allocate(0x1000, 100, GOS_KIND_DEVICE, 0, 1, 0);
    gos_os.map = no_memory;
    gos_snapshot_take(&snapshot, &evidence);
    gos_os.map = map;

    assert_int_equal(evidence.devices[0].live[GOS_KIND_DEVICE].live_bytes, 100);
    assert_int_equal(evidence.use_count, 0);
    assert_int_equal(evidence.devices[0].small_count, 0);
    assert_int_equal(evidence.devices[0].small_lost, 1);
    assert_true(evidence.incomplete_count >= 2);
    assert_int_equal(gos_snapshot_pool_bytes(&snapshot, 0xAAA), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(allocations_are_summed_by_site_kind_and_device),
        TEST(small_device_allocations_are_listed_by_address),
        TEST(rounding_counts_only_what_takes_whole_blocks),
        TEST(bytes_are_summed_for_each_pool),
        TEST(contexts_come_from_live_allocations_only),
        TEST(thousands_of_sites_keep_their_sums_apart),
        TEST(what_does_not_fit_is_counted_and_totals_stay_exact),
        TEST(without_memory_totals_are_still_exact),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
