/* Physical memory is alive while it has a reference or a mapping. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "../../src/base/loss.h"
#include "../../src/track/registry.h"
#include "../../src/track/vmm.h"

#define BLOCK (UINT64_C(2) << 20)
#define BASE UINT64_C(0x7f0000000000)

static int start_empty(void **state)
{
    (void)state;
    gos_registry_reset_after_fork();
    gos_vmm_reset_after_fork();
    return 0;
}

static void create(uint64_t handle, uint32_t device)
{
    struct gos_allocation physical = {
        .address = handle, .bytes = BLOCK, .kind = GOS_KIND_PHYSICAL, .device = device, .site = 11};

    gos_vmm_created(&physical);
}

static bool is_alive(uint64_t handle)
{
    struct gos_allocation found;

    return gos_registry_find(GOS_SPACE_HANDLE, handle, &found);
}

static void check_totals(uint64_t handles, uint64_t mapped, uint64_t unmapped)
{
    struct gos_vmm_totals totals = gos_vmm_total(0);

    assert_int_equal(totals.handle_count, handles);
    assert_int_equal(totals.mapped_bytes, mapped);
    assert_int_equal(totals.unmapped_bytes, unmapped);
    assert_int_equal(gos_registry_total(0, GOS_KIND_PHYSICAL).live_count, handles);
}

static void released_handle_without_mapping_is_gone(void **state)
{
    struct gos_allocation gone;

    (void)state;
    create(5, 0);
    check_totals(1, 0, BLOCK);
    assert_true(gos_vmm_release(5, &gone));
    assert_int_equal(gone.address, 5);
    assert_int_equal(gone.bytes, BLOCK);
    assert_int_equal(gone.site, 11);
    assert_false(is_alive(5));
    check_totals(0, 0, 0);
}

static void released_handle_lives_until_its_last_mapping_is_gone(void **state)
{
    struct gos_allocation gone;

    (void)state;
    create(5, 0);
    gos_vmm_mapped(BASE, BLOCK, 5, 1);
    gos_vmm_mapped(BASE + BLOCK, BLOCK, 5, 1);
    check_totals(1, BLOCK, 0);
    assert_int_equal(gos_registry_total(0, GOS_KIND_MAPPING).live_count, 2);
    assert_false(gos_vmm_release(5, &gone));
    gos_vmm_unmapped(BASE, BLOCK);
    assert_true(is_alive(5));
    gos_vmm_unmapped(BASE + BLOCK, BLOCK);
    assert_false(is_alive(5));
    check_totals(0, 0, 0);
    assert_int_equal(gos_registry_total(0, GOS_KIND_MAPPING).live_count, 0);
}

static void unmapped_handle_lives_while_it_is_referenced(void **state)
{
    struct gos_allocation gone;

    (void)state;
    create(5, 0);
    gos_vmm_mapped(BASE, BLOCK, 5, 1);
    gos_vmm_unmapped(BASE, BLOCK);
    assert_true(is_alive(5));
    check_totals(1, 0, BLOCK);
    assert_true(gos_vmm_release(5, &gone));
    check_totals(0, 0, 0);
}

static void retained_handle_needs_two_releases(void **state)
{
    struct gos_allocation gone;

    (void)state;
    create(5, 0);
    gos_vmm_retained(5);
    assert_false(gos_vmm_release(5, &gone));
    assert_true(is_alive(5));
    assert_true(gos_vmm_release(5, &gone));
    assert_false(is_alive(5));
}

static void handle_retained_through_its_mapping_comes_back_to_life(void **state)
{
    struct gos_allocation gone;

    (void)state;
    create(5, 0);
    gos_vmm_mapped(BASE, BLOCK, 5, 1);
    assert_false(gos_vmm_release(5, &gone));
    gos_vmm_retained(5);
    gos_vmm_unmapped(BASE, BLOCK);
    assert_true(is_alive(5));
    assert_true(gos_vmm_release(5, &gone));
}

static void refused_last_release_restores_everything(void **state)
{
    struct gos_allocation gone, found;
    uint32_t sequence;

    (void)state;
    create(5, 0);
    gos_registry_find(GOS_SPACE_HANDLE, 5, &found);
    sequence = found.sequence;
    assert_true(gos_vmm_release(5, &gone));
    gos_vmm_unrelease(5, &gone, true);
    assert_true(gos_registry_find(GOS_SPACE_HANDLE, 5, &found));
    assert_int_equal(found.sequence, sequence);
    check_totals(1, 0, BLOCK);
    assert_true(gos_vmm_release(5, &gone));
    check_totals(0, 0, 0);
}

static void refused_release_of_a_mapped_handle_gives_the_reference_back(void **state)
{
    struct gos_allocation gone;

    (void)state;
    create(5, 0);
    gos_vmm_mapped(BASE, BLOCK, 5, 1);
    assert_false(gos_vmm_release(5, &gone));
    gos_vmm_unrelease(5, &gone, false);
    gos_vmm_unmapped(BASE, BLOCK);
    assert_true(is_alive(5));
}

/* The driver refuses the second of two releases; that must not make a third valid. */
static void refused_surplus_release_adds_no_reference(void **state)
{
    struct gos_allocation gone;

    (void)state;
    create(5, 0);
    gos_vmm_mapped(BASE, BLOCK, 5, 1);
    assert_false(gos_vmm_release(5, &gone));
    assert_false(gos_vmm_release(5, &gone));
    gos_vmm_unrelease(5, &gone, false);
    gos_vmm_unmapped(BASE, BLOCK);
    assert_false(is_alive(5));
}

