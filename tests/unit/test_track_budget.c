/* What a live allocation costs in memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "../../src/base/memory.h"
#include "../../src/track/registry.h"

#define BUDGET_BYTES 96

static uint64_t grow(uint64_t address, uint64_t step, uint64_t count)
{
    struct gos_allocation allocation = {.bytes = step, .kind = GOS_KIND_DEVICE, .device = 0};
    uint64_t before = gos_memory_mapped_bytes();

    for (uint64_t i = 0; i < count; i++) {
        allocation.address = address + i * step;
        assert_int_equal(gos_registry_add(&allocation), 0);
    }
    return gos_memory_mapped_bytes() - before;
}

static int start_empty(void **state)
{
    (void)state;
    gos_registry_reset_after_fork();
    gos_memory_reset_after_fork();
    return 0;
}

static void a_million_small_allocations_stay_within_the_budget(void **state)
{
    (void)state;
    assert_in_range(grow(0x7f0000000000, 512, 1000000), 1, 1000000 * BUDGET_BYTES);
    assert_int_equal(gos_registry_total(0, GOS_KIND_DEVICE).live_count, 1000000);
}

static void a_million_allocations_of_2_mib_stay_within_the_budget(void **state)
{
    (void)state;
    assert_in_range(grow(0x100000000000, 2 << 20, 1000000), 1, 1000000 * BUDGET_BYTES);
}

static void memory_of_freed_allocations_is_used_again(void **state)
{
    struct gos_allocation taken;

    (void)state;
    for (uint64_t i = 0; i < 3; i++) {
        uint64_t grown = grow(0x7f0000000000 + (i << 40), 512, 100000);

        assert_true(i == 0 ? grown > 4000000 : grown <= 2 << 20);
        for (uint64_t j = 0; j < 100000; j++)
            assert_true(
                gos_registry_take(GOS_SPACE_ADDRESS, 0x7f0000000000 + (i << 40) + j * 512, &taken));
    }
}

static void one_block_that_comes_and_goes_maps_nothing(void **state)
{
    struct gos_allocation allocation = {.address = 0x1000, .kind = GOS_KIND_POOL};
    uint64_t before;

    (void)state;
    gos_registry_add(&allocation);
    before = gos_memory_mapped_bytes();
    for (int i = 0; i < 100000; i++) {
        gos_registry_take(GOS_SPACE_ADDRESS, 0x1000, &allocation);
        gos_registry_add(&allocation);
    }
    assert_int_equal(gos_memory_mapped_bytes(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_million_small_allocations_stay_within_the_budget, start_empty),
        cmocka_unit_test_setup(a_million_allocations_of_2_mib_stay_within_the_budget, start_empty),
        cmocka_unit_test_setup(memory_of_freed_allocations_is_used_again, start_empty),
        cmocka_unit_test_setup(one_block_that_comes_and_goes_maps_nothing, start_empty),
    };

    return cmocka_run_group_tests_name("track_budget", tests, NULL, NULL);
}
