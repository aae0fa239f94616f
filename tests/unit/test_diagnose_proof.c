/*
 * "proven" is never wrong: random worlds, each seen through every view, and
 * for each proof the experiment that it promises: had that memory been there,
 * the request would have fitted (or, where the process is blamed, would not).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "diagnose_fixture.h"

#define ROUNDS 20000

/* Half of the parts are absent, so that single causes stand out. */
static uint64_t part(uint64_t *seed, uint64_t *left)
{
    if (random_below(seed, 2) == 0 || *left == 0)
        return 0;
    uint64_t mib = random_below(seed, *left + 1) & ~1ull;
    *left -= mib;
    return mib;
}

static void make_world(uint64_t *seed, struct scene *scene)
{
    static const enum gos_kind kinds[] = {GOS_KIND_DEVICE, GOS_KIND_DEVICE, GOS_KIND_POOL,
                                          GOS_KIND_PHYSICAL};
    uint64_t left = 16384 - 512;
    *scene = (struct scene){.by = SITE_APP, .kind = kinds[random_below(seed, 4)]};
    uint64_t *parts[] = {&scene->app,          &scene->pool_live,  &scene->pool_idle,
                         &scene->others,       &scene->children,   &scene->hidden,
                         &scene->pool_pending, &scene->pool2_idle, &scene->graph_idle,
                         &scene->torch,        &scene->managed};
    uint64_t pieces = part(seed, &left) / 2;
    scene->pieces = random_below(seed, 4) == 0 ? pieces : 0;
    for (uint64_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        *parts[i] = part(seed, &left);
    if (random_below(seed, 3) != 0)
        scene->torch = scene->managed = 0;
    scene->ask = (2 + (random_below(seed, 20000) & ~1ull)) * MIB;
}

/* What the device would have free after the step that a verdict speaks of, in MiB. */
static uint64_t after_waiting(const struct scene *scene)
{
    uint64_t free_mib = scene_free(scene) + scene->pool2_idle + scene->graph_idle;
    /* What lives in the pool may pin all of it. */
    return scene->pool_live ? free_mib : free_mib + scene->pool_idle + scene->pool_pending;
}

static uint64_t without_neighbours(const struct scene *scene)
{
    return scene_free(scene) + scene->others + scene->children;
}

static uint64_t with_everything_unused(const struct scene *scene)
{
    return without_neighbours(scene) + scene->hidden + scene->pool_idle + scene->pool_pending +
           scene->pool2_idle + scene->graph_idle + scene->pieces + scene->torch +
           scene->torch_physical;
}

static bool proof_holds(const struct scene *scene, enum gos_verdict_code code)
{
    uint64_t ask = scene->ask / MIB;
    switch (code) {
    case GOS_VERDICT_PENDING_FREE:
    case GOS_VERDICT_CACHE_HELD:
        return after_waiting(scene) >= ask && scene_free(scene) < ask;
    case GOS_VERDICT_FRAGMENTED:
        return scene_free(scene) + scene->pieces >= ask && scene_free(scene) < ask;
    case GOS_VERDICT_EXHAUSTED_BY_OTHERS:
        return without_neighbours(scene) >= ask && scene_free(scene) < ask;
    case GOS_VERDICT_EXHAUSTED_BY_PROCESS:
        return with_everything_unused(scene) < ask && scene->managed == 0;
    case GOS_VERDICT_REQUEST_TOO_LARGE:
        return ask > 16384;
    default:
        return false;
    }
}

static unsigned proofs[GOS_VERDICT_COUNT];

static void check_world(const struct scene *scene)
{
    static struct gos_evidence evidence;
    static struct gos_diagnosis diagnosis;
    scene_evidence(scene, &evidence);
    gos_diagnose(&evidence, &diagnosis);
    if (diagnosis.verdict.confidence == GOS_CONFIDENCE_PROVEN) {
        proofs[diagnosis.verdict.code]++;
        if (!proof_holds(scene, diagnosis.verdict.code))
            fail_msg("view %d: %s is not proven: %s", scene->view,
                     gos_verdict_code(diagnosis.verdict.code), diagnosis.verdict.summary);
    }
    gos_scratch_release(&evidence.scratch);
}

static void proofs_survive_the_experiment(void **state)
{
    (void)state;
    uint64_t seed = 987654321;
    for (int round = 0; round < ROUNDS; round++) {
        struct scene scene;
        make_world(&seed, &scene);
        scene.view = (enum view)(round % VIEW_COUNT);
        check_world(&scene);
    }
}

/* Silence proves nothing: each kind of proof must have been given. */
static void each_verdict_was_proven_somewhere(void **state)
{
    (void)state;
    static const enum gos_verdict_code codes[] = {
        GOS_VERDICT_PENDING_FREE,         GOS_VERDICT_CACHE_HELD,
        GOS_VERDICT_FRAGMENTED,           GOS_VERDICT_EXHAUSTED_BY_OTHERS,
        GOS_VERDICT_EXHAUSTED_BY_PROCESS, GOS_VERDICT_REQUEST_TOO_LARGE};
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        print_message("%-22s proven %u times\n", gos_verdict_code(codes[i]), proofs[codes[i]]);
        assert_in_range(proofs[codes[i]], 20, ROUNDS);
    }
}

static void memory_that_fits_is_never_blamed_with_proof(void **state)
{
    (void)state;
    uint64_t seed = 5;
    for (int round = 0; round < ROUNDS / 10; round++) {
        static struct gos_evidence evidence;
        static struct gos_diagnosis diagnosis;
        struct scene scene;
        make_world(&seed, &scene);
        if (scene_free(&scene) < 4)
            continue;
        scene.ask = (scene_free(&scene) - random_below(&seed, scene_free(&scene) - 2)) * MIB;
        scene_evidence(&scene, &evidence);
        gos_diagnose(&evidence, &diagnosis);
        if (scene.ask % (2 * MIB) == 0)
            assert_int_not_equal(diagnosis.verdict.confidence, GOS_CONFIDENCE_PROVEN);
        gos_scratch_release(&evidence.scratch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(proofs_survive_the_experiment),
        cmocka_unit_test(each_verdict_was_proven_somewhere),
        cmocka_unit_test(memory_that_fits_is_never_blamed_with_proof),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
