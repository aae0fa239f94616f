/* What the steps of recovery make of the verdict. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "../../src/diagnose/revise.h"
#include "diagnose_fixture.h"

static struct gos_evidence evidence;
static struct gos_diagnosis diagnosis;

static void diagnose(const struct scene *scene)
{
    scene_evidence(scene, &evidence);
    gos_diagnose(&evidence, &diagnosis);
}

/* --- a flush that helped --- */

static void flushed(const char *giver, uint64_t bytes)
{
    const struct gos_step_record step = {.step = "flush",
                                         .result = "helped",
                                         .reason = giver,
                                         .freed_bytes = bytes,
                                         .giver = giver,
                                         .given_bytes = bytes};

    gos_diagnose_revise(&evidence, &diagnosis, &step, 1, true);
}

static void guess_becomes_proof_when_enough_came_back(void **state)
{
    const struct scene scene = {.torch = 15360, .ask = 1024 * MIB, .by = SITE_NCCL};

    (void)state;
    diagnose(&scene);
    assert_int_equal(diagnosis.verdict.confidence, GOS_CONFIDENCE_POSSIBLE);
    flushed("torch", 12 * GIB);
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
    flushed("torch", 100 * MIB);
    assert_int_equal(diagnosis.verdict.confidence, GOS_CONFIDENCE_LIKELY);
    gos_scratch_release(&evidence.scratch);
}

static void what_came_back_proves_nothing_where_nothing_was_missing(void **state)
{
    const struct scene scene = {.torch = 8192, .ask = 1024 * MIB, .by = SITE_NCCL};

    (void)state;
    diagnose(&scene);
    flushed("torch", 2 * MIB);
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
    flushed("my-cache", 10 * GIB);
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
    flushed("cupy", 3000 * MIB);
    const struct gos_verdict *verdict = &diagnosis.verdict;
    assert_int_equal(verdict->code, GOS_VERDICT_CACHE_HELD);
    assert_true(verdict_says(verdict, "train.py:88 load_batch keeps more and more"));
    assert_non_null(strstr(verdict->advice[1], "It will not last: train.py:88 load_batch"));
    gos_scratch_release(&evidence.scratch);
}

/* --- steps in vain --- */

struct vain {
    const char *name;
    struct scene scene;
    struct gos_step_record steps[3];
    enum gos_verdict_code before;
    enum gos_verdict_code after;
    enum gos_confidence confidence;
    const char *says; /* afterwards */
    const char *advises;
    const char *never_advises;
};

#define TRIED(name, back, ...)                                                                     \
    {                                                                                              \
        .step = name, .result = "no help", .freed_bytes = back, __VA_ARGS__                        \
    }
#define WHOLE .is_whole = true
#define ASKED(who) .asked = {who}, .asked_count = 1, .reason = who
#define PENDING .pool_pending = 10000, .app = 4000, .ask = 4096 * MIB, .by = SITE_NCCL
#define TORCH_IDLE .torch = 15360, .torch_unused = 12288, .ask = 1024 * MIB, .by = SITE_NCCL
#define TORCH_OPAQUE .torch = 14000, .ask = 3000 * MIB, .by = SITE_APP

