/*
 * The trend test on made-up series: small tables by hand, then how often it is
 * wrong over thousands of seeded ones.  What trend.h states is asserted here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "../../src/diagnose/trend.h"
#include "diagnose_fixture.h"

#define MOST GOS_TREND_POINTS_MOST

/* --- by hand --- */

static const struct {
    const char *name;
    enum gos_trend trend;
    size_t count;
    uint64_t mib[MOST];
} tables[] = {
    {"nothing", GOS_TREND_UNKNOWN, 0, {0}},
    {"eleven_rising_points_are_too_few",
     GOS_TREND_UNKNOWN,
     11,
     {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
    {"twelve_are_enough", GOS_TREND_STEADY, 12, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
    {"always_the_same", GOS_TREND_NONE, 12, {5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5}},
    {"falling", GOS_TREND_NONE, 12, {12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1}},
    {"sawtooth", GOS_TREND_NONE, 14, {0, 9, 0, 9, 0, 9, 0, 9, 0, 9, 0, 9, 0, 9}},
    {"sawtooth_of_a_long_period",
     GOS_TREND_NONE,
     16,
     {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8}},
    {"one_step", GOS_TREND_NONE, 16, {1, 1, 1, 1, 1, 1, 1, 1, 1, 9, 9, 9, 9, 9, 9, 9}},
    {"one_large_step_in_slight_growth",
     GOS_TREND_STEPS,
     14,
     {1, 2, 3, 4, 5, 6, 99, 100, 101, 102, 103, 104, 105, 106}},
    {"warm_up_then_flat", GOS_TREND_FLATTENED, 20, {1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                                    10, 10, 10, 10, 10, 10, 10, 10, 10, 10}},
    {"full_for_the_last_sixth",
     GOS_TREND_FLATTENED,
     18,
     {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 15, 15, 15}},
    {"one_interval_without_growth_at_the_end",
     GOS_TREND_STEADY,
     18,
     {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 17}},
    {"slower_and_slower",
     GOS_TREND_FLATTENED,
     16,
     {0, 30, 52, 69, 82, 92, 100, 106, 110, 113, 116, 118, 119, 120, 121, 122}},
    {"flat_then_growth", GOS_TREND_STEADY, 20, {3, 3, 3, 3, 3, 3,  3,  3,  3,  4,
                                                5, 6, 7, 8, 9, 10, 11, 12, 13, 14}},
    {"faster_and_faster",
     GOS_TREND_STEADY,
     14,
     {1, 2, 4, 7, 11, 16, 22, 29, 37, 46, 56, 67, 79, 92}},
    {"growth_in_every_other_interval", GOS_TREND_STEADY, 20, {1, 1, 2, 2, 3, 3, 4, 4, 5,  5,
                                                              6, 6, 7, 7, 8, 8, 9, 9, 10, 10}},
    {"one_outlier_changes_nothing",
     GOS_TREND_STEADY,
     18,
     {1, 2, 3, 4, 5, 6, 7, 8, 4, 10, 11, 12, 13, 14, 15, 16, 17, 18}},
};

static void tables_have_their_trend(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        uint64_t at[MOST];
        for (size_t k = 0; k < MOST; k++)
            at[k] = 100 * k;
        enum gos_trend trend = gos_trend_of(at, tables[i].mib, tables[i].count);
        if (trend != tables[i].trend)
            fail_msg("%s is %s", tables[i].name, gos_trend_code(trend));
    }
}

static void pace_is_that_of_the_last_quarter(void **state)
{
    (void)state;
    const uint64_t at[] = {0, 10, 20, 30, 40, 50, 60, 70};
    const uint64_t late[] = {0, 0, 0, 0, 100, 200, 300, 400};
    const uint64_t fall[] = {9, 8, 7, 6, 5, 4, 3, 2};
    assert_int_equal(gos_trend_pace(at, late, 8, 1000), 10000);
    assert_int_equal(gos_trend_pace(at, fall, 8, 1000), 0);
    assert_int_equal(gos_trend_pace(at, late, 1, 1000), 0);
    assert_int_equal(gos_trend_pace(at, late, 0, 1000), 0);
}

static void points_at_one_moment_have_no_slope(void **state)
{
    (void)state;
    const uint64_t at[] = {7, 7, 7, 7};
    const uint64_t bytes[] = {1, 2, 3, 4};
    assert_int_equal(gos_trend_pace(at, bytes, 4, 1000), 0);
}

static void growth_does_not_hang_on_either_end(void **state)
{
    (void)state;
    const uint64_t bytes[] = {512, 10, 11, 12, 13, 14, 15, 16, 0};
    assert_int_equal(gos_trend_growth(bytes, 9), 15 - 11);
    assert_int_equal(gos_trend_growth(bytes, 5), 0);
    assert_int_equal(gos_trend_growth((const uint64_t[]){9, 9, 9, 1, 1, 1}, 6), 0);
}

static void of_too_many_points_the_newest_count(void **state)
{
    (void)state;
    uint64_t at[2 * MOST];
    uint64_t bytes[2 * MOST];
    for (size_t i = 0; i < 2 * MOST; i++) {
        at[i] = i;
        bytes[i] = i < MOST ? 1000 - i : 100 + i;
    }
    assert_int_equal(gos_trend_of(at, bytes, 2 * MOST), GOS_TREND_STEADY);
}

/* --- by the thousand --- */

struct run {
    uint64_t random;
    uint64_t at[MOST];
    uint64_t bytes[MOST];
    size_t count;
};

static uint64_t below(struct run *run, uint64_t end)
{
    return random_below(&run->random, end);
}

/* 13 to 33 points at distances that vary threefold, as the history's do. */
static void draw_clock(struct run *run)
{
    uint64_t now = 0;
    run->count = 13 + below(run, MOST - 12);
    for (size_t i = 0; i < run->count; i++)
        run->at[i] = now += 50 + below(run, 101);
}

static uint64_t length_of(const struct run *run)
{
    return run->at[run->count - 1];
}

/* Each step is as likely up as down. */
static void random_walk(struct run *run)
{
    uint64_t now = 4000 * MIB;
    for (size_t i = 0; i < run->count; i++) {
        now += (below(run, 2 * 64 + 1) - 64) * MIB;
        run->bytes[i] = now;
    }
}

/* Drawn back to its mean: a queue, a working set. */
static void wandering_about_a_mean(struct run *run)
{
    int64_t off = 0;
    for (size_t i = 0; i < run->count; i++) {
        off = off * 9 / 10 + (int64_t)below(run, 129) - 64;
        run->bytes[i] = (uint64_t)(1000 + off) * MIB;
    }
}

static void noise(struct run *run)
{
    for (size_t i = 0; i < run->count; i++)
        run->bytes[i] = (1000 + below(run, 256)) * MIB;
}

static void allocated_and_freed(struct run *run)
{
    for (size_t i = 0; i < run->count; i++)
        run->bytes[i] = below(run, 2) * 512 * MIB;
}

/* Fills within a period, then all of it is freed; met at any phase. */
static void periodic(struct run *run)
{
    uint64_t period = 20 + below(run, 600);
    for (size_t i = 0; i < run->count; i++)
        run->bytes[i] = run->at[i] % period * MIB;
}

static void stepwise(struct run *run, uint64_t steps)
{
    for (size_t i = 0; i < run->count; i++)
        run->bytes[i] = 100 * MIB;
    for (uint64_t step = 0; step < steps; step++) {
        uint64_t from = below(run, run->count);
        uint64_t height = (500 + below(run, 4000)) * MIB;
        for (size_t i = from; i < run->count; i++)
            run->bytes[i] += height;
    }
}

static void one_load(struct run *run)
{
    stepwise(run, 1);
}

static void three_loads(struct run *run)
{
    stepwise(run, 3);
}

/* Linear up to a tenth to a half of the run, then as it is. */
static void warm_up(struct run *run)
{
    uint64_t end = length_of(run) / 10 + below(run, length_of(run) * 4 / 10);
    for (size_t i = 0; i < run->count; i++)
        run->bytes[i] = (run->at[i] < end ? run->at[i] : end) * MIB;
}

/* Kept each time, then for so many hundredths of the run not at all. */
static void with_flat_end(struct run *run, uint64_t hundredths)
{
    uint64_t end = length_of(run) * (100 - hundredths) / 100;
    for (size_t i = 0; i < run->count; i++)
        run->bytes[i] = (run->at[i] < end ? run->at[i] : end) * MIB;
}

static void flat_for_a_tenth(struct run *run)
{
    with_flat_end(run, 10);
}

static void flat_for_15_hundredths(struct run *run)
{
    with_flat_end(run, 15);
}

static void flat_for_a_fifth(struct run *run)
{
    with_flat_end(run, 20);
}

static void flat_for_a_quarter(struct run *run)
{
    with_flat_end(run, 25);
}

/* Keys at random into a table that never evicts: what is missing is filled, ever more seldom. */
static void filling_cache(struct run *run)
{
    static bool filled[1000];
    uint64_t slots = length_of(run) / 10 + below(run, length_of(run) / 5);
    uint64_t used = 0;
    uint64_t now = 0;
    slots = slots < 1000 ? slots : 1000;
    for (uint64_t i = 0; i < slots; i++)
        filled[i] = false;
    for (size_t i = 0; i < run->count; i++) {
        for (; now < run->at[i]; now++) {
            uint64_t key = below(run, slots);
            used += !filled[key];
            filled[key] = true;
        }
        run->bytes[i] = used * 8 * MIB;
    }
}

/* Full: a random entry of another size takes the place of a random old one. */
static void replacing_cache(struct run *run)
{
    uint64_t entries[64];
    uint64_t sum = 0;
    for (size_t i = 0; i < 64; i++)
        sum += entries[i] = 1 + below(run, 64);
    for (size_t i = 0; i < run->count; i++) {
        for (int k = 0; k < 40; k++) {
            uint64_t *entry = &entries[below(run, 64)];
            sum -= *entry;
            sum += *entry = 1 + below(run, 64);
        }
        run->bytes[i] = sum * MIB;
    }
}

static void kept_each_time(struct run *run)
{
    for (size_t i = 0; i < run->count; i++)
        run->bytes[i] = run->at[i] / 2 * 8 * MIB;
}

static void kept_now_and_then(struct run *run)
{
    uint64_t kept = 0;
    for (size_t i = 0; i < run->count; i++) {
        for (int k = 0; k < 20; k++)
            kept += below(run, 4) == 0;
        run->bytes[i] = kept * 8 * MIB;
    }
}

/* Begins within the first half. */
static void late_leak(struct run *run)
{
    uint64_t from = below(run, length_of(run) / 2);
    for (size_t i = 0; i < run->count; i++)
        run->bytes[i] = (100 + (run->at[i] > from ? run->at[i] - from : 0)) * MIB;
}

/* Its own coming and going is less than what an interval adds. */
static void leak_with_noise(struct run *run)
{
    for (size_t i = 0; i < run->count; i++)
        run->bytes[i] = (run->at[i] + below(run, 64)) * MIB;
}

static void leak_far_below_noise(struct run *run)
{
    for (size_t i = 0; i < run->count; i++)
        run->bytes[i] = (run->at[i] / 100 + below(run, 512)) * MIB;
}

#define RUNS 4000

static unsigned steady_of(void (*make)(struct run *run))
{
    struct run run = {.random = 0x9e3779b97f4a7c15};
    unsigned steady = 0;
    for (int i = 0; i < RUNS; i++) {
        draw_clock(&run);
        make(&run);
        steady += gos_trend_of(run.at, run.bytes, run.count) == GOS_TREND_STEADY;
    }
    return steady;
}

/* Most of RUNS that may be called steady, or fewest that must. */
static void no_more_than_stated_are_accused_falsely(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        void (*make)(struct run *run);
        unsigned most_per_1000;
    } families[] = {
        {"random walk", random_walk, 5},
        {"wandering about a mean", wandering_about_a_mean, 2},
        {"noise", noise, 0},
        {"allocated and freed", allocated_and_freed, 0},
        {"periodic", periodic, 0},
        {"one load", one_load, 0},
        {"three loads", three_loads, 0},
        {"warm-up", warm_up, 0},
        {"flat for a tenth", flat_for_a_tenth, 200},
        {"flat for 15 hundredths", flat_for_15_hundredths, 5},
        {"flat for a fifth", flat_for_a_fifth, 0},
        {"flat for a quarter", flat_for_a_quarter, 0},
        {"filling cache", filling_cache, 0},
        {"replacing cache", replacing_cache, 2},
        {"leak far below its own noise", leak_far_below_noise, 0},
    };
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        unsigned steady = steady_of(families[i].make);
        printf("%s: %u of %d\n", families[i].name, steady, RUNS);
        if (steady > families[i].most_per_1000 * (RUNS / 1000))
            fail_msg("%s: %u of %d called steady", families[i].name, steady, RUNS);
    }
}

static void no_fewer_than_stated_leaks_are_found(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        void (*make)(struct run *run);
        unsigned fewest_per_100;
    } families[] = {
        {"kept each time", kept_each_time, 100},
        {"kept now and then", kept_now_and_then, 95},
        {"late leak", late_leak, 95},
        {"leak with noise", leak_with_noise, 95},
    };
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        unsigned steady = steady_of(families[i].make);
        printf("%s: %u of %d\n", families[i].name, steady, RUNS);
        if (steady < families[i].fewest_per_100 * (RUNS / 100))
            fail_msg("%s: only %u of %d found", families[i].name, steady, RUNS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_have_their_trend),
        cmocka_unit_test(pace_is_that_of_the_last_quarter),
        cmocka_unit_test(points_at_one_moment_have_no_slope),
        cmocka_unit_test(growth_does_not_hang_on_either_end),
        cmocka_unit_test(of_too_many_points_the_newest_count),
        cmocka_unit_test(no_more_than_stated_are_accused_falsely),
        cmocka_unit_test(no_fewer_than_stated_leaks_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
