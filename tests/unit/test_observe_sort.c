#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../../src/observe/sort.h"

#define COUNT 5000

static struct gos_small smalls[COUNT], spare[COUNT], expected[COUNT];
static struct gos_site_use uses[COUNT];

static uint64_t next_random(void)
{
    static uint64_t state = 1;

    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 16;
}

static int compare_smalls(const void *left, const void *right)
{
    const struct gos_small *a = left, *b = right;

    return (a->address > b->address) - (a->address < b->address);
}

static void make_smalls(size_t count, uint64_t mask)
{
    for (size_t i = 0; i < count; i++)
        smalls[i] = (struct gos_small){0x7f0000000000 + (next_random() & mask) * COUNT + i,
                                       (uint32_t)i, (uint32_t)i + 1};
    memcpy(expected, smalls, count * sizeof(*smalls));
    qsort(expected, count, sizeof(*expected), compare_smalls);
}

static void smalls_of_every_length_are_sorted_by_radix(void **state)
{
    (void)state;
    for (size_t count = 0; count < 70; count++) {
        make_smalls(count, 0xFFFFFF);
        gos_sort_smalls(smalls, spare, count);
        assert_memory_equal(smalls, expected, count * sizeof(*smalls));
    }
}

static void many_smalls_are_sorted_alike_by_radix_and_by_heap(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 40; bits += 3) {
        make_smalls(COUNT, ((uint64_t)1 << bits) - 1);
        gos_sort_smalls(smalls, spare, COUNT);
        assert_memory_equal(smalls, expected, sizeof(smalls));
        make_smalls(COUNT, ((uint64_t)1 << bits) - 1);
        gos_sort_smalls(smalls, NULL, COUNT);
        assert_memory_equal(smalls, expected, sizeof(smalls));
    }
}

static void smalls_with_the_whole_address_in_use_are_sorted(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT; i++)
        smalls[i] = (struct gos_small){next_random() * 0x10001, (uint32_t)i, 0};
    gos_sort_smalls(smalls, spare, COUNT);
    for (size_t i = 1; i < COUNT; i++)
        assert_true(smalls[i - 1].address <= smalls[i].address);
}

static void uses_come_out_largest_first(void **state)
{
    uint64_t sum = 0, sum_after = 0;

    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        uses[i].live_bytes = next_random() & 0xFFF;
        uses[i].site = (uint32_t)i;
        sum += uses[i].live_bytes;
    }
    gos_sort_uses(uses, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        sum_after += uses[i].live_bytes;
    assert_int_equal(sum, sum_after);
    for (size_t i = 1; i < COUNT; i++)
        assert_true(
            uses[i - 1].live_bytes > uses[i].live_bytes ||
            (uses[i - 1].live_bytes == uses[i].live_bytes && uses[i - 1].site < uses[i].site));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smalls_of_every_length_are_sorted_by_radix),
        cmocka_unit_test(many_smalls_are_sorted_alike_by_radix_and_by_heap),
        cmocka_unit_test(smalls_with_the_whole_address_in_use_are_sorted),
        cmocka_unit_test(uses_come_out_largest_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