static const struct vain vains[] = {
    /* sync */
    {"all streams done, nothing back: it is in pieces, not pending",
     {PENDING},
     {TRIED("sync", 0, WHOLE)},
     GOS_VERDICT_PENDING_FREE,
     GOS_VERDICT_FRAGMENTED,
     GOS_CONFIDENCE_LIKELY,
     .says = "waited for: nothing came back.",
     .never_advises = "Synchronize"},
    {"all streams done, some back, too little",
     {PENDING},
     {TRIED("sync", 2000 * MIB, WHOLE)},
     GOS_VERDICT_PENDING_FREE,
     GOS_VERDICT_FRAGMENTED,
     GOS_CONFIDENCE_LIKELY,
     .says = "1.95 GiB came back, too little.",
     .never_advises = "Synchronize"},
    {"all streams done, all of it back, and taken",
     {PENDING},
     {TRIED("sync", 10000 * MIB, WHOLE)},
     GOS_VERDICT_PENDING_FREE,
     GOS_VERDICT_EXHAUSTED_BY_PROCESS,
     GOS_CONFIDENCE_LIKELY,
     .says = "somebody else was quicker",
     .never_advises = "Synchronize"},
    {"a stream did not finish: what it frees is pending still",
     {PENDING},
     {{.step = "sync", .result = "timed out", .reason = "a stream did not finish in time"}},
     GOS_VERDICT_PENDING_FREE,
     GOS_VERDICT_PENDING_FREE,
     GOS_CONFIDENCE_PROVEN,
     .says = "(a stream did not finish in time): nothing came back.",
     .advises = "Synchronize"},
    {"one did, and another did not",
     {PENDING},
     {{.step = "sync", .result = "timed out", .freed_bytes = 1000 * MIB}},
     GOS_VERDICT_PENDING_FREE,
     GOS_VERDICT_PENDING_FREE,
     GOS_CONFIDENCE_PROVEN,
     .says = "8.79 GiB were freed in stream order",
     .advises = "Synchronize"},
    {"a stream could not be asked",
     {PENDING},
     {TRIED("sync", 0, .reason = "a stream was destroyed or captured meanwhile")},
     GOS_VERDICT_PENDING_FREE,
     GOS_VERDICT_PENDING_FREE,
     GOS_CONFIDENCE_PROVEN,
     .says = "captured meanwhile"},
    {"skipped is not in vain",
     {PENDING},
     {{.step = "sync", .result = "skipped", .reason = "not in GPUOOMSHIM_RETRY"}},
     GOS_VERDICT_PENDING_FREE,
     GOS_VERDICT_PENDING_FREE,
     GOS_CONFIDENCE_PROVEN,
     .advises = "Synchronize"},
    {"nor is what a capture stopped",
     {PENDING},
     {{.step = "sync", .result = "stopped"}},
     GOS_VERDICT_PENDING_FREE,
     GOS_VERDICT_PENDING_FREE,
     GOS_CONFIDENCE_PROVEN,
     .advises = "Synchronize"},
    /* trim */
    {"trimming brings nothing: the pools are pinned",
     {.pool2_idle = 10000, .app = 4000, .ask = 4096 * MIB, .by = SITE_NCCL},
     {TRIED("trim", 0, WHOLE)},
     GOS_VERDICT_CACHE_HELD,
     GOS_VERDICT_FRAGMENTED,
     GOS_CONFIDENCE_LIKELY,
     .says = "that trimming did not give back",
     .never_advises = "TrimTo"},
    {"trimming brings all, and it is taken",
     {.pool2_idle = 10000, .app = 4000, .ask = 4096 * MIB, .by = SITE_NCCL},
     {TRIED("trim", 10000 * MIB, WHOLE)},
     GOS_VERDICT_CACHE_HELD,
     GOS_VERDICT_EXHAUSTED_BY_PROCESS,
     GOS_CONFIDENCE_LIKELY,
     .says = "3.91 GiB in use",
     .never_advises = "TrimTo"},
    {"a pool of its own that is trimmed in vain",
     {.pool_idle = 5000,
      .pool_live = 9000,
      .ask = 3000 * MIB,
      .kind = GOS_KIND_POOL,
      .by = SITE_APP},
     {TRIED("trim", 0, WHOLE)},
     GOS_VERDICT_FRAGMENTED,
     GOS_VERDICT_FRAGMENTED,
     GOS_CONFIDENCE_LIKELY,
     .advises = "large buffers first",
     .never_advises = "TrimTo"},
    {"idle graph memory that trimming does not bring back",
     {.graph_idle = 9000, .app = 6000, .ask = 4000 * MIB, .by = SITE_APP},
     {TRIED("trim", 0, WHOLE)},
     GOS_VERDICT_CACHE_HELD,
     GOS_VERDICT_FRAGMENTED,
     GOS_CONFIDENCE_LIKELY,
     .never_advises = "Trim"},
    /* flush */
    {"torch gave nothing of what it said",
     {TORCH_IDLE},
     {TRIED("flush", 0, ASKED("torch"))},
     GOS_VERDICT_CACHE_HELD,
     GOS_VERDICT_FRAGMENTED,
     GOS_CONFIDENCE_LIKELY,
     .says = "gave back nothing when it was asked to",
     .never_advises = "empty_cache"},
    {"torch gave too little",
     {TORCH_IDLE},
     {TRIED("flush", 100 * MIB, ASKED("torch"))},
     GOS_VERDICT_CACHE_HELD,
     GOS_VERDICT_FRAGMENTED,
     GOS_CONFIDENCE_LIKELY,
     .says = "gave back only 100.0 MiB",
     .never_advises = "empty_cache"},
    {"torch gave all, and somebody took it",
     {TORCH_IDLE},
     {TRIED("flush", 12288 * MIB, ASKED("torch"))},
     GOS_VERDICT_CACHE_HELD,
     GOS_VERDICT_EXHAUSTED_BY_PROCESS,
     GOS_CONFIDENCE_LIKELY,
     .says = "(torch): 12.00 GiB came back, and somebody else was quicker.",
     .never_advises = "empty_cache"},
    {"an opaque cache that was asked holds it for use",
     {TORCH_OPAQUE},
     {TRIED("flush", 0, ASKED("torch"))},
     GOS_VERDICT_CACHE_HELD,
     GOS_VERDICT_EXHAUSTED_BY_PROCESS,
     GOS_CONFIDENCE_LIKELY,
     .says = "give back what they do not use (torch): nothing came back.",
     .never_advises = "empty_cache"},
    {"somebody else was asked",
     {TORCH_OPAQUE},
     {TRIED("flush", 0, ASKED("my-cache"))},
     GOS_VERDICT_CACHE_HELD,
     GOS_VERDICT_CACHE_HELD,
     GOS_CONFIDENCE_POSSIBLE,
     .says = "(my-cache)",
     .advises = "empty_cache"},
    {"torch raised, so it has not said that it has nothing",
     {TORCH_OPAQUE},
     {TRIED("flush", 0, .reason = "torch raised RuntimeError")},
     GOS_VERDICT_CACHE_HELD,
     GOS_VERDICT_CACHE_HELD,
     GOS_CONFIDENCE_POSSIBLE,
     .says = "torch raised RuntimeError",
     .advises = "empty_cache"},
    {"torch did not answer",
     {TORCH_IDLE},
     {{.step = "flush", .result = "timed out", .reason = "torch did not answer in time"}},
     GOS_VERDICT_CACHE_HELD,
     GOS_VERDICT_CACHE_HELD,
     GOS_CONFIDENCE_PROVEN,
     .says = "torch did not answer in time",
     .advises = "empty_cache"},
    {"torch could not be asked inside its allocator",
     {TORCH_IDLE},
     {{.step = "flush",
       .result = "skipped",
       .reason = "the failing call is inside the framework's own allocator"}},
     GOS_VERDICT_CACHE_HELD,
     GOS_VERDICT_CACHE_HELD,
     GOS_CONFIDENCE_PROVEN,
     .advises = "empty_cache"},
    /* reserve, wait, fallback */
    {"others kept it through the wait",
     {.torch = 1000, .others = 12000, .ask = 6000 * MIB, .by = SITE_NCCL},
     {{.step = "wait", .result = "timed out", .reason = "other processes kept their memory"}},
     GOS_VERDICT_EXHAUSTED_BY_OTHERS,
     GOS_VERDICT_EXHAUSTED_BY_OTHERS,
     GOS_CONFIDENCE_PROVEN,
     .says = "Other processes were waited for (other processes kept their memory)"},
    {"the reserve was too little",
     {.app = 14000, .held = 500, .ask = 4000 * MIB, .by = SITE_APP},
     {TRIED("reserve", 500 * MIB)},
     GOS_VERDICT_EXHAUSTED_BY_PROCESS,
     GOS_VERDICT_EXHAUSTED_BY_PROCESS,
     GOS_CONFIDENCE_PROVEN,
     .says = "The reserve was given up: 500.0 MiB came back, too little."},
    {"other memory could not be had either",
     {.app = 14000, .ask = 4000 * MIB, .by = SITE_APP},
     {{.step = "fallback", .result = "error"}},
     GOS_VERDICT_EXHAUSTED_BY_PROCESS,
     GOS_VERDICT_EXHAUSTED_BY_PROCESS,
     GOS_CONFIDENCE_PROVEN,
     .says = "Other memory was tried: it could not be had."},
    /* several */
    {"what was pending was taken, and the cache comes up that was not asked",
     {.pool_pending = 4000, .torch = 11800, .ask = 3900 * MIB, .by = SITE_NCCL},
     {TRIED("sync", 4000 * MIB, WHOLE),
      TRIED("trim", 0, WHOLE),
      {.step = "flush", .result = "skipped", .reason = "not in GPUOOMSHIM_RETRY"}},
     GOS_VERDICT_PENDING_FREE,
     GOS_VERDICT_CACHE_HELD,
     GOS_CONFIDENCE_POSSIBLE,
     .says = "Idle pools were trimmed: nothing came back.",
     .advises = "empty_cache"},
    {"all of them in vain leave the process itself",
     {.pool_pending = 4000, .torch = 11800, .ask = 3900 * MIB, .by = SITE_NCCL},
     {TRIED("sync", 1000 * MIB, WHOLE), TRIED("trim", 3000 * MIB, WHOLE),
      TRIED("flush", 0, ASKED("torch"))},
     GOS_VERDICT_PENDING_FREE,
     GOS_VERDICT_EXHAUSTED_BY_PROCESS,
     GOS_CONFIDENCE_LIKELY,
     .says = "2.93 GiB came back, and somebody else was quicker.",
     .never_advises = "Synchronize"},
    {"a neighbour comes up when the cache has given what it could",
     {.torch = 7000, .others = 8000, .ask = 3000 * MIB, .by = SITE_APP},
     {TRIED("flush", 0, ASKED("torch"))},
     GOS_VERDICT_EXHAUSTED_BY_OTHERS,
     GOS_VERDICT_EXHAUSTED_BY_OTHERS,
     GOS_CONFIDENCE_PROVEN,
     .says = "(torch): nothing came back."},
};

