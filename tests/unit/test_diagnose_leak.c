/*
 * The verdict leak on made-up growth: twins that differ in one fact each.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../src/diagnose/leak.h"
#include "diagnose_fixture.h"

#define POINTS 25

/* What a site holds at point i, in MiB. */
static uint64_t nothing(uint64_t i)
{
    (void)i;
    return 0;
}

static uint64_t steady(uint64_t i)
{
    return 400 * i;
}

static uint64_t slowly(uint64_t i)
{
    return 20 * i;
}

static uint64_t from_the_tenth(uint64_t i)
{
    return i < 10 ? 16 : 16 + 600 * (i - 10);
}

static uint64_t then_flat(uint64_t i)
{
    return i < 10 ? 800 * i : 8000;
}

static uint64_t comes_and_goes(uint64_t i)
{
    return i % 2 * 512;
}

static uint64_t loaded_at_once(uint64_t i)
{
    return i < 2 ? 100 : 5000;
}

static uint64_t shrinking(uint64_t i)
{
    return 400 * (POINTS - i);
}

/* In turns, so that neither rises in every other interval by itself. */
static uint64_t in_even_parts(uint64_t i)
{
    return i / 8 * 2000 + (i % 8 < 4 ? 500 * (i % 4) : 2000);
}

static uint64_t in_odd_parts(uint64_t i)
{
    return i < 4 ? 0 : in_even_parts(i - 4);
}

typedef uint64_t course(uint64_t i);

struct story {
    const char *name;
    enum gos_growth_kind kind;
    course *app; /* SITE_APP, the suspect */
    course *torch;
    course *pieces;
    uint32_t oldest_ms;  /* of the suspect's allocations; a point is 100 ms */
    uint64_t freed_each; /* frees in an interval of 100 allocations */
};

static const struct story stories[] = {
    {"one_line_keeps_while_others_come_and_go", GOS_GROWTH_LEAK, steady, comes_and_goes, nothing,
     .freed_each = 50},
    {"a_large_model_was_loaded_first", GOS_GROWTH_LEAK, steady, loaded_at_once, nothing,
     .freed_each = 50},
    {"it_began_late", GOS_GROWTH_LEAK, from_the_tenth, loaded_at_once, nothing, .oldest_ms = 1000,
     .freed_each = 50},
    {"another_grows_a_little", GOS_GROWTH_LEAK, steady, slowly, nothing, .freed_each = 50},
    {"nothing_is_freed_meanwhile", GOS_GROWTH_UNFREED, steady, comes_and_goes, nothing,
     .freed_each = 0},
    {"two_lines_grow_alike", GOS_GROWTH_OF_MANY, steady, steady, nothing, .freed_each = 50},
    {"three_lines_grow_alike", GOS_GROWTH_OF_MANY, steady, steady, steady, .freed_each = 50},
    {"it_flattened", GOS_GROWTH_NONE, then_flat, comes_and_goes, nothing, .freed_each = 50},
    {"it_comes_and_goes", GOS_GROWTH_NONE, comes_and_goes, loaded_at_once, nothing,
     .freed_each = 50},
    {"without_its_growth_the_request_would_not_fit", GOS_GROWTH_NONE, slowly, loaded_at_once,
     nothing, .freed_each = 50},
    {"what_it_holds_is_young", GOS_GROWTH_NONE, steady, comes_and_goes, nothing, .oldest_ms = 2300,
     .freed_each = 50},
    {"it_only_takes_the_place_of_another", GOS_GROWTH_NONE, steady, shrinking, nothing,
     .freed_each = 50},
};
#define STORY_COUNT (sizeof(stories) / sizeof(stories[0]))

static struct gos_evidence evidence;
static struct gos_diagnosis diagnosis;

static void add_series(uint32_t site, course *own, course *second, course *third,
                       uint32_t oldest_ms)
{
    struct gos_growth *growth = &evidence.growth;
    struct gos_growth_series *series = &growth->series[growth->series_count++];
    series->site = site;
    series->oldest_ms = oldest_ms;
    series->live_bytes = gos_scratch_alloc(&evidence.scratch, POINTS * sizeof(uint64_t));
    for (uint64_t i = 0; i < POINTS; i++)
        series->live_bytes[i] = (own(i) + second(i) + third(i)) * MIB;
}

