/* The map of 2 MiB blocks and the numbers made from it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "diagnose_fixture.h"

#define BLOCK (2 * MIB)
#define BASE (64 * GIB)

static void map_of(struct gos_small *smalls, size_t count, struct gos_fragmentation *map)
{
    static struct gos_evidence evidence;
    evidence.devices[0].smalls = smalls;
    evidence.devices[0].small_count = count;
    evidence.devices[0].driver_known = true;
    evidence.devices[0].driver_free_bytes = 3 * MIB;
    gos_fragmentation_make(&evidence, &evidence.devices[0], map);
}

static void two_halves_share_a_block_and_nothing_is_stuck(void **state)
{
    (void)state;
    struct gos_small smalls[] = {{BASE, MIB, 1}, {BASE + MIB, MIB, 2}};
    struct gos_fragmentation map;
    map_of(smalls, 2, &map);
    assert_int_equal(map.block_count, 1);
    assert_int_equal(map.block_live_bytes, BLOCK);
    assert_int_equal(map.block_stuck_bytes, 0);
    assert_int_equal(map.block_pinned_count, 0);
    assert_int_equal(map.block_permille, 0);
}

static void every_second_half_pins_a_block(void **state)
{
    (void)state;
    static struct gos_small smalls[1000];
    struct gos_fragmentation map;
    for (size_t i = 0; i < 1000; i++)
        smalls[i] = (struct gos_small){BASE + i * BLOCK, MIB, i < 700 ? 1 : 2};
    map_of(smalls, 1000, &map);
    assert_int_equal(map.block_count, 1000);
    assert_int_equal(map.block_stuck_bytes, 1000 * MIB);
    assert_int_equal(map.block_pinned_count, 1000);
    assert_int_equal(map.block_permille, 1000 * 1000 / 1003);
    assert_int_equal(map.pin_count, 2);
    assert_int_equal(map.pins[0].site, 1);
    assert_int_equal(map.pins[0].blocks, 700);
    assert_int_equal(map.pins[0].stuck_bytes, 700 * MIB);
    assert_int_equal(map.pins[1].blocks, 300);
}

static void block_counts_for_the_site_that_has_most_of_it(void **state)
{
    (void)state;
    struct gos_small smalls[] = {{BASE, 512, 1}, {BASE + 512, 4096, 2}, {BASE + 8192, 512, 1}};
    struct gos_fragmentation map;
    map_of(smalls, 3, &map);
    assert_int_equal(map.pin_count, 1);
    assert_int_equal(map.pins[0].site, 2);
    assert_int_equal(map.pins[0].stuck_bytes, BLOCK - 5120);
}

static void allocation_over_the_end_of_a_block_has_a_part_in_each(void **state)
{
    (void)state;
    struct gos_small smalls[] = {{BASE + BLOCK - 4096, 8192, 1}};
    struct gos_fragmentation map;
    map_of(smalls, 1, &map);
    assert_int_equal(map.block_count, 2);
    assert_int_equal(map.block_live_bytes, 8192);
    assert_int_equal(map.block_stuck_bytes, 2 * BLOCK - 8192);
}

static void a_block_more_than_half_used_pins_but_is_not_named(void **state)
{
    (void)state;
    struct gos_small smalls[] = {{BASE, MIB, 1}, {BASE + MIB, 4096, 2}};
    struct gos_fragmentation map;
    map_of(smalls, 2, &map);
    assert_int_equal(map.block_stuck_bytes, MIB - 4096);
    assert_int_equal(map.block_pinned_count, 0);
    assert_int_equal(map.pin_count, 0);
}

static void pins_are_at_most_eight_and_the_largest(void **state)
{
    (void)state;
    static struct gos_small smalls[4000];
    struct gos_fragmentation map;
    size_t count = 0;
    for (uint32_t site = 1; site <= 60; site++)
        for (uint32_t block = 0; block < site; block++, count++)
            smalls[count] = (struct gos_small){BASE + count * BLOCK, 512, site};
    map_of(smalls, count, &map);
    assert_int_equal(map.pin_count, 8);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(map.pins[i].site, 60 - i);
}

static void empty_device_has_no_fragmentation(void **state)
{
    (void)state;
    struct gos_fragmentation map;
    map_of(NULL, 0, &map);
    assert_int_equal(map.block_count, 0);
    assert_int_equal(map.block_permille, 0);
    assert_int_equal(map.pool_permille, 0);
}

static uint32_t pool_permille_of(const struct scene *scene)
{
    static struct gos_evidence evidence;
    struct gos_fragmentation map;
    scene_evidence(scene, &evidence);
    gos_fragmentation_make(&evidence, &evidence.devices[0], &map);
    gos_scratch_release(&evidence.scratch);
    return map.pool_permille;
}

/* What waits for a stream is late, not in pieces; a pool with nothing live gives all back. */
static void pieces_of_pools_are_what_live_memory_keeps_there(void **state)
{
    (void)state;
    struct scene scene = {.pool_live = 3000, .pool_idle = 1000, .pool_pending = 1000};
    assert_int_equal(pool_permille_of(&scene), 500);
    scene.pending_done = true;
    assert_int_equal(pool_permille_of(&scene), 1000);
    scene.pool_pending = 0;
    assert_int_equal(pool_permille_of(&scene), 1000);
    scene.pool2_idle = 3000;
    assert_int_equal(pool_permille_of(&scene), 250);
    scene.pool_live = 0;
    assert_int_equal(pool_permille_of(&scene), 0);
}