static size_t step_count(const struct vain *vain)
{
    size_t count = 0;

    while (count < sizeof vain->steps / sizeof vain->steps[0] && vain->steps[count].step)
        count++;
    return count;
}

static void show(const struct vain *vain)
{
    const struct gos_verdict *verdict = &diagnosis.verdict;

    print_error("%s: %s (%s), %s\n", vain->name, gos_verdict_code(verdict->code),
                gos_confidence_code(verdict->confidence), verdict->summary);
    for (size_t i = 0; i < verdict->evidence_count; i++)
        print_error("  . %s\n", verdict->evidence[i]);
    for (size_t i = 0; i < verdict->advice_count; i++)
        print_error("  > %s\n", verdict->advice[i]);
}

static bool is_right(const struct vain *vain)
{
    const struct gos_verdict *verdict = &diagnosis.verdict;

    return verdict->code == vain->after && verdict->confidence == vain->confidence &&
           (!vain->says || verdict_says(verdict, vain->says)) &&
           (!vain->advises || verdict_advises(verdict, vain->advises)) &&
           (!vain->never_advises || !verdict_advises(verdict, vain->never_advises));
}

static void step_in_vain_leaves_what_is_left(void **state)
{
    unsigned wrong = 0;

    (void)state;
    for (size_t i = 0; i < sizeof vains / sizeof vains[0]; i++) {
        const struct vain *vain = &vains[i];
        diagnose(&vain->scene);
        bool was_right = diagnosis.verdict.code == vain->before;
        if (!was_right)
            show(vain);
        gos_diagnose_revise(&evidence, &diagnosis, vain->steps, step_count(vain), false);
        if (!is_right(vain))
            show(vain);
        wrong += !was_right || !is_right(vain);
        gos_scratch_release(&evidence.scratch);
    }
    assert_int_equal(wrong, 0);
}

