/*
 * "proven" is never wrong: random worlds, each seen through every view, and
 * for each proof the experiment that it promises: had that memory been there,
 * the request would have fitted (or, where the process is blamed, would not).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../src/diagnose/revise.h"
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

static void make_frameworks(uint64_t *seed, struct scene *scene)
{
    static const enum site askers[] = {SITE_APP, SITE_NCCL, SITE_TORCH, SITE_CUPY};
    scene->by = askers[random_below(seed, 4)];
    scene->torch_untold = random_below(seed, 4) == 0 ? scene->torch / 2 : 0;
    uint64_t told = scene->torch - scene->torch_untold;
    scene->torch_unused = part(seed, &told);
    uint64_t unused = scene->torch_unused;
    scene->torch_pieces = part(seed, &unused);
    scene->cupy_unused = random_below(seed, 3) * scene->cupy / 2;
}

static void make_world(uint64_t *seed, struct scene *scene)
{
    static const enum gos_kind kinds[] = {GOS_KIND_DEVICE, GOS_KIND_DEVICE, GOS_KIND_POOL,
                                          GOS_KIND_PHYSICAL};
    uint64_t left = 16384 - 512;
    *scene = (struct scene){.kind = kinds[random_below(seed, 4)]};
    uint64_t *parts[] = {&scene->app,          &scene->pool_live,     &scene->pool_idle,
                         &scene->others,       &scene->children,      &scene->hidden,
                         &scene->pool_pending, &scene->pool2_idle,    &scene->graph_idle,
                         &scene->held,         &scene->pool2_foreign, &scene->torch,
                         &scene->cupy,         &scene->managed,       &scene->unseen};
    const size_t count = sizeof(parts) / sizeof(parts[0]);
    uint64_t pieces = part(seed, &left) / 2;
    scene->pieces = random_below(seed, 4) == 0 ? pieces : 0;
    size_t first = random_below(seed, count);
    for (size_t i = 0; i < count; i++)
        *parts[(first + i) % count] = part(seed, &left);
    if (random_below(seed, 3) != 0)
        scene->managed = 0;
    if (random_below(seed, 3) != 0)
        scene->held = scene->pool2_foreign = 0;
    if (random_below(seed, 3) != 0)
        scene->hidden = scene->others = scene->children = 0;
    scene->pool_stale = random_below(seed, 6) == 0 ? random_below(seed, 8192) : 0;
    scene->pending_seen = random_below(seed, 6) == 0 ? random_below(seed, 8192) : 0;
    make_frameworks(seed, scene);
    scene->course = (enum course)random_below(seed, COURSE_TORCH + 1);
    scene->ask = (2 + (random_below(seed, 20000) & ~1ull)) * MIB;
    if (random_below(seed, 4) == 0)
        scene->limit = scene_own(scene) + random_below(seed, 4096);
}

/* The experiment: would it fit if this process gave back so much, and others so much? */
static bool fits(const struct scene *scene, uint64_t own, uint64_t others, uint64_t margin)
{
    uint64_t wanted = scene->ask / MIB + margin;
    bool allowed = !scene->limit || scene_own(scene) - own + wanted <= scene->limit;
    return allowed && scene_really_free(scene) + own + others >= wanted;
}

/* The driver keeps the last few MiB of the device to itself. */
#define DUST 4

/* What waiting and trimming give back; what lives in a pool may pin all of it. */
static uint64_t after_waiting(const struct scene *scene)
{
    uint64_t first = scene->pool_live ? 0 : scene->pool_idle + scene->pool_pending;
    return scene->pool2_foreign ? first : first + scene->pool2_idle;
}

static uint64_t flushed(const struct scene *scene, const char *holder)
{
    if (strcmp(holder, "cupy") == 0)
        return scene->cupy_unused == scene->cupy ? scene->cupy : 0;
    return scene->torch_unused - scene->torch_pieces;
}

/* All that may be unused: of who has spoken in time his word, of the others everything. */
static uint64_t unused_of_frameworks(const struct scene *scene)
{
    bool torch_spoke = scene->torch_unused && scene->by != SITE_TORCH;
    bool cupy_spoke = scene->cupy_unused && scene->by != SITE_CUPY;
    return (torch_spoke ? scene->torch_unused + scene->torch_untold : scene->torch) +
           scene->torch_physical + (cupy_spoke ? scene->cupy_unused : scene->cupy);
}

static uint64_t everything_unused(const struct scene *scene)
{
    return scene->pool_idle + scene->pool_pending + scene->pool2_idle + scene->graph_idle +
           scene->held + scene->pieces + scene->unseen + unused_of_frameworks(scene);
}

static bool helps(const struct scene *scene, uint64_t own, uint64_t others)
{
    return fits(scene, own, others, DUST) && !fits(scene, 0, 0, 0);
}

