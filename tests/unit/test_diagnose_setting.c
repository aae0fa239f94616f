/*
 * Advice against settings: each line that names a setting is given while the
 * setting is off, and never once it is on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../src/diagnose/advice.h"
#include "../../src/diagnose/setting.h"
#include "diagnose_fixture.h"

static struct gos_evidence evidence;
static struct gos_diagnosis diagnosis;

/* Valid until the next one. */
static const struct gos_verdict *diagnose(const struct scene *scene)
{
    gos_scratch_release(&evidence.scratch);
    scene_evidence(scene, &evidence);
    gos_diagnose(&evidence, &diagnosis);
    return &diagnosis.verdict;
}

static int release(void **state)
{
    (void)state;
    gos_scratch_release(&evidence.scratch);
    return 0;
}

/* --- lines of rules, reached through a whole scene --- */

static const struct {
    struct scene scene; /* without the setting */
    const char *line;   /* is advised then */
    const char *on;     /* the setting */
} lines[] = {
    {{"torch's segments", .torch = 15000, .ask = 1024 * MIB, .by = SITE_TORCH},
     "expandable_segments:True",
     "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"},
    {{"torch's segments, newer name", .torch = 15000, .ask = 1024 * MIB, .by = SITE_TORCH},
     "expandable_segments:True",
     "PYTORCH_ALLOC_CONF=expandable_segments:True"},
    {{"torch's cache", .torch = 15000, .ask = 1024 * MIB, .by = SITE_NCCL},
     "garbage_collection_threshold:0.8",
     "PYTORCH_CUDA_ALLOC_CONF=garbage_collection_threshold:0.6"},
    {{"a kernel on a full device", .app = 15869, .unsized = true, .kind = GOS_KIND_NONE,
      .by = SITE_APP},
     "CUDA_MODULE_LOADING=EAGER",
     "CUDA_MODULE_LOADING=EAGER"},
    {{"a broken context", .ask = MIB, .result = 700, .by = SITE_APP},
     "CUDA_LAUNCH_BLOCKING=1",
     "CUDA_LAUNCH_BLOCKING=1"},
    {{"a neighbour", .others = 12000, .ask = 8192 * MIB, .by = SITE_APP},
     "use another device (CUDA_VISIBLE_DEVICES)",
     "CUDA_VISIBLE_DEVICES=0"},
};

static void no_line_is_given_for_what_is_set(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct scene scene = lines[i].scene;
        if (!verdict_advises(diagnose(&scene), lines[i].line))
            fail_msg("%s: not advised: %s", scene.name, lines[i].line);
        scene.variable = lines[i].on;
        if (verdict_advises(diagnose(&scene), lines[i].line))
            fail_msg("%s: advised though set: %s", scene.name, lines[i].line);
    }
}

/* What was set after the first use is read by nobody: the advice stands, or says so. */
static void a_setting_that_came_too_late_is_not_on(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct scene scene = lines[i].scene;
        scene.variable = lines[i].on;
        scene.variable_late = true;
        if (!verdict_advises(diagnose(&scene), lines[i].line) &&
            !verdict_advises(&diagnosis.verdict, "came too late"))
            fail_msg("%s: not advised: %s", scene.name, lines[i].line);
    }
}

static void torch_is_told_that_its_setting_came_too_late(void **state)
{
    (void)state;
    struct scene scene = {.torch = 15000,
                          .ask = 1024 * MIB,
                          .by = SITE_TORCH,
                          .variable = "PYTORCH_ALLOC_CONF=expandable_segments:True",
                          .variable_late = true};
    assert_true(verdict_advises(diagnose(&scene), "Set PYTORCH_ALLOC_CONF before CUDA is first"));
}

static void eager_loading_is_named_where_modules_are_large(void **state)
{
    (void)state;
    struct scene scene = {.context = 4096,
                          .app = 11000,
                          .ask = 4096 * MIB,
                          .by = SITE_APP,
                          .variable = "CUDA_MODULE_LOADING=EAGER"};
    assert_true(verdict_advises(diagnose(&scene), "CUDA_MODULE_LOADING is EAGER"));
    scene.variable = "CUDA_MODULE_LOADING=LAZY";
    assert_false(verdict_advises(diagnose(&scene), "CUDA_MODULE_LOADING"));
}