static void unmapping_a_range_ends_all_mappings_in_it(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 10; i++) {
        create(100 + i, 0);
        gos_vmm_mapped(BASE + i * BLOCK, BLOCK, 100 + i, 1);
    }
    gos_vmm_unmapped(BASE + 2 * BLOCK, 5 * BLOCK);
    check_totals(10, 5 * BLOCK, 5 * BLOCK);
    gos_vmm_unmapped(BASE, 10 * BLOCK);
    check_totals(10, 0, 10 * BLOCK);
}

static void unmapping_a_range_passes_over_gaps(void **state)
{
    (void)state;
    create(5, 0);
    gos_vmm_mapped(BASE + BLOCK, BLOCK, 5, 1);
    gos_vmm_mapped(BASE + 7 * BLOCK, BLOCK, 5, 1);
    gos_vmm_mapped(BASE + 8 * BLOCK, BLOCK, 5, 1);
    gos_vmm_unmapped(BASE, 8 * BLOCK);
    check_totals(1, BLOCK, 0);
    assert_int_equal(gos_registry_total(0, GOS_KIND_MAPPING).live_count, 1);
}

static void mapping_over_a_forgotten_one_replaces_it(void **state)
{
    struct gos_allocation gone;

    (void)state;
    create(5, 0);
    create(6, 0);
    gos_vmm_mapped(BASE, BLOCK, 5, 1);
    gos_vmm_release(5, &gone);
    gos_vmm_mapped(BASE, BLOCK, 6, 1);
    assert_false(is_alive(5));
    check_totals(1, BLOCK, 0);
    gos_vmm_mapped(BASE, BLOCK, 6, 1);
    check_totals(1, BLOCK, 0);
}

/* The first handle's last unmap is on its way when another thread gets its number. */
static void reused_number_survives_the_end_of_its_first_owner(void **state)
{
    struct gos_allocation gone;

    (void)state;
    create(5, 0);
    gos_vmm_mapped(BASE, BLOCK, 5, 1);
    gos_vmm_release(5, &gone);
    create(5, 0);
    gos_vmm_unmapped(BASE, BLOCK);
    assert_true(is_alive(5));
    check_totals(1, 0, BLOCK);
}

static void unknown_handles_and_mappings_change_nothing(void **state)
{
    struct gos_allocation gone;

    (void)state;
    gos_vmm_retained(9);
    gos_vmm_mapped(BASE, BLOCK, 9, 1);
    gos_vmm_unmapped(BASE, BLOCK);
    assert_false(gos_vmm_release(9, &gone));
    gos_vmm_unrelease(9, &gone, false);
    gos_vmm_unrelease(9, &gone, true);
    check_totals(0, 0, 0);
}

static void totals_are_kept_per_device(void **state)
{
    (void)state;
    create(5, 0);
    create(6, 3);
    gos_vmm_mapped(BASE, BLOCK, 6, 1);
    check_totals(1, 0, BLOCK);
    assert_int_equal(gos_vmm_total(3).mapped_bytes, BLOCK);
    assert_int_equal(gos_registry_total(3, GOS_KIND_MAPPING).live_bytes, BLOCK);
    assert_int_equal(gos_vmm_total(GOS_DEVICE_TABLES).handle_count, 0);
}

static void what_is_no_physical_memory_is_refused(void **state)
{
    uint64_t lost = gos_loss_get(GOS_LOSS_TABLE);
    struct gos_allocation device = {.address = 1, .kind = GOS_KIND_DEVICE};

    (void)state;
    gos_vmm_created(&device);
    create(1, GOS_DEVICE_TABLES);
    assert_int_equal(gos_loss_get(GOS_LOSS_TABLE), lost + 2);
    check_totals(0, 0, 0);
}

/* --- arrays --- */

enum { ARRAY = 0xa000, OTHER_ARRAY = 0xb000 };

static struct gos_vmm_part box(uint64_t array, uint64_t start, uint64_t extent)
{
    return (struct gos_vmm_part){.array = array, .start = {start}, .extent = {extent, 64, 1}};
}

static void map_part(uint64_t array, uint64_t start, uint64_t extent, uint64_t handle)
{
    struct gos_vmm_part part = box(array, start, extent);

    gos_vmm_array_mapped(&part, handle);
}

