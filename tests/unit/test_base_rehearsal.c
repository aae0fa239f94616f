/* The values of GPUOOMSHIM_LIMIT and GPUOOMSHIM_INJECT. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../src/base/inject_option.h"
#include "../../src/base/limit_option.h"

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

/* --- limits ----------------------------------------------------------------------------------- */

static void one_size_is_for_every_device(void **state)
{
    struct gos_limit_option limit = {{0}};

    (void)state;
    assert_int_equal(gos_limit_option_parse("24GiB", &limit), 0);
    for (int i = 0; i < GOS_LIMIT_DEVICES; i++)
        assert_int_equal(limit.bytes[i], 24 * GIB);
}

static void devices_in_a_list_are_limited_and_no_others(void **state)
{
    struct gos_limit_option limit = {{7}};

    (void)state;
    assert_int_equal(gos_limit_option_parse("0:24GiB, 31:512M", &limit), 0);
    assert_int_equal(limit.bytes[0], 24 * GIB);
    assert_int_equal(limit.bytes[1], 0);
    assert_int_equal(limit.bytes[31], 512 * MIB);
}

static void off_and_nothing_are_no_limit(void **state)
{
    static const char *const values[] = {"", "off", "None"};

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        struct gos_limit_option limit = {{7, 7}};
        assert_int_equal(gos_limit_option_parse(values[i], &limit), 0);
        assert_int_equal(limit.bytes[0], 0);
        assert_int_equal(limit.bytes[1], 0);
    }
}

static void garbage_is_no_limit_and_changes_nothing(void **state)
{
    static const char *const values[] = {"24Gib!",
                                         "0",
                                         "0:0",
                                         "0:",
                                         ":4G",
                                         "x:4G",
                                         "0:4G,",
                                         "0:4G,0:5G",
                                         "0:4G,,1:4G",
                                         "-1:4G",
                                         "32:4G",
                                         "4G,1:4G",
                                         "99999999999999999999",
                                         "0:4G;1:4G",
                                         "99999999999999999999:4G",
                                         "0:1111111111111111111111111111111111111111",
                                         "24 GiB or so"};

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        struct gos_limit_option limit = {{7}};
        if (gos_limit_option_parse(values[i], &limit) == 0)
            fail_msg("'%s' was read", values[i]);
        assert_int_equal(limit.bytes[0], 7);
    }
}

/* --- injections ------------------------------------------------------------------------------- */

static struct gos_inject_option parsed(const char *value)
{
    struct gos_inject_option inject = {.number = 99};

    if (gos_inject_option_parse(value, &inject) != 0)
        fail_msg("'%s' was not read", value);
    return inject;
}

static const uint32_t usual = 1u << GOS_INJECT_DEVICE | 1u << GOS_INJECT_ASYNC |
                              1u << GOS_INJECT_PHYSICAL | 1u << GOS_INJECT_ARRAY |
                              1u << GOS_INJECT_MANAGED | 1u << GOS_INJECT_GRAPH;

static void nth_alone_means_any_device_memory(void **state)
{
    struct gos_inject_option inject = parsed("nth=5");

    (void)state;
    assert_int_equal(inject.rule, GOS_INJECT_NTH);
    assert_int_equal(inject.number, 5);
    assert_int_equal(inject.kinds, usual);
    assert_int_equal(inject.min_bytes, 0);
    assert_true(inject.max_bytes == UINT64_MAX);
    assert_null(inject.site);
    assert_false(inject.recover);
}

static void filters_are_read_in_any_order(void **state)
{
    struct gos_inject_option inject =
        parsed("kind=async, min=1MiB,every=100,max=2GiB,site=model.py:41,recover=1,kind=launch");

    (void)state;
    assert_int_equal(inject.rule, GOS_INJECT_EVERY);
    assert_int_equal(inject.number, 100);
    assert_int_equal(inject.kinds, 1u << GOS_INJECT_ASYNC | 1u << GOS_INJECT_LAUNCH);
    assert_int_equal(inject.min_bytes, MIB);
    assert_int_equal(inject.max_bytes, 2 * GIB);
    assert_string_equal(inject.site, "model.py:41");
    assert_true(inject.recover);
}

static void share_is_read_to_nine_decimals(void **state)
{
    (void)state;
    assert_int_equal(parsed("share=0.01,seed=7").share_ppb, 10000000);
    assert_int_equal(parsed("share=0.01,seed=7").seed, 7);
    assert_int_equal(parsed("share=.5").share_ppb, 500000000);
    assert_int_equal(parsed("share=1").share_ppb, 1000000000);
    assert_int_equal(parsed("share=1.0").share_ppb, 1000000000);
    assert_int_equal(parsed("share=0.1234567899").share_ppb, 123456789);
}

