/* What evidence of another time, or with contradictions, may still prove. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "diagnose_fixture.h"

static struct gos_evidence evidence;
static struct gos_diagnosis diagnosis;

static const struct gos_verdict *tell(const struct scene *scene, bool is_of_earlier)
{
    scene_evidence(scene, &evidence);
    evidence.told_wall_ns = 1;
    evidence.is_of_earlier = is_of_earlier;
    gos_diagnose(&evidence, &diagnosis);
    return &diagnosis.verdict;
}

static int stop(void **state)
{
    (void)state;
    gos_scratch_release(&evidence.scratch);
    return 0;
}

static const struct scene full = {
    .by = SITE_APP, .kind = GOS_KIND_DEVICE, .app = 12288, .ask = 6 * GIB};

static void memory_of_the_failure_proves(void **state)
{
    (void)state;
    const struct gos_verdict *verdict = tell(&full, false);
    assert_int_equal(verdict->code, GOS_VERDICT_EXHAUSTED_BY_PROCESS);
    assert_int_equal(verdict->confidence, GOS_CONFIDENCE_PROVEN);
}

static void memory_of_an_earlier_refusal_proves_nothing(void **state)
{
    (void)state;
    const struct gos_verdict *verdict = tell(&full, true);
    assert_int_equal(verdict->code, GOS_VERDICT_EXHAUSTED_BY_PROCESS);
    assert_int_equal(verdict->confidence, GOS_CONFIDENCE_LIKELY);
    assert_true(verdict_says(verdict, "at another moment"));
}

static void host_of_the_exit_proves_nothing_whatever_the_memory_is_of(void **state)
{
    (void)state;
    static const struct scene short_host = {
        .by = SITE_APP, .kind = GOS_KIND_MANAGED, .ask = 2 * GIB, .address_room = 64};
    scene_evidence(&short_host, &evidence);
    gos_diagnose(&evidence, &diagnosis);
    assert_int_equal(diagnosis.verdict.code, GOS_VERDICT_HOST_LIMIT);
    assert_int_equal(diagnosis.verdict.confidence, GOS_CONFIDENCE_PROVEN);
    gos_scratch_release(&evidence.scratch);
    assert_int_equal(tell(&short_host, false)->confidence, GOS_CONFIDENCE_LIKELY);
}

static void size_that_is_none_stays_proven(void **state)
{
    (void)state;
    static const struct scene absurd = {
        .by = SITE_APP, .kind = GOS_KIND_DEVICE, .ask = UINT64_MAX - 4095};
    const struct gos_verdict *verdict = tell(&absurd, true);
    assert_int_equal(verdict->code, GOS_VERDICT_REQUEST_TOO_LARGE);
    assert_int_equal(verdict->confidence, GOS_CONFIDENCE_PROVEN);
}

static void free_memory_of_an_earlier_refusal_is_not_called_free_now(void **state)
{
    (void)state;
    static const struct scene empty = {.by = SITE_APP, .kind = GOS_KIND_DEVICE, .ask = 2 * GIB};
    const struct gos_verdict *verdict = tell(&empty, true);
    assert_int_equal(verdict->code, GOS_VERDICT_UNEXPLAINED);
    assert_true(verdict_says(verdict, "looked at only at an earlier refusal"));
    assert_true(verdict_advises(verdict, "gpuoomshim_snapshot"));
    assert_false(verdict_advises(verdict, "Run the same again"));
}

static void late_word_of_a_framework_leaves_nothing_proven(void **state)
{
    (void)state;
    static const struct scene neighbours = {
        .by = SITE_NCCL, .torch = 1000, .torch_unused = 64, .others = 12000, .ask = 6 * GIB};
    for (int is_late = 0; is_late < 2; is_late++) {
        scene_evidence(&neighbours, &evidence);
        evidence.frameworks[0].is_late = is_late;
        gos_diagnose(&evidence, &diagnosis);
        assert_int_equal(diagnosis.verdict.code, GOS_VERDICT_EXHAUSTED_BY_OTHERS);
        assert_int_equal(diagnosis.verdict.confidence,
                         is_late ? GOS_CONFIDENCE_LIKELY : GOS_CONFIDENCE_PROVEN);
        assert_int_equal(verdict_says(&diagnosis.verdict, "torch was asked only when"), is_late);
        if (!is_late)
            gos_scratch_release(&evidence.scratch);
    }
}

/* By NVML the process has less than what is live in it, or the device has less than its owners. */
static void numbers_that_contradict_each_other_prove_nothing(void **state)
{
    (void)state;
    static const struct scene scenes[] = {
        {.by = SITE_APP, .app = 8000, .others = 7000, .ask = 8 * GIB},
        {.by = SITE_APP, .app = 12000, .ask = 8 * GIB},
        {.by = SITE_APP, .app = 4000, .pool_pending = 10000, .ask = 4 * GIB},
        {.by = SITE_APP, .app = 4000, .pool2_idle = 10000, .ask = 4 * GIB},
        {.by = SITE_NCCL, .torch = 15360, .torch_unused = 12288, .ask = GIB},
    };
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++) {
        scene_evidence(&scenes[i], &evidence);
        evidence.devices[0].own_bytes -= 2 * MIB; /* which the context's line makes up for */
        gos_diagnose(&evidence, &diagnosis);
        enum gos_verdict_code code = diagnosis.verdict.code;
        assert_int_equal(diagnosis.verdict.confidence, GOS_CONFIDENCE_PROVEN);
        evidence.devices[0].own_bytes -= GIB;
        gos_diagnose(&evidence, &diagnosis);
        assert_int_equal(diagnosis.verdict.code, code);
        assert_int_equal(diagnosis.verdict.confidence, GOS_CONFIDENCE_LIKELY);
        if (i + 1 < sizeof scenes / sizeof scenes[0])
            gos_scratch_release(&evidence.scratch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(memory_of_the_failure_proves, stop),
        cmocka_unit_test_teardown(memory_of_an_earlier_refusal_proves_nothing, stop),
        cmocka_unit_test_teardown(host_of_the_exit_proves_nothing_whatever_the_memory_is_of, stop),
        cmocka_unit_test_teardown(size_that_is_none_stays_proven, stop),
        cmocka_unit_test_teardown(free_memory_of_an_earlier_refusal_is_not_called_free_now, stop),
        cmocka_unit_test_teardown(late_word_of_a_framework_leaves_nothing_proven, stop),
        cmocka_unit_test_teardown(numbers_that_contradict_each_other_prove_nothing, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