static void unmap_part(uint64_t array, uint64_t start, uint64_t extent)
{
    struct gos_vmm_part part = box(array, start, extent);

    gos_vmm_array_unmapped(&part);
}

static void release(uint64_t handle)
{
    struct gos_allocation gone;

    gos_vmm_release(handle, &gone);
}

static void released_handle_lives_while_an_array_shows_it(void **state)
{
    (void)state;
    create(5, 0);
    map_part(ARRAY, 0, 128, 5);
    check_totals(1, BLOCK, 0);
    release(5);
    check_totals(1, BLOCK, 0);
    unmap_part(OTHER_ARRAY, 0, 128);
    check_totals(1, BLOCK, 0);
    unmap_part(ARRAY, 0, 128);
    check_totals(0, 0, 0);
}

static void part_of_an_array_may_be_unmapped_in_pieces(void **state)
{
    struct gos_vmm_part layer = box(ARRAY, 0, 128);

    (void)state;
    create(5, 0);
    map_part(ARRAY, 64, 128, 5);
    release(5);
    layer.layer = 1;
    gos_vmm_array_unmapped(&layer);
    unmap_part(ARRAY, 0, 128);
    check_totals(1, BLOCK, 0);
    unmap_part(ARRAY, 128, 128);
    check_totals(0, 0, 0);
}

static void part_that_shows_other_memory_lets_go_of_the_first(void **state)
{
    (void)state;
    create(5, 0);
    create(6, 0);
    map_part(ARRAY, 0, 128, 5);
    release(5);
    map_part(ARRAY, 0, 128, 5);
    check_totals(2, BLOCK, BLOCK);
    map_part(ARRAY, 0, 128, 6);
    assert_false(is_alive(5));
    check_totals(1, BLOCK, 0);
}

static void mip_tail_is_a_part_of_its_own(void **state)
{
    struct gos_vmm_part tail = {.array = ARRAY, .is_tail = true, .extent = {BLOCK, 1, 1}};

    (void)state;
    create(5, 0);
    gos_vmm_array_mapped(&tail, 5);
    release(5);
    unmap_part(ARRAY, 0, BLOCK);
    check_totals(1, BLOCK, 0);
    gos_vmm_array_unmapped(&tail);
    check_totals(0, 0, 0);
}

static void array_takes_its_mappings_with_it(void **state)
{
    (void)state;
    create(5, 0);
    create(6, 0);
    map_part(ARRAY, 0, 128, 5);
    map_part(ARRAY, 128, 128, 5);
    map_part(OTHER_ARRAY, 0, 128, 6);
    release(5);
    release(6);
    gos_vmm_array_destroyed(ARRAY);
    check_totals(1, BLOCK, 0);
    assert_true(is_alive(6));
}

static void array_that_ended_with_its_context_shows_nothing(void **state)
{
    struct gos_allocation array = {.address = ARRAY, .kind = GOS_KIND_ARRAY};

    (void)state;
    gos_registry_add(&array);
    create(5, 0);
    create(6, 0);
    map_part(ARRAY, 0, 128, 5);
    map_part(OTHER_ARRAY, 0, 128, 6);
    release(5);
    release(6);
    gos_vmm_arrays_ended();
    check_totals(1, BLOCK, 0);
    assert_true(is_alive(5));
}

#define TEST(name) cmocka_unit_test_setup(name, start_empty)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(released_handle_without_mapping_is_gone),
        TEST(released_handle_lives_until_its_last_mapping_is_gone),
        TEST(unmapped_handle_lives_while_it_is_referenced),
        TEST(retained_handle_needs_two_releases),
        TEST(handle_retained_through_its_mapping_comes_back_to_life),
        TEST(refused_last_release_restores_everything),
        TEST(refused_release_of_a_mapped_handle_gives_the_reference_back),
        TEST(refused_surplus_release_adds_no_reference),
        TEST(unmapping_a_range_ends_all_mappings_in_it),
        TEST(unmapping_a_range_passes_over_gaps),
        TEST(mapping_over_a_forgotten_one_replaces_it),
        TEST(reused_number_survives_the_end_of_its_first_owner),
        TEST(unknown_handles_and_mappings_change_nothing),
        TEST(totals_are_kept_per_device),
        TEST(what_is_no_physical_memory_is_refused),
        TEST(released_handle_lives_while_an_array_shows_it),
        TEST(part_of_an_array_may_be_unmapped_in_pieces),
        TEST(part_that_shows_other_memory_lets_go_of_the_first),
        TEST(mip_tail_is_a_part_of_its_own),
        TEST(array_takes_its_mappings_with_it),
        TEST(array_that_ended_with_its_context_shows_nothing),
    };

    return cmocka_run_group_tests_name("track_vmm", tests, NULL, NULL);
}
