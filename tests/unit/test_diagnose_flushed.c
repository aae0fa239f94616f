/* What a flush that helped makes of the verdict. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "../../src/diagnose/flushed.h"
#include "diagnose_fixture.h"

static struct gos_evidence evidence;
static struct gos_diagnosis diagnosis;

static void diagnose(const struct scene *scene)
{
    scene_evidence(scene, &evidence);
    gos_diagnose(&evidence, &diagnosis);
}

static void guess_becomes_proof_when_enough_came_back(void **state)
{
    const struct scene scene = {.torch = 15360, .ask = 1024 * MIB, .by = SITE_NCCL};

    (void)state;
    diagnose(&scene);
    assert_int_equal(diagnosis.verdict.confidence, GOS_CONFIDENCE_POSSIBLE);
    gos_diagnose_flushed(&evidence, &diagnosis, "torch", 12 * GIB);
    const struct gos_verdict *verdict = &diagnosis.verdict;
    assert_int_equal(verdict->code, GOS_VERDICT_CACHE_HELD);
    assert_int_equal(verdict->confidence, GOS_CONFIDENCE_PROVEN);
    assert_string_equal(verdict->holder, "torch");
    assert_int_equal(verdict->holder_bytes, 15 * GIB);
    assert_true(verdict_says(verdict, "torch kept 12.00 GiB"));
    assert_true(verdict_says(verdict, "short by 512.0 MiB"));
    assert_true(verdict_advises(verdict, "torch.cuda.empty_cache()"));
    gos_scratch_release(&evidence.scratch);
}

static void less_than_was_missing_proves_nothing(void **state)
{
    const struct scene scene = {.torch = 15360, .ask = 1024 * MIB, .by = SITE_NCCL};

    (void)state;
    diagnose(&scene);
    gos_diagnose_flushed(&evidence, &diagnosis, "torch", 100 * MIB);
    assert_int_equal(diagnosis.verdict.confidence, GOS_CONFIDENCE_LIKELY);
    gos_scratch_release(&evidence.scratch);
}

static void what_came_back_proves_nothing_where_nothing_was_missing(void **state)
{
    const struct scene scene = {.torch = 8192, .ask = 1024 * MIB, .by = SITE_NCCL};

    (void)state;
    diagnose(&scene);
    gos_diagnose_flushed(&evidence, &diagnosis, "torch", 2 * MIB);
    assert_int_equal(diagnosis.verdict.confidence, GOS_CONFIDENCE_LIKELY);
    gos_scratch_release(&evidence.scratch);
}

static void what_was_thought_before_comes_second(void **state)
{
    const struct scene scene = {.app = 15000, .ask = 8192 * MIB, .by = SITE_APP};

    (void)state;
    diagnose(&scene);
    enum gos_verdict_code before = diagnosis.verdict.code;
    assert_int_not_equal(before, GOS_VERDICT_CACHE_HELD);
    gos_diagnose_flushed(&evidence, &diagnosis, "my-cache", 10 * GIB);
    assert_int_equal(diagnosis.verdict.code, GOS_VERDICT_CACHE_HELD);
    assert_true(diagnosis.verdict.has_runner_up);
    assert_int_equal(diagnosis.verdict.runner_up, before);
    assert_string_equal(diagnosis.verdict.holder, "my-cache");
    assert_true(verdict_advises(&diagnosis.verdict, "my-cache"));
    gos_scratch_release(&evidence.scratch);
}

static void leak_beside_a_cache_that_helped_is_still_told(void **state)
{
    const struct scene scene = {
        .app = 12000, .course = COURSE_LEAK, .cupy = 3000, .ask = 2000 * MIB, .by = SITE_NCCL};

    (void)state;
    diagnose(&scene);
    gos_diagnose_flushed(&evidence, &diagnosis, "cupy", 3000 * MIB);
    const struct gos_verdict *verdict = &diagnosis.verdict;
    assert_int_equal(verdict->code, GOS_VERDICT_CACHE_HELD);
    assert_true(verdict_says(verdict, "train.py:88 load_batch keeps more and more"));
    assert_non_null(strstr(verdict->advice[1], "It will not last: train.py:88 load_batch"));
    gos_scratch_release(&evidence.scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guess_becomes_proof_when_enough_came_back),
        cmocka_unit_test(less_than_was_missing_proves_nothing),
        cmocka_unit_test(what_came_back_proves_nothing_where_nothing_was_missing),
        cmocka_unit_test(what_was_thought_before_comes_second),
        cmocka_unit_test(leak_beside_a_cache_that_helped_is_still_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