static void a_map_that_lacks_allocations_says_how_many(void **state)
{
    (void)state;
    static struct gos_evidence evidence;
    struct gos_fragmentation map;
    evidence.devices[0].small_lost = 7;
    gos_fragmentation_make(&evidence, &evidence.devices[0], &map);
    assert_int_equal(map.block_lost_count, 7);
}

static void other_request_is_judged_by_the_map_that_there_is(void **state)
{
    (void)state;
    static struct gos_evidence evidence;
    static struct gos_diagnosis once, again;
    const struct scene first = {.ask = 64 * MIB, .by = SITE_APP, .app = 9000, .pieces = 3000};
    const struct scene second = {
        .ask = 9 * GIB, .by = SITE_TORCH, .app = 9000, .pieces = 3000, .torch_unused = 1};
    scene_evidence(&first, &evidence);
    gos_diagnose(&evidence, &again);
    scene_evidence(&second, &evidence);
    gos_diagnose(&evidence, &once);
    again.fragmentation[0].block_lost_count = 4711; /* nothing counts them again */
    gos_diagnose_again(&evidence, &again);
    assert_int_equal(again.fragmentation[0].block_lost_count, 4711);
    again.fragmentation[0].block_lost_count = 0;
    assert_int_equal(again.verdict.code, once.verdict.code);
    assert_string_equal(again.verdict.summary, once.verdict.summary);
    assert_memory_equal(again.ledgers, once.ledgers, sizeof once.ledgers);
    assert_memory_equal(again.fragmentation, once.fragmentation, sizeof once.fragmentation);
    gos_scratch_release(&evidence.scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_halves_share_a_block_and_nothing_is_stuck),
        cmocka_unit_test(every_second_half_pins_a_block),
        cmocka_unit_test(block_counts_for_the_site_that_has_most_of_it),
        cmocka_unit_test(allocation_over_the_end_of_a_block_has_a_part_in_each),
        cmocka_unit_test(a_block_more_than_half_used_pins_but_is_not_named),
        cmocka_unit_test(pins_are_at_most_eight_and_the_largest),
        cmocka_unit_test(empty_device_has_no_fragmentation),
        cmocka_unit_test(pieces_of_pools_are_what_live_memory_keeps_there),
        cmocka_unit_test(a_map_that_lacks_allocations_says_how_many),
        cmocka_unit_test(other_request_is_judged_by_the_map_that_there_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