static bool proof_holds(const struct scene *scene, const struct gos_verdict *verdict)
{
    uint64_t neighbours = scene->others + scene->children;
    bool by_framework =
        strcmp(verdict->holder, "torch") == 0 || strcmp(verdict->holder, "cupy") == 0;
    switch (verdict->code) {
    case GOS_VERDICT_PENDING_FREE:
        return helps(scene, after_waiting(scene), 0);
    case GOS_VERDICT_CACHE_HELD:
        return helps(scene, after_waiting(scene), 0) ||
               (by_framework && helps(scene, flushed(scene, verdict->holder), 0));
    case GOS_VERDICT_FRAGMENTED:
        return helps(scene, scene->pieces, 0);
    case GOS_VERDICT_EXHAUSTED_BY_OTHERS:
        return helps(scene, 0, neighbours);
    case GOS_VERDICT_EXHAUSTED_BY_PROCESS:
        return !fits(scene, everything_unused(scene), neighbours + scene->hidden, 0) &&
               scene->managed == 0;
    case GOS_VERDICT_REQUEST_TOO_LARGE:
        return scene->ask / MIB > 16384 || (scene->limit && scene->ask / MIB > scene->limit);
    default:
        return false;
    }
}

/* --- the same on the second of two devices -------------------------------------------------- */

static void move_to(struct gos_evidence *evidence, int ordinal)
{
    uint32_t device = (uint32_t)ordinal;
    evidence->devices[ordinal] = evidence->devices[0];
    evidence->devices[ordinal].ordinal = ordinal;
    evidence->request.device = ordinal;
    for (size_t i = 0; i < evidence->use_count; i++)
        evidence->uses[i].device = device;
    for (size_t i = 0; i < evidence->pool_count; i++)
        evidence->pools[i].device = device;
    for (size_t i = 0; i < evidence->stream_count; i++)
        evidence->streams[i].device = device;
    for (size_t i = 0; i < evidence->process_count; i++)
        evidence->processes[i].device = ordinal;
    for (size_t i = 0; i < evidence->framework_count; i++)
        evidence->frameworks[i].device = device;
    for (size_t i = 0; i < evidence->growth.series_count; i++)
        evidence->growth.series[i].device = device;
}

#define APPEND(field, count)                                                                       \
    do {                                                                                           \
        void *both = gos_scratch_alloc(&evidence->scratch, (evidence->count + other->count) *      \
                                                               sizeof(*evidence->field));          \
        memcpy(both, other->field, other->count * sizeof(*other->field));                          \
        memcpy((char *)both + other->count * sizeof(*other->field), evidence->field,               \
               evidence->count * sizeof(*evidence->field));                                        \
        evidence->field = both;                                                                    \
        evidence->count += other->count;                                                           \
    } while (0)

/* Device 0 becomes the other world's; everything of it comes first in the lists. */
static void put_beside(struct gos_evidence *evidence, const struct gos_evidence *other)
{
    move_to(evidence, 1);
    evidence->device_count = 2;
    evidence->devices[0] = other->devices[0];
    APPEND(uses, use_count);
    APPEND(pools, pool_count);
    APPEND(streams, stream_count);
    APPEND(processes, process_count);
    APPEND(frameworks, framework_count);
}

static unsigned proofs[GOS_VERDICT_COUNT];

static unsigned framework_proofs;

static void check_ledgers(const struct gos_diagnosis *diagnosis, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        int64_t sum = 0;
        for (int line = 0; line < GOS_LEDGER_COUNT; line++)
            sum += diagnosis->ledgers[i].lines[line].bytes;
        assert_int_equal(sum, diagnosis->ledgers[i].total_bytes);
    }
}

#define MIBS(field) (unsigned long long)scene->field

static void show_world(const struct scene *scene)
{
    print_error("ask %llu of kind %d by %d; stale %llu, seen %llu, app %llu, torch %llu (unused "
                "%llu, pieces %llu, untold "
                "%llu), cupy %llu (unused %llu), held %llu, pieces %llu, pool %llu + %llu + %llu, "
                "second %llu + %llu, graphs %llu, others %llu, children %llu, hidden %llu, managed "
                "%llu, limit %llu; free %llu, view %d\n",
                MIBS(ask) / MIB, scene->kind, scene->by, MIBS(pool_stale), MIBS(pending_seen),
                MIBS(app), MIBS(torch), MIBS(torch_unused), MIBS(torch_pieces), MIBS(torch_untold),
                MIBS(cupy), MIBS(cupy_unused), MIBS(held), MIBS(pieces), MIBS(pool_live),
                MIBS(pool_idle), MIBS(pool_pending), MIBS(pool2_idle), MIBS(pool2_foreign),
                MIBS(graph_idle), MIBS(others), MIBS(children), MIBS(hidden), MIBS(managed),
                MIBS(limit), (unsigned long long)scene_free(scene), scene->view);
}

static void check_verdict(const struct scene *scene, const struct gos_verdict *verdict)
{
    if (verdict->confidence != GOS_CONFIDENCE_PROVEN)
        return;
    proofs[verdict->code]++;
    framework_proofs +=
        verdict->code == GOS_VERDICT_CACHE_HELD && strcmp(verdict->holder, "torch") == 0;
    if (proof_holds(scene, verdict))
        return;
    show_world(scene);
    fail_msg("%s is not proven: %s", gos_verdict_code(verdict->code), verdict->summary);
}