static void add_growth(const struct story *story)
{
    struct gos_growth *growth = &evidence.growth;
    growth->moments = gos_scratch_alloc(&evidence.scratch, POINTS * sizeof(*growth->moments));
    growth->series = gos_scratch_alloc(&evidence.scratch, 4 * sizeof(*growth->series));
    growth->moment_count = POINTS;
    for (uint32_t i = 0; i < POINTS; i++)
        growth->moments[i] = (struct gos_moment){
            .allocated_count = 100 * i, .freed_count = story->freed_each * i, .age_ms = 100 * i};
    add_series(0, story->app, story->torch, story->pieces, 0);
    add_series(SITE_APP, story->app, nothing, nothing, story->oldest_ms);
    add_series(SITE_TORCH, story->torch, nothing, nothing, 0);
    add_series(SITE_PIECES, story->pieces, nothing, nothing, 0);
}

static void begin(const struct story *story, enum site by)
{
    struct scene scene = {.app = 13900, .torch = 500, .ask = 2048 * MIB, .by = by};
    scene_evidence(&scene, &evidence);
    add_growth(story);
}

static int release(void **state)
{
    (void)state;
    gos_scratch_release(&evidence.scratch);
    memset(&evidence, 0, sizeof(evidence));
    return 0;
}

static void each_story_has_its_kind_of_growth(void **state)
{
    (void)state;
    for (size_t i = 0; i < STORY_COUNT; i++) {
        struct gos_leak leak;
        begin(&stories[i], SITE_PIECES);
        gos_leak_find(&evidence, 0, 1000 * MIB, &leak);
        if (leak.kind != stories[i].kind)
            fail_msg("%s: kind %d", stories[i].name, (int)leak.kind);
        assert_true((leak.site != NULL) == (leak.kind != GOS_GROWTH_NONE));
        if (leak.kind == GOS_GROWTH_LEAK || leak.kind == GOS_GROWTH_UNFREED)
            assert_int_equal(leak.site->site, SITE_APP);
        gos_scratch_release(&evidence.scratch);
    }
}

static void only_a_leak_gets_the_verdict(void **state)
{
    (void)state;
    for (size_t i = 0; i < STORY_COUNT; i++) {
        begin(&stories[i], SITE_PIECES);
        gos_diagnose(&evidence, &diagnosis);
        bool is_leak = stories[i].kind == GOS_GROWTH_LEAK;
        if ((diagnosis.verdict.code == GOS_VERDICT_LEAK) != is_leak)
            fail_msg("%s: %s", stories[i].name, gos_verdict_code(diagnosis.verdict.code));
        if (!is_leak)
            assert_int_equal(diagnosis.verdict.code, GOS_VERDICT_EXHAUSTED_BY_PROCESS);
        gos_scratch_release(&evidence.scratch);
    }
}

static void the_verdict_names_line_course_pace_and_runner_up(void **state)
{
    (void)state;
    begin(&stories[0], SITE_PIECES);
    gos_diagnose(&evidence, &diagnosis);
    const struct gos_verdict *verdict = &diagnosis.verdict;
    assert_int_equal(verdict->confidence, GOS_CONFIDENCE_LIKELY);
    assert_string_equal(verdict->summary, "train.py:88 load_batch keeps more and more: it grew "
                                          "steadily from 0 B to 9.38 GiB over 2400 allocations.");
    assert_true(verdict_says(verdict, "3.91 GiB per 1000 allocations"));
    assert_true(verdict_says(verdict, "100 % of all growth"));
    assert_true(verdict_says(verdict, "pieces.py:7 fill, where it failed, is not the cause: it "
                                      "holds nothing"));
    assert_true(verdict_advises(verdict, "Look at train.py:88 load_batch"));
    assert_true(verdict->has_runner_up);
    assert_int_equal(verdict->runner_up, GOS_VERDICT_EXHAUSTED_BY_PROCESS);
}

