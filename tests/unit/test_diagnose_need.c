/* What a call that is no allocation needed, and what of a capture is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "diagnose_fixture.h"

static struct gos_evidence evidence;
static struct gos_diagnosis diagnosis;

static const struct scene full = {
    .by = SITE_APP, .kind = GOS_KIND_NONE, .unsized = true, .app = 15000};

static const struct gos_verdict *diagnose(const char *entry, struct gos_need need)
{
    scene_evidence(&full, &evidence);
    evidence.request.entry = evidence.request.api = entry;
    evidence.request.need = need;
    gos_diagnose(&evidence, &diagnosis);
    return &diagnosis.verdict;
}

static int stop(void **state)
{
    (void)state;
    gos_scratch_release(&evidence.scratch);
    return 0;
}

static void size_that_was_set_is_what_it_is_short_by(void **state)
{
    (void)state;
    const struct gos_verdict *verdict =
        diagnose("cuCtxSetLimit", (struct gos_need){.what = "the heap", .bytes = 2 * GIB});
    assert_string_equal(diagnosis.need.words, "the heap: 2.00 GiB");
    assert_int_equal(diagnosis.need.bytes, 2 * GIB);
    assert_int_equal(verdict->short_bytes, (2048 - (15872 - 15000)) * MIB);
    assert_int_equal(verdict->confidence, GOS_CONFIDENCE_PROVEN);
    assert_true(verdict_advises(verdict, "lower limit"));
}

/* Part of it may have been there before. */
static void size_for_all_threads_proves_nothing(void **state)
{
    (void)state;
    const struct gos_verdict *verdict =
        diagnose("cuLaunchKernel",
                 (struct gos_need){.what = "local memory", .bytes = 8192, .count = 270336});
    assert_int_equal(diagnosis.need.bytes, 8192ull * 270336);
    assert_int_equal(verdict->code, GOS_VERDICT_EXHAUSTED_BY_PROCESS);
    assert_int_equal(verdict->confidence, GOS_CONFIDENCE_LIKELY);
    assert_int_equal(verdict->short_bytes, 0);
    assert_true(verdict_advises(verdict, "less local memory"));
}

static void size_for_all_threads_is_not_said_to_be_asked_for(void **state)
{
    (void)state;
    const struct gos_verdict *verdict =
        diagnose("cuCtxSetLimit", (struct gos_need){.what = "stacks", .bytes = GIB, .count = 64});
    assert_int_not_equal(verdict->code, GOS_VERDICT_REQUEST_TOO_LARGE);
}

static void size_beyond_all_numbers_does_not_wrap(void **state)
{
    (void)state;
    diagnose("cuCtxSetLimit",
             (struct gos_need){.what = "stacks", .bytes = 1ull << 60, .count = 1 << 20});
    assert_true(diagnosis.need.bytes == UINT64_MAX);
}

static void context_costs_what_the_others_take(void **state)
{
    (void)state;
    scene_evidence(&full, &evidence);
    evidence.request.entry = "cuCtxCreate_v4";
    evidence.devices[0].context_count = 1;
    gos_diagnose(&evidence, &diagnosis);
    assert_string_equal(diagnosis.need.words,
                        "a context (about 512.0 MiB, as the one here takes with its modules)");
    evidence.devices[0].own_bytes_known = false;
    gos_diagnose(&evidence, &diagnosis);
    assert_string_equal(diagnosis.need.words, "a context (some hundred MiB)");
}

static void only_out_of_memory_of_what_is_no_allocation_needs_words(void **state)
{
    (void)state;
    struct scene scene = {.by = SITE_APP, .ask = GIB};
    scene_evidence(&scene, &evidence);
    gos_diagnose(&evidence, &diagnosis);
    assert_null(diagnosis.need.words);
    gos_scratch_release(&evidence.scratch);
    scene_evidence(&full, &evidence);
    evidence.request.result = 700;
    gos_diagnose(&evidence, &diagnosis);
    assert_null(diagnosis.need.words);
}

static const struct gos_verdict *diagnose_901(struct gos_event *events, size_t count,
                                              uint64_t began_wall_ns)
{
    static const struct scene scene = {
        .by = SITE_APP, .ask = MIB, .result = 901, .capture = GOS_CAPTURE_THIS_STREAM};
    scene_evidence(&scene, &evidence);
    evidence.request.tid = 7;
    evidence.captured = (struct gos_capture_origin){
        .stream = 0x5000, .began_wall_ns = began_wall_ns, .tid = 8, .site = SITE_PIECES};
    evidence.events = events;
    evidence.event_count = count;
    gos_diagnose(&evidence, &diagnosis);
    return &diagnosis.verdict;
}

static void what_invalidated_a_capture_is_named_with_the_line_that_began_it(void **state)
{
    (void)state;
    struct gos_event events[] = {
        {.what = "cuMemAlloc_v2", .result = 900, .wall_ns = 5, .tid = 9},
        {.what = "cuMemAllocAsync", .result = 901, .wall_ns = 6, .tid = 7}};
    const struct gos_verdict *verdict = diagnose_901(events, 2, 4);
    assert_true(verdict_says(verdict, "the capture was begun at pieces.py:7"));
    assert_true(verdict_says(verdict, "another thread began it"));
    assert_true(verdict_says(verdict, "invalidated by cuMemAlloc_v2 of another thread"));
}

static void error_of_an_earlier_capture_did_not_invalidate_this_one(void **state)
{
    (void)state;
    struct gos_event events[] = {{.what = "cuMemAlloc_v2", .result = 900, .wall_ns = 5, .tid = 9}};
    const struct gos_verdict *verdict = diagnose_901(events, 1, 6);
    assert_true(verdict_says(verdict, "by a call that was not seen here"));
    assert_false(verdict_says(verdict, "cuMemAlloc_v2 of"));
}

#define TEST(name) cmocka_unit_test_teardown(name, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(size_that_was_set_is_what_it_is_short_by),
        TEST(size_for_all_threads_proves_nothing),
        TEST(size_for_all_threads_is_not_said_to_be_asked_for),
        TEST(size_beyond_all_numbers_does_not_wrap),
        TEST(context_costs_what_the_others_take),
        TEST(only_out_of_memory_of_what_is_no_allocation_needs_words),
        TEST(what_invalidated_a_capture_is_named_with_the_line_that_began_it),
        TEST(error_of_an_earlier_capture_did_not_invalidate_this_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