/* Of all verdicts that a scene can have, none goes on to advise what was just done. */
static void what_was_tried_in_vain_is_never_advised(void **state)
{
    static const struct gos_step_record steps[] = {TRIED("sync", 0, WHOLE), TRIED("trim", 0, WHOLE),
                                                   TRIED("flush", 0, ASKED("torch"))};

    (void)state;
    for (size_t i = 0; i < sizeof vains / sizeof vains[0]; i++) {
        diagnose(&vains[i].scene);
        gos_diagnose_revise(&evidence, &diagnosis, steps, 3, false);
        assert_false(verdict_advises(&diagnosis.verdict, "ynchronize the stream"));
        assert_false(verdict_advises(&diagnosis.verdict, "TrimTo"));
        assert_false(verdict_advises(&diagnosis.verdict, "empty_cache"));
        assert_int_not_equal(diagnosis.verdict.code, GOS_VERDICT_PENDING_FREE);
        assert_int_not_equal(diagnosis.verdict.code, GOS_VERDICT_CACHE_HELD);
        assert_true(diagnosis.verdict.evidence_count >= 4);
        gos_scratch_release(&evidence.scratch);
    }
}

/* --- and one that helped --- */

static void steps_in_vain_before_the_one_that_helped_are_told(void **state)
{
    const struct scene scene = {PENDING};
    const struct gos_step_record steps[] = {
        TRIED("sync", 0, WHOLE),
        {.step = "fallback", .result = "helped", .reason = "managed memory"}};

    (void)state;
    diagnose(&scene);
    gos_diagnose_revise(&evidence, &diagnosis, steps, 2, true);
    assert_int_equal(diagnosis.verdict.code, GOS_VERDICT_FRAGMENTED);
    assert_true(verdict_says(&diagnosis.verdict, "waited for: nothing came back."));
    assert_false(verdict_says(&diagnosis.verdict, "Other memory was tried"));
    gos_scratch_release(&evidence.scratch);
}