static void a_leak_that_fails_itself_is_not_exonerated(void **state)
{
    (void)state;
    begin(&stories[0], SITE_APP);
    gos_diagnose(&evidence, &diagnosis);
    assert_int_equal(diagnosis.verdict.code, GOS_VERDICT_LEAK);
    assert_false(verdict_says(&diagnosis.verdict, "not the cause"));
}

static void a_victim_that_grows_too_is_not_exonerated(void **state)
{
    (void)state;
    begin(&stories[3], SITE_TORCH);
    gos_diagnose(&evidence, &diagnosis);
    assert_int_equal(diagnosis.verdict.code, GOS_VERDICT_LEAK);
    assert_false(verdict_says(&diagnosis.verdict, "not the cause"));
}

static void growth_without_a_leak_is_said(void **state)
{
    (void)state;
    begin(&stories[4], SITE_PIECES);
    gos_diagnose(&evidence, &diagnosis);
    assert_true(verdict_says(&diagnosis.verdict, "loads more than fits, or it leaks"));
    gos_scratch_release(&evidence.scratch);
    begin(&stories[5], SITE_PIECES);
    gos_diagnose(&evidence, &diagnosis);
    assert_true(verdict_says(&diagnosis.verdict, "by many lines together"));
    gos_scratch_release(&evidence.scratch);
    begin(&stories[7], SITE_PIECES);
    gos_diagnose(&evidence, &diagnosis);
    assert_false(verdict_says(&diagnosis.verdict, "grew"));
}

/* What the request misses is there, unused: that can be helped at once. */
static void unused_memory_comes_before_a_leak(void **state)
{
    (void)state;
    struct scene scene = {.app = 9600, .pool_pending = 4800, .ask = 2048 * MIB, .by = SITE_PIECES};
    scene_evidence(&scene, &evidence);
    add_growth(&stories[0]);
    gos_diagnose(&evidence, &diagnosis);
    assert_int_equal(diagnosis.verdict.code, GOS_VERDICT_PENDING_FREE);
}

static void growth_of_a_cache_is_no_leak_for_another_requester(void **state)
{
    (void)state;
    struct scene scene = {.app = 100, .torch = 14800, .ask = 2048 * MIB, .by = SITE_NCCL};
    scene_evidence(&scene, &evidence);
    struct story story = stories[0];
    story.torch = steady;
    story.app = comes_and_goes;
    add_growth(&story);
    gos_diagnose(&evidence, &diagnosis);
    assert_int_equal(diagnosis.verdict.code, GOS_VERDICT_CACHE_HELD);
    evidence.request.site = SITE_TORCH;
    gos_diagnose(&evidence, &diagnosis);
    assert_int_equal(diagnosis.verdict.code, GOS_VERDICT_LEAK);
}

/* The same memory, held by one line that two callers reach. */
static void begin_ways(course *training, course *evaluation, course *uses, enum site by)
{
    struct scene scene = {.app = 14400, .ask = 2048 * MIB, .by = by};
    struct story story = {.freed_each = 50};
    scene_evidence(&scene, &evidence);
    story.app = story.torch = story.pieces = nothing;
    add_growth(&story);
    evidence.growth.series_count = 0;
    add_series(0, training, evaluation, uses, 0);
    add_series(SITE_KEEPS_IN_TRAINING, training, nothing, nothing, 100);
    add_series(SITE_KEEPS_IN_EVALUATION, evaluation, nothing, nothing, 0);
    add_series(SITE_USES, uses, nothing, nothing, 2300);
    gos_diagnose(&evidence, &diagnosis);
}

static void one_line_that_two_callers_reach_is_one(void **state)
{
    (void)state;
    begin_ways(steady, steady, comes_and_goes, SITE_USES);
    const struct gos_verdict *verdict = &diagnosis.verdict;
    assert_int_equal(verdict->code, GOS_VERDICT_LEAK);
    assert_string_equal(verdict->summary,
                        "alloc.py:12 allocate <- model.py:3 keeps keeps more and more: it grew "
                        "steadily from 0 B to 18.75 GiB over 2400 allocations.");
    assert_true(verdict_says(verdict, "reached by 2 different stacks"));
    assert_true(verdict_says(verdict, "alloc.py:12 allocate, where it failed, is not the cause"));
    assert_true(verdict_advises(verdict, "Look at alloc.py:12 allocate <- model.py:3 keeps:"));
}

