/* A limited device is diagnosed as the smaller one that it acts as; an injection as itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "diagnose_fixture.h"

/* What the limit leaves free is as in the scene; the rest of a device twice the size is withheld.
 */
static void limit(struct gos_evidence *evidence)
{
    struct gos_device_evidence *device = &evidence->devices[0];
    uint64_t small = device->driver_total_bytes;

    device->limit_bytes = small;
    device->withheld_bytes = small;
    device->driver_total_bytes += small;
    if (device->nvml_status == 0) {
        device->nvml_total_bytes += small;
        device->nvml_free_bytes += small;
    }
    evidence->request.refusal = GOS_REFUSAL_LIMIT;
}

static const struct scene scenes[] = {
    {.name = "own memory", .ask = 8192 * MIB, .app = 12288},
    {.name = "pieces", .ask = 4 * MIB, .app = 11776, .pieces = 2048},
    {.name = "pending", .ask = 8192 * MIB, .pool_pending = 12288, .pending_done = true},
    {.name = "idle in a pool", .ask = 8192 * MIB, .pool2_idle = 12288},
    {.name = "too large", .ask = 20 * GIB, .app = 1024},
    {.name = "too large with the context", .ask = 16200 * MIB, .app = 512},
    {.name = "torch", .ask = 4096 * MIB, .torch = 15360, .by = SITE_NCCL},
    {.name = "nobody listed", .ask = 8192 * MIB, .app = 12288, .view = VIEW_NOT_LISTED},
    {.name = "no NVML", .ask = 8192 * MIB, .app = 12288, .view = VIEW_NONE},
    {.name = "of unknown size", .unsized = true, .kind = GOS_KIND_NONE, .app = 15870},
};

static void verdict_is_that_of_the_smaller_device(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++) {
        static struct gos_evidence small, limited;
        static struct gos_diagnosis of_small, of_limited;

        scene_evidence(&scenes[i], &small);
        scene_evidence(&scenes[i], &limited);
        limit(&limited);
        gos_diagnose(&small, &of_small);
        gos_diagnose(&limited, &of_limited);
        if (of_small.verdict.code != of_limited.verdict.code)
            fail_msg("%s: %s instead of %s", scenes[i].name,
                     gos_verdict_code(of_limited.verdict.code),
                     gos_verdict_code(of_small.verdict.code));
        assert_int_equal(of_small.verdict.confidence, of_limited.verdict.confidence);
        assert_string_equal(of_small.verdict.summary, of_limited.verdict.summary);
        assert_int_equal(of_small.verdict.short_bytes, of_limited.verdict.short_bytes);
        assert_int_equal(of_small.verdict.has_runner_up, of_limited.verdict.has_runner_up);
        gos_scratch_release(&small.scratch);
        gos_scratch_release(&limited.scratch);
    }
}

static void ledger_adds_up_to_the_real_device(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++) {
        static struct gos_evidence evidence;
        static struct gos_diagnosis diagnosis;
        const struct gos_ledger *ledger = &diagnosis.ledgers[0];
        int64_t sum = 0;

        scene_evidence(&scenes[i], &evidence);
        limit(&evidence);
        gos_diagnose(&evidence, &diagnosis);
        for (int line = 0; line < GOS_LEDGER_COUNT; line++)
            sum += ledger->lines[line].bytes;
        assert_int_equal(sum, (int64_t)ledger->total_bytes);
        assert_true(ledger->total_bytes >= 2 * 16384 * MIB);
        assert_int_equal(ledger->lines[GOS_LEDGER_WITHHELD].bytes, 16384 * MIB);
        assert_false(gos_ledger_is_own(GOS_LEDGER_WITHHELD));
        gos_scratch_release(&evidence.scratch);
    }
}

/* Neighbours take nothing from a limit that is this process' own. */
static void others_are_not_to_blame_for_the_limit(void **state)
{
    static const struct scene scene = {
        .name = "others", .ask = 8192 * MIB, .app = 1024, .others = 10240};
    static struct gos_evidence evidence;
    static struct gos_diagnosis diagnosis;

    (void)state;
    scene_evidence(&scene, &evidence);
    gos_diagnose(&evidence, &diagnosis);
    assert_int_equal(diagnosis.verdict.code, GOS_VERDICT_EXHAUSTED_BY_OTHERS);
    evidence.devices[0].limit_bytes = 4096 * MIB;
    evidence.request.refusal = GOS_REFUSAL_LIMIT;
    evidence.request.bytes = 3072 * MIB;
    evidence.devices[0].withheld_bytes = evidence.devices[0].driver_free_bytes - 2560 * MIB;
    evidence.devices[0].driver_free_bytes = 2560 * MIB;
    gos_diagnose(&evidence, &diagnosis);
    assert_int_not_equal(diagnosis.verdict.code, GOS_VERDICT_EXHAUSTED_BY_OTHERS);
    gos_scratch_release(&evidence.scratch);
}

static void limit_without_any_other_reason_is_a_policy_limit(void **state)
{
    static const struct scene scene = {.name = "room", .ask = 8 * MIB, .app = 1024};
    static struct gos_evidence evidence;
    static struct gos_diagnosis diagnosis;

    (void)state;
    scene_evidence(&scene, &evidence);
    limit(&evidence);
    gos_diagnose(&evidence, &diagnosis);
    assert_int_equal(diagnosis.verdict.code, GOS_VERDICT_POLICY_LIMIT);
    assert_true(verdict_says(&diagnosis.verdict, "GPUOOMSHIM_LIMIT refused"));
    assert_true(verdict_advises(&diagnosis.verdict, "Raise or unset GPUOOMSHIM_LIMIT"));
    gos_scratch_release(&evidence.scratch);
}

static void injection_is_never_taken_for_anything_else(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++) {
        static struct gos_evidence evidence;
        static struct gos_diagnosis diagnosis;

        scene_evidence(&scenes[i], &evidence);
        evidence.request.refusal = GOS_REFUSAL_INJECTED;
        gos_diagnose(&evidence, &diagnosis);
        assert_int_equal(diagnosis.verdict.code, GOS_VERDICT_INJECTED);
        assert_int_equal(diagnosis.verdict.confidence, GOS_CONFIDENCE_PROVEN);
        assert_true(verdict_says(&diagnosis.verdict, "the driver was not asked"));
        gos_scratch_release(&evidence.scratch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdict_is_that_of_the_smaller_device),
        cmocka_unit_test(ledger_adds_up_to_the_real_device),
        cmocka_unit_test(others_are_not_to_blame_for_the_limit),
        cmocka_unit_test(limit_without_any_other_reason_is_a_policy_limit),
        cmocka_unit_test(injection_is_never_taken_for_anything_else),
    };

    return cmocka_run_group_tests_name("rehearsals in a diagnosis", tests, NULL, NULL);
}