static void pool_that_gave_what_waiting_did_not_is_what_held_it(void **state)
{
    const struct scene scene = {PENDING};
    const struct gos_step_record steps[] = {
        TRIED("sync", 0, WHOLE),
        {.step = "trim", .result = "helped", .freed_bytes = 10000 * MIB, WHOLE}};

    (void)state;
    diagnose(&scene);
    gos_diagnose_revise(&evidence, &diagnosis, steps, 2, true);
    assert_int_equal(diagnosis.verdict.code, GOS_VERDICT_CACHE_HELD);
    assert_true(verdict_says(&diagnosis.verdict, "keep 9.77 GiB that nobody uses"));
    assert_true(verdict_advises(&diagnosis.verdict, "cudaMemPoolTrimTo"));
    gos_scratch_release(&evidence.scratch);
}

static void sync_that_helps_at_once_leaves_the_verdict(void **state)
{
    const struct scene scene = {PENDING};
    const struct gos_step_record step = {
        .step = "sync", .result = "helped", .freed_bytes = 10000 * MIB, WHOLE};

    (void)state;
    diagnose(&scene);
    gos_diagnose_revise(&evidence, &diagnosis, &step, 1, true);
    assert_int_equal(diagnosis.verdict.code, GOS_VERDICT_PENDING_FREE);
    assert_int_equal(diagnosis.verdict.confidence, GOS_CONFIDENCE_PROVEN);
    assert_true(verdict_advises(&diagnosis.verdict, "Synchronize"));
    gos_scratch_release(&evidence.scratch);
}

static void that_nothing_could_help_is_not_proven_where_sync_helped(void **state)
{
    const struct scene scene = {.app = 15000, .ask = 8192 * MIB, .by = SITE_APP};
    const struct gos_step_record step = {
        .step = "sync", .result = "helped", .freed_bytes = 8192 * MIB, WHOLE};

    (void)state;
    diagnose(&scene);
    assert_int_equal(diagnosis.verdict.confidence, GOS_CONFIDENCE_PROVEN);
    gos_diagnose_revise(&evidence, &diagnosis, &step, 1, true);
    assert_int_equal(diagnosis.verdict.confidence, GOS_CONFIDENCE_LIKELY);
    assert_true(verdict_says(&diagnosis.verdict, "After sync there was room all the same."));
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
        cmocka_unit_test(step_in_vain_leaves_what_is_left),
        cmocka_unit_test(what_was_tried_in_vain_is_never_advised),
        cmocka_unit_test(steps_in_vain_before_the_one_that_helped_are_told),
        cmocka_unit_test(pool_that_gave_what_waiting_did_not_is_what_held_it),
        cmocka_unit_test(sync_that_helps_at_once_leaves_the_verdict),
        cmocka_unit_test(that_nothing_could_help_is_not_proven_where_sync_helped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