/* It is named alike where memory that lies idle would do for now. */
static void line_of_two_callers_is_named_beside_an_idle_pool(void **state)
{
    (void)state;
    begin_ways(steady, steady, comes_and_goes, SITE_PIECES);
    struct gos_growth growth = evidence.growth;
    struct scene scene = {.app = 12400, .pool2_idle = 2000, .ask = 2048 * MIB, .by = SITE_PIECES};
    struct gos_evidence before = evidence;
    scene_evidence(&scene, &evidence);
    evidence.growth = growth;
    gos_diagnose(&evidence, &diagnosis);
    assert_int_equal(diagnosis.verdict.code, GOS_VERDICT_CACHE_HELD);
    assert_true(verdict_says(&diagnosis.verdict,
                             "alloc.py:12 allocate <- model.py:3 keeps keeps more and more"));
    assert_true(verdict_advises(&diagnosis.verdict,
                                "It will not last: alloc.py:12 allocate <- model.py:3 keeps"));
    gos_scratch_release(&before.scratch);
}

static void ways_of_which_each_alone_is_no_trend_are_added_up(void **state)
{
    (void)state;
    begin_ways(in_even_parts, in_odd_parts, nothing, SITE_KEEPS_IN_TRAINING);
    assert_int_equal(diagnosis.verdict.code, GOS_VERDICT_LEAK);
    assert_false(verdict_says(&diagnosis.verdict, "not the cause"));
}

/* What comes and goes there shows that it is a function that all memory comes through. */
static void function_that_all_comes_through_is_not_accused_for_one_caller(void **state)
{
    (void)state;
    begin_ways(steady, comes_and_goes, steady, SITE_USES);
    assert_int_equal(diagnosis.verdict.code, GOS_VERDICT_EXHAUSTED_BY_PROCESS);
    assert_true(verdict_says(&diagnosis.verdict, "by many lines together"));
    assert_true(
        verdict_says(&diagnosis.verdict, "Most by alloc.py:12 allocate <- model.py:3 keeps"));
}

static void stacks_that_read_the_same_are_not_called_many_lines(void **state)
{
    (void)state;
    begin_ways(steady, steady, nothing, SITE_USES);
    evidence.growth.series[1].oldest_ms = evidence.growth.series[2].oldest_ms = 2300;
    evidence.request.site = SITE_NCCL;
    gos_diagnose(&evidence, &diagnosis);
    assert_int_equal(diagnosis.verdict.code, GOS_VERDICT_EXHAUSTED_BY_PROCESS);
    assert_true(verdict_says(&diagnosis.verdict, "Live memory grew"));
    assert_false(verdict_says(&diagnosis.verdict, "not a leak of one line"));
}

static void without_samples_nothing_is_said(void **state)
{
    (void)state;
    struct scene scene = {.app = 13900, .torch = 500, .ask = 2048 * MIB, .by = SITE_APP};
    scene_evidence(&scene, &evidence);
    gos_diagnose(&evidence, &diagnosis);
    assert_int_equal(diagnosis.verdict.code, GOS_VERDICT_EXHAUSTED_BY_PROCESS);
    assert_false(verdict_says(&diagnosis.verdict, "grew"));
}

#define TEST(name) cmocka_unit_test_teardown(name, release)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_story_has_its_kind_of_growth),
        TEST(only_a_leak_gets_the_verdict),
        TEST(the_verdict_names_line_course_pace_and_runner_up),
        TEST(a_leak_that_fails_itself_is_not_exonerated),
        TEST(a_victim_that_grows_too_is_not_exonerated),
        TEST(growth_without_a_leak_is_said),
        TEST(unused_memory_comes_before_a_leak),
        TEST(growth_of_a_cache_is_no_leak_for_another_requester),
        TEST(one_line_that_two_callers_reach_is_one),
        TEST(line_of_two_callers_is_named_beside_an_idle_pool),
        TEST(ways_of_which_each_alone_is_no_trend_are_added_up),
        TEST(function_that_all_comes_through_is_not_accused_for_one_caller),
        TEST(stacks_that_read_the_same_are_not_called_many_lines),
        TEST(without_samples_nothing_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
