/* Sampling by bytes: what is taken, and what it is taken to stand for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../../src/base/options.h"
#include "../../src/track/sample.h"

#define MEAN (UINT64_C(1) << 20)

static int turn_on(void **state)
{
    (void)state;
    gos_options.stack_sample = MEAN;
    return 0;
}

static void every_allocation_is_taken_while_sampling_is_off(void **state)
{
    (void)state;
    gos_options.stack_sample = 0;
    for (int i = 0; i < 1000; i++)
        assert_true(gos_sample_takes(1));
}

/* Sum of the estimates over `count` allocations of one size, in thousandths of what they are. */
static uint64_t estimated_permille(uint64_t bytes, uint64_t count)
{
    uint64_t estimated = 0;

    for (uint64_t i = 0; i < count; i++)
        if (gos_sample_takes(bytes))
            estimated += gos_sample_estimate(bytes, MEAN);
    return estimated * 1000 / (bytes * count);
}

/* Some 10,000 are taken of each size, so that 6 % are six deviations. */
static void estimates_add_up_to_what_was_allocated(void **state)
{
    static const uint64_t sizes[] = {512, 4096, 100000, MEAN, 3 * MEAN, 50 * MEAN};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint64_t count = sizes[i] < MEAN ? 10000 * MEAN / sizes[i] : 20000;
        assert_in_range(estimated_permille(sizes[i], count), 940, 1060);
    }
}

static void mixed_sizes_are_each_estimated_rightly(void **state)
{
    uint64_t estimated[2] = {0, 0}, total[2] = {0, 0};

    (void)state;
    for (int i = 0; i < 2000000; i++) {
        uint64_t bytes = i % 10 ? 2048 : 65536;
        total[i % 10 == 0] += bytes;
        if (gos_sample_takes(bytes))
            estimated[i % 10 == 0] += gos_sample_estimate(bytes, MEAN);
    }
    assert_in_range(estimated[0] * 1000 / total[0], 890, 1110);
    assert_in_range(estimated[1] * 1000 / total[1], 940, 1060);
}

static void large_allocations_are_always_taken_and_stand_for_themselves(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++)
        assert_true(gos_sample_takes(45 * MEAN));
    assert_int_equal(gos_sample_estimate(45 * MEAN, MEAN), 45 * MEAN);
    assert_int_equal(gos_sample_estimate(1, MEAN), MEAN);
    assert_int_equal(gos_sample_estimate(0, MEAN), MEAN);
    /* 1 / (1 - 1/e) */
    assert_in_range(gos_sample_estimate(MEAN, MEAN), MEAN * 15819 / 10000, MEAN * 15820 / 10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_allocation_is_taken_while_sampling_is_off, turn_on),
        cmocka_unit_test_setup(estimates_add_up_to_what_was_allocated, turn_on),
        cmocka_unit_test_setup(mixed_sizes_are_each_estimated_rightly, turn_on),
        cmocka_unit_test_setup(large_allocations_are_always_taken_and_stand_for_themselves,
                               turn_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