/* --- lines about a framework, by its name --- */

static const struct {
    const char *library, *line, *on;
} frameworks[] = {
    {"cupy", "CUPY_GPU_MEMORY_LIMIT=80%", "CUPY_GPU_MEMORY_LIMIT=50%"},
    {"jax", "XLA_PYTHON_CLIENT_PREALLOCATE=false", "XLA_PYTHON_CLIENT_PREALLOCATE=false"},
    {"jax", "XLA_PYTHON_CLIENT_PREALLOCATE=false", "XLA_PYTHON_CLIENT_PREALLOCATE=0"},
    {"jax", "XLA_PYTHON_CLIENT_MEM_FRACTION=0.6", "XLA_PYTHON_CLIENT_MEM_FRACTION=0.9"},
    {"tensorflow", "TF_FORCE_GPU_ALLOW_GROWTH=true", "TF_FORCE_GPU_ALLOW_GROWTH=true"},
    {"jax", "XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_CLIENT_MEM_FRACTION=0.75"},
    {"torch", "garbage_collection_threshold", "PYTORCH_ALLOC_CONF=garbage_collection_threshold:1"},
};

static bool advises_framework(const char *library, const char *variable, const char *line)
{
    struct scene scene = {.app = 15000, .ask = 8192 * MIB, .by = SITE_APP, .variable = variable};
    struct gos_situation situation;
    struct gos_verdict verdict = {.summary = ""};
    diagnose(&scene);
    gos_situation_make(&evidence, &diagnosis, &situation);
    gos_advise_cache(&situation, &verdict, library);
    return verdict_advises(&verdict, line);
}

static void frameworks_are_not_told_what_they_do_already(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(frameworks) / sizeof(frameworks[0]); i++) {
        const char *line = frameworks[i].line;
        if (!advises_framework(frameworks[i].library, NULL, line))
            fail_msg("%s: not advised: %s", frameworks[i].library, line);
        if (advises_framework(frameworks[i].library, frameworks[i].on, line))
            fail_msg("%s: advised though set: %s", frameworks[i].library, line);
    }
}

static void a_setting_that_is_set_to_the_contrary_is_advised(void **state)
{
    (void)state;
    assert_true(advises_framework("jax", "XLA_PYTHON_CLIENT_PREALLOCATE=true",
                                  "XLA_PYTHON_CLIENT_PREALLOCATE=false"));
    assert_true(advises_framework("tensorflow", "TF_FORCE_GPU_ALLOW_GROWTH=false",
                                  "TF_FORCE_GPU_ALLOW_GROWTH=true"));
}

static void jax_is_given_the_one_name_that_is_set(void **state)
{
    (void)state;
    assert_true(
        advises_framework("jax", "XLA_CLIENT_MEM_FRACTION=0.75", "Lower XLA_CLIENT_MEM_FRACTION."));
    assert_true(advises_framework("jax", "XLA_PYTHON_CLIENT_MEM_FRACTION=0.75",
                                  "Lower XLA_PYTHON_CLIENT_MEM_FRACTION."));
}

/* --- what a framework says itself --- */

static struct gos_framework_evidence *torch_beside(enum site by)
{
    struct scene scene = {
        .torch = 15360, .torch_unused = 12240, .torch_pieces = 12240, .ask = 1024 * MIB, .by = by};
    diagnose(&scene);
    return &evidence.frameworks[0];
}

static bool advises_now(const char *line)
{
    gos_diagnose(&evidence, &diagnosis);
    struct gos_situation situation;
    struct gos_verdict verdict = {.summary = ""};
    gos_situation_make(&evidence, &diagnosis, &situation);
    gos_advise_cache(&situation, &verdict, "torch");
    gos_advise_torch_pieces(&situation, &verdict);
    return verdict_advises(&verdict, line);
}

static void what_torch_says_is_set_needs_no_variable(void **state)
{
    (void)state;
    struct gos_framework_evidence *torch = torch_beside(SITE_NCCL);
    assert_true(advises_now("garbage_collection_threshold:0.8"));
    torch->settings = "garbage_collection_threshold:0.8";
    assert_false(advises_now("garbage_collection_threshold:0.8"));
    torch->settings = "";
    torch->collects = GOS_SETTING_ON;
    assert_false(advises_now("garbage_collection_threshold:0.8"));
    torch->collects = GOS_SETTING_OFF;
    torch->settings = "garbage_collection_threshold:0";
    assert_true(advises_now("garbage_collection_threshold:0.8"));
}