/* What is left after remedies that brought nothing is proven no less. */
static void check_left(const struct scene *scene, struct gos_evidence *evidence,
                       struct gos_diagnosis *diagnosis)
{
    static const struct gos_step_record steps[] = {
        {.step = "sync", .result = "no help", .is_whole = true},
        {.step = "trim", .result = "no help", .is_whole = true},
        {.step = "flush", .result = "no help", .asked = {"torch"}, .asked_count = 1},
    };
    gos_diagnose_revise(evidence, diagnosis, steps + scene->ask / MIB % 3, 1, false);
    check_verdict(scene, &diagnosis->verdict);
}

/* beside: what the first device has while the second fails; NULL: there is one. */
static void check_world(const struct scene *scene, const struct scene *beside)
{
    static struct gos_evidence evidence, other;
    static struct gos_diagnosis diagnosis;
    scene_evidence(scene, &evidence);
    if (beside) {
        scene_evidence(beside, &other);
        put_beside(&evidence, &other);
    }
    gos_diagnose(&evidence, &diagnosis);
    check_ledgers(&diagnosis, beside ? 2 : 1);
    assert_int_equal(diagnosis.device, beside ? 1 : 0);
    check_verdict(scene, &diagnosis.verdict);
    check_left(scene, &evidence, &diagnosis);
    gos_scratch_release(&evidence.scratch);
    gos_scratch_release(&other.scratch);
}

static void proofs_survive_the_experiment(void **state)
{
    (void)state;
    uint64_t seed = 987654321;
    for (int round = 0; round < ROUNDS; round++) {
        struct scene scene;
        make_world(&seed, &scene);
        scene.view = (enum view)(round % VIEW_COUNT);
        check_world(&scene, NULL);
    }
}

static void what_another_device_has_proves_nothing_of_this_one(void **state)
{
    (void)state;
    uint64_t seed = 24681357;
    for (int round = 0; round < ROUNDS / 2; round++) {
        struct scene scene, beside;
        make_world(&seed, &scene);
        make_world(&seed, &beside);
        scene.view = beside.view = (enum view)(round % VIEW_COUNT);
        check_world(&scene, &beside);
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
        assert_in_range(proofs[codes[i]], 20, 2 * ROUNDS);
    }
    print_message("of that, by torch's own word %u times\n", framework_proofs);
    assert_true(framework_proofs >= 20);
}

static enum gos_confidence confidence_in(const struct scene *scene)
{
    static struct gos_evidence evidence;
    static struct gos_diagnosis diagnosis;
    scene_evidence(scene, &evidence);
    gos_diagnose(&evidence, &diagnosis);
    gos_scratch_release(&evidence.scratch);
    return diagnosis.verdict.confidence;
}

/* Each leaves nothing free, and asks for exactly what would come back; then for 4 MiB less. */
static void last_few_mib_of_the_device_are_never_part_of_a_proof(void **state)
{
    (void)state;
    struct scene scenes[] = {
        {.others = 8192, .app = 7680, .ask = 8192 * MIB, .by = SITE_APP},
        {.pool2_idle = 4000, .app = 11872, .ask = 4000 * MIB, .by = SITE_APP},
        {.pieces = 400, .app = 15072, .ask = 400 * MIB, .by = SITE_APP},
        {.torch = 4096, .torch_unused = 4096, .app = 11776, .ask = 4096 * MIB, .by = SITE_NCCL},
    };
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++) {
        assert_int_equal(confidence_in(&scenes[i]), GOS_CONFIDENCE_LIKELY);
        scenes[i].ask -= DUST * MIB;
        assert_int_equal(confidence_in(&scenes[i]), GOS_CONFIDENCE_PROVEN);
    }
}

/* A block that others have a part of does not come back with the framework's part. */
static void small_allocations_are_never_part_of_what_a_framework_surely_gives(void **state)
{
    (void)state;
    struct scene scene = {
        .cupy = 3000, .cupy_unused = 3000, .app = 11872, .ask = 2000 * MIB, .by = SITE_NCCL};
    assert_int_equal(confidence_in(&scene), GOS_CONFIDENCE_PROVEN);
    scene.pieces = 500;
    assert_int_equal(confidence_in(&scene), GOS_CONFIDENCE_PROVEN);
    scene.ask = 2600 * MIB;
    assert_int_equal(confidence_in(&scene), GOS_CONFIDENCE_LIKELY);
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
        cmocka_unit_test(what_another_device_has_proves_nothing_of_this_one),
        cmocka_unit_test(each_verdict_was_proven_somewhere),
        cmocka_unit_test(last_few_mib_of_the_device_are_never_part_of_a_proof),
        cmocka_unit_test(small_allocations_are_never_part_of_what_a_framework_surely_gives),
        cmocka_unit_test(memory_that_fits_is_never_blamed_with_proof),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
