/*
 * Metadata memory runs out at the n-th mapping, for every n until none is
 * asked for any more: what could not be kept is counted, the rest is intact.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

#include "../../src/base/loss.h"
#include "../../src/base/memory.h"
#include "../../src/base/os.h"
#include "../../src/track/registry.h"
#include "../../src/track/vmm.h"

#define RECORDS 40000
#define HANDLES 5000

static void *(*real_map)(size_t bytes);
static int maps_left;
static int maps_refused;

static void *map_until_none_left(size_t bytes)
{
    if (maps_left-- > 0)
        return real_map(bytes);
    maps_refused++;
    return NULL;
}

static void run_out_after(int maps)
{
    gos_registry_reset_after_fork();
    gos_vmm_reset_after_fork();
    gos_memory_reset_after_fork();
    maps_left = maps;
    maps_refused = 0;
    gos_os.map = map_until_none_left;
}

static int keep_map(void **state)
{
    (void)state;
    real_map = gos_os.map;
    return 0;
}

static int give_map_back(void **state)
{
    (void)state;
    gos_os.map = real_map;
    return 0;
}

static uint64_t add_many(bool *kept)
{
    uint64_t lost = 0;

    for (uint64_t i = 0; i < RECORDS; i++) {
        struct gos_allocation allocation = {.address = (i + 1) * 512,
                                            .bytes = i,
                                            .kind = GOS_KIND_DEVICE,
                                            .device = (uint32_t)(i % 3)};
        int error = gos_registry_add(&allocation);

        assert_true(error == 0 || error == -ENOMEM);
        kept[i] = error == 0;
        lost += error != 0;
    }
    return lost;
}

static void check_each(const bool *kept)
{
    struct gos_allocation taken;

    for (uint64_t i = 0; i < RECORDS; i++) {
        assert_int_equal(gos_registry_take(GOS_SPACE_ADDRESS, (i + 1) * 512, &taken), kept[i]);
        if (kept[i])
            assert_int_equal(taken.bytes, i);
    }
}

static void registry_counts_what_it_cannot_keep_and_keeps_the_rest(void **state)
{
    static bool kept[RECORDS];
    int maps = 0;

    (void)state;
    do {
        uint64_t lost_before = gos_loss_get(GOS_LOSS_MEMORY);
        uint64_t lost;

        run_out_after(maps++);
        lost = add_many(kept);
        assert_int_equal(gos_loss_get(GOS_LOSS_MEMORY), lost_before + lost);
        check_each(kept);
        assert_int_equal(gos_registry_total(0, GOS_KIND_DEVICE).live_bytes, 0);
    } while (maps_refused);
    assert_true(maps > 2);
}

static void records_are_kept_when_only_the_buckets_cannot_grow(void **state)
{
    struct gos_allocation found;
    uint64_t kept = 0;

    (void)state;
    run_out_after(3);
    for (uint64_t i = 1; i <= RECORDS; i++) {
        struct gos_allocation allocation = {.address = i * 512, .kind = GOS_KIND_DEVICE};

        kept += gos_registry_add(&allocation) == 0;
    }
    /* 3 MiB hold these records only if the tables' growth may fail. */
    assert_in_range(kept, RECORDS / 6 * 5, RECORDS);
    gos_os.map = real_map;
    for (uint64_t i = 1; i <= RECORDS; i++) {
        struct gos_allocation allocation = {.address = (i << 24), .kind = GOS_KIND_DEVICE};

        assert_int_equal(gos_registry_add(&allocation), 0);
        assert_true(gos_registry_find(GOS_SPACE_ADDRESS, i << 24, &found));
    }
}

static void use_handle(uint64_t i)
{
    struct gos_allocation physical = {
        .address = i, .bytes = 2 << 20, .kind = GOS_KIND_PHYSICAL, .device = 0};

    gos_vmm_created(&physical);
    gos_vmm_mapped(i << 21, 2 << 20, i, 1);
}

static void vmm_counts_what_it_cannot_keep_and_stays_balanced(void **state)
{
    struct gos_allocation gone;
    int maps = 0;

    (void)state;
    do {
        uint64_t lost = gos_loss_get(GOS_LOSS_MEMORY);

        run_out_after(maps++);
        for (uint64_t i = 1; i <= HANDLES; i++)
            use_handle(i);
        if (maps_refused)
            assert_true(gos_loss_get(GOS_LOSS_MEMORY) > lost);
        for (uint64_t i = 1; i <= HANDLES; i++)
            gos_vmm_release(i, &gone);
        gos_vmm_unmapped(1 << 21, HANDLES * (UINT64_C(2) << 20));
        assert_int_equal(gos_vmm_total(0).handle_count, 0);
        assert_int_equal(gos_vmm_total(0).mapped_bytes, 0);
        assert_int_equal(gos_vmm_total(0).unmapped_bytes, 0);
        assert_int_equal(gos_registry_total(0, GOS_KIND_PHYSICAL).live_count, 0);
        assert_int_equal(gos_registry_total(0, GOS_KIND_MAPPING).live_count, 0);
    } while (maps_refused);
    assert_true(maps > 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, keep_map, give_map_back)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(registry_counts_what_it_cannot_keep_and_keeps_the_rest),
        TEST(records_are_kept_when_only_the_buckets_cannot_grow),
        TEST(vmm_counts_what_it_cannot_keep_and_stays_balanced),
    };

    return cmocka_run_group_tests_name("track_memory", tests, NULL, NULL);
}