static void off_is_no_injection(void **state)
{
    (void)state;
    assert_int_equal(parsed("off").rule, GOS_INJECT_NONE);
    assert_int_equal(parsed("").rule, GOS_INJECT_NONE);
    assert_false(gos_inject_option_hits(&(struct gos_inject_option){0}, 1));
}

static void garbage_is_no_injection_and_changes_nothing(void **state)
{
    static const char *const values[] = {"5",
                                         "nth",
                                         "nth=",
                                         "nth=0",
                                         "nth=x",
                                         "nth=5x",
                                         "nth=5,every=2",
                                         "nth=5,nth=5",
                                         "every=0",
                                         "share=0",
                                         "share=1.1",
                                         "share=2",
                                         "share=0.",
                                         "share=.",
                                         "share=0.0000000001",
                                         "share=-1",
                                         "share=0.5x",
                                         "kind=device",
                                         "nth=1,kind=gpu",
                                         "nth=1,min=2M,max=1M",
                                         "nth=1,site=",
                                         "nth=1,recover=2",
                                         "nth=1,recover=yes",
                                         "nth=1,",
                                         ",nth=1",
                                         "nth=1,seed=x",
                                         "nth=1;min=2",
                                         "nth=99999999999999999999",
                                         "nth=1,min=99999999999T",
                                         "nth=1,what=2",
                                         "=1"};

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        struct gos_inject_option inject = {.number = 99};
        if (gos_inject_option_parse(values[i], &inject) == 0)
            fail_msg("'%s' was read", values[i]);
        assert_int_equal(inject.number, 99);
        assert_int_equal(inject.rule, GOS_INJECT_NONE);
    }
}

static void overlong_parts_are_refused(void **state)
{
    char value[600] = "nth=1,site=";
    struct gos_inject_option inject;

    (void)state;
    memset(value + strlen(value), 'x', 500);
    assert_int_equal(gos_inject_option_parse(value, &inject), -EINVAL);
}

static uint64_t hits(const struct gos_inject_option *inject, uint64_t from, uint64_t to)
{
    uint64_t count = 0;

    for (uint64_t i = from; i <= to; i++)
        count += gos_inject_option_hits(inject, i);
    return count;
}

static void nth_hits_once_and_every_hits_each_multiple(void **state)
{
    struct gos_inject_option nth = parsed("nth=5"), every = parsed("every=5");

    (void)state;
    assert_true(gos_inject_option_hits(&nth, 5));
    assert_int_equal(hits(&nth, 1, 1000), 1);
    assert_true(gos_inject_option_hits(&every, 5));
    assert_false(gos_inject_option_hits(&every, 6));
    assert_int_equal(hits(&every, 1, 1000), 200);
}

/* By an implementation of its own, in another language: a run can be repeated anywhere, ever. */
static void share_hits_the_same_numbers_for_a_seed(void **state)
{
    struct gos_inject_option inject = parsed("share=0.1,seed=7");
    static const uint64_t first[] = {39, 41, 45, 50, 56, 70, 89, 96};
    const size_t count = sizeof first / sizeof first[0];
    size_t found = 0;

    (void)state;
    for (uint64_t i = 1; found < count; i++) {
        if (gos_inject_option_hits(&inject, i))
            assert_int_equal(i, first[found++]);
        assert_true(i < 1000);
    }
}

static void share_is_met_and_seeds_differ(void **state)
{
    struct gos_inject_option seven = parsed("share=0.01,seed=7"),
                             eight = parsed("share=0.01,seed=8");
    struct gos_inject_option all = parsed("share=1,seed=3");
    uint64_t both = 0;

    (void)state;
    assert_in_range(hits(&seven, 1, 1000000), 9700, 10300);
    assert_in_range(hits(&eight, 1, 1000000), 9700, 10300);
    for (uint64_t i = 1; i <= 1000000; i++)
        both += gos_inject_option_hits(&seven, i) && gos_inject_option_hits(&eight, i);
    assert_in_range(both, 50, 150);
    assert_int_equal(hits(&all, 1, 10000), 10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_size_is_for_every_device),
        cmocka_unit_test(devices_in_a_list_are_limited_and_no_others),
        cmocka_unit_test(off_and_nothing_are_no_limit),
        cmocka_unit_test(garbage_is_no_limit_and_changes_nothing),
        cmocka_unit_test(nth_alone_means_any_device_memory),
        cmocka_unit_test(filters_are_read_in_any_order),
        cmocka_unit_test(share_is_read_to_nine_decimals),
        cmocka_unit_test(off_is_no_injection),
        cmocka_unit_test(garbage_is_no_injection_and_changes_nothing),
        cmocka_unit_test(overlong_parts_are_refused),
        cmocka_unit_test(nth_hits_once_and_every_hits_each_multiple),
        cmocka_unit_test(share_hits_the_same_numbers_for_a_seed),
        cmocka_unit_test(share_is_met_and_seeds_differ),
    };

    return cmocka_run_group_tests_name("rehearsal options", tests, NULL, NULL);
}
