/* Handles that own no bytes: imported from another process, or multicast. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "../../src/base/loss.h"
#include "../../src/track/pool.h"
#include "../../src/track/registry.h"
#include "../../src/track/vmm.h"

#define BLOCK (UINT64_C(2) << 20)
#define BASE UINT64_C(0x7f0000000000)

static int start_empty(void **state)
{
    (void)state;
    gos_registry_reset_after_fork();
    gos_vmm_reset_after_fork();
    gos_pool_reset_after_fork();
    return 0;
}

static struct gos_allocation handle(uint64_t number, enum gos_kind kind, uint64_t bytes)
{
    return (struct gos_allocation){.address = number, .bytes = bytes, .kind = kind, .device = 0};
}

static void import(uint64_t number)
{
    struct gos_allocation imported = handle(number, GOS_KIND_HANDLE, 0);

    gos_vmm_imported(&imported);
}

static uint64_t live_count(enum gos_kind kind)
{
    return gos_registry_total(0, kind).live_count;
}

static void imported_handle_owns_nothing_until_it_is_released(void **state)
{
    struct gos_allocation gone;

    (void)state;
    import(5);
    assert_int_equal(live_count(GOS_KIND_HANDLE), 1);
    assert_int_equal(gos_vmm_total(0).unmapped_bytes, 0);
    assert_true(gos_vmm_release(5, &gone));
    assert_int_equal(live_count(GOS_KIND_HANDLE), 0);
    assert_int_equal(gos_vmm_total(0).handle_count, 0);
}

static void mapping_of_an_imported_handle_is_seen_but_counts_no_physical_bytes(void **state)
{
    struct gos_allocation gone;

    (void)state;
    import(5);
    gos_vmm_mapped(BASE, BLOCK, 5, 0);
    assert_int_equal(gos_registry_total(0, GOS_KIND_MAPPING).live_bytes, BLOCK);
    assert_int_equal(gos_vmm_total(0).mapped_bytes, 0);
    assert_false(gos_vmm_release(5, &gone));
    gos_vmm_unmapped(BASE, BLOCK);
    assert_int_equal(live_count(GOS_KIND_HANDLE), 0);
    assert_int_equal(live_count(GOS_KIND_MAPPING), 0);
}

static void own_handle_that_is_imported_gets_a_reference(void **state)
{
    struct gos_allocation physical = handle(5, GOS_KIND_PHYSICAL, BLOCK);
    struct gos_allocation gone;

    (void)state;
    gos_vmm_created(&physical);
    import(5);
    assert_int_equal(gos_registry_total(0, GOS_KIND_PHYSICAL).live_bytes, BLOCK);
    assert_false(gos_vmm_release(5, &gone));
    assert_true(gos_vmm_release(5, &gone));
    assert_int_equal(gone.bytes, BLOCK);
}

static void refused_release_puts_a_multicast_handle_back_with_its_size(void **state)
{
    struct gos_allocation multicast = handle(7, GOS_KIND_HANDLE, BLOCK);
    struct gos_allocation gone;

    (void)state;
    gos_vmm_created(&multicast);
    bool was_last = gos_vmm_release(7, &gone);
    gos_vmm_unrelease(7, &gone, was_last);
    assert_int_equal(gos_registry_total(0, GOS_KIND_HANDLE).live_bytes, BLOCK);
    assert_int_equal(gos_vmm_total(0).unmapped_bytes, 0);
    assert_true(gos_vmm_release(7, &gone));
    assert_int_equal(gos_vmm_total(0).unmapped_bytes, 0);
}

static void record_of_another_space_is_no_handle(void **state)
{
    struct gos_allocation wrong = handle(9, GOS_KIND_DEVICE, BLOCK);
    uint64_t lost = gos_loss_get(GOS_LOSS_TABLE);

    (void)state;
    gos_vmm_imported(&wrong);
    assert_int_equal(gos_loss_get(GOS_LOSS_TABLE), lost + 1);
    assert_int_equal(gos_vmm_total(0).handle_count, 0);
}

static void pools_of_the_host_are_known_but_not_listed(void **state)
{
    struct gos_pool_info info;
    struct gos_pool_info list[4];

    (void)state;
    gos_pool_seen(&(struct gos_pool_info){.pool = 0x10, .device = GOS_DEVICE_HOST});
    gos_pool_seen(&(struct gos_pool_info){.pool = 0x20, .device = 1});
    assert_true(gos_pool_find(0x10, &info));
    assert_int_equal(info.device, GOS_DEVICE_HOST);
    assert_int_equal(gos_pool_list(list, 4), 1);
    assert_int_equal(list[0].pool, 0x20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(imported_handle_owns_nothing_until_it_is_released, start_empty),
        cmocka_unit_test_setup(mapping_of_an_imported_handle_is_seen_but_counts_no_physical_bytes,
                               start_empty),
        cmocka_unit_test_setup(own_handle_that_is_imported_gets_a_reference, start_empty),
        cmocka_unit_test_setup(refused_release_puts_a_multicast_handle_back_with_its_size,
                               start_empty),
        cmocka_unit_test_setup(record_of_another_space_is_no_handle, start_empty),
        cmocka_unit_test_setup(pools_of_the_host_are_known_but_not_listed, start_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