/* torch collects only where it has a limit, so one is not advised without the other. */
static void threshold_and_limit_go_together(void **state)
{
    (void)state;
    struct gos_framework_evidence *torch = torch_beside(SITE_NCCL);
    torch->expandable = GOS_SETTING_ON;
    assert_true(advises_now("It works together with a limit"));
    assert_true(advises_now("Keep a margin: torch.cuda.set_per_process_memory_fraction(0"));
    torch->limited = GOS_SETTING_ON;
    assert_true(advises_now("garbage_collection_threshold:0.8"));
    assert_true(advises_now("Keep a larger margin"));
    assert_false(advises_now("set_per_process_memory_fraction(0.95)"));
    torch->collects = GOS_SETTING_ON;
    assert_true(advises_now("memory_summary"));
    torch->limited = GOS_SETTING_OFF;
    assert_true(advises_now("without a limit torch does not heed"));
}

static void limit_of_cupy_is_lowered_not_set_again(void **state)
{
    (void)state;
    struct scene scene = {.cupy = 12000, .cupy_unused = 11000, .ask = 8192 * MIB, .by = SITE_NCCL};
    assert_true(verdict_advises(diagnose(&scene), "CUPY_GPU_MEMORY_LIMIT=80%"));
    evidence.frameworks[0].limited = GOS_SETTING_ON;
    gos_diagnose(&evidence, &diagnosis);
    assert_false(verdict_advises(&diagnosis.verdict, "CUPY_GPU_MEMORY_LIMIT=80%"));
    assert_true(verdict_advises(&diagnosis.verdict, "Lower the limit of its pool"));
}

/* --- order --- */

/* What lies idle comes before what the program does with its memory. */
static void batch_size_is_the_last_thing_to_look_at(void **state)
{
    (void)state;
    struct scene scene = {.torch = 15000, .ask = 1024 * MIB, .by = SITE_TORCH};
    const struct gos_verdict *verdict = diagnose(&scene);
    size_t pieces = 99, batch = 0;
    for (size_t i = 0; i < verdict->advice_count; i++) {
        if (strstr(verdict->advice[i], "expandable_segments"))
            pieces = i;
        if (strstr(verdict->advice[i], "batch size"))
            batch = i;
    }
    assert_true(pieces < batch);
}

static void words_of_settings_are_read_in_any_case(void **state)
{
    struct gos_variable variables[] = {{.name = "A", .value = "True"},
                                       {.name = "B", .value = "FALSE"},
                                       {.name = "C", .value = "", .at_start = "1"},
                                       {.name = "D", .value = "1", .at_start = ""}};
    release(state);
    evidence.variables = variables;
    evidence.variable_count = 4;
    assert_true(gos_setting_is_on(&evidence, "A"));
    assert_true(gos_setting_is_off(&evidence, "B"));
    assert_true(gos_setting_is_on(&evidence, "C"));
    assert_null(gos_setting_get(&evidence, "D"));
    assert_string_equal(gos_setting_late(&evidence, "D"), "1");
    assert_null(gos_setting_late(&evidence, "C"));
    assert_null(gos_setting_get(&evidence, "E"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_line_is_given_for_what_is_set),
        cmocka_unit_test(a_setting_that_came_too_late_is_not_on),
        cmocka_unit_test(torch_is_told_that_its_setting_came_too_late),
        cmocka_unit_test(eager_loading_is_named_where_modules_are_large),
        cmocka_unit_test(frameworks_are_not_told_what_they_do_already),
        cmocka_unit_test(a_setting_that_is_set_to_the_contrary_is_advised),
        cmocka_unit_test(jax_is_given_the_one_name_that_is_set),
        cmocka_unit_test(what_torch_says_is_set_needs_no_variable),
        cmocka_unit_test(threshold_and_limit_go_together),
        cmocka_unit_test(limit_of_cupy_is_lowered_not_set_again),
        cmocka_unit_test(batch_size_is_the_last_thing_to_look_at),
        cmocka_unit_test(words_of_settings_are_read_in_any_case),
    };
    return cmocka_run_group_tests(tests, NULL, release);
}
