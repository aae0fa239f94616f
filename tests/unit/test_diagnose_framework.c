/* What frameworks said, in the ledger, the fragmentation figures and the verdict. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "../../src/diagnose/framework.h"
#include "diagnose_fixture.h"

#define ROUNDS 20000

struct look {
    struct gos_evidence evidence;
    struct gos_diagnosis diagnosis;
    struct gos_framework_evidence frameworks[2];
};

/* In MiB; a map is known when there are segments. */
static struct gos_framework_evidence framework(const char *name, uint64_t reserved, uint64_t used)
{
    return (struct gos_framework_evidence){.name = name,
                                           .reserved_bytes = reserved * MIB,
                                           .used_bytes = used * MIB,
                                           .active_bytes = used * MIB,
                                           .backend = "",
                                           .settings = ""};
}

/* Torch with so many equal segments, a live block in each of `pinned` of them. */
static struct gos_framework_evidence torch_in(uint64_t segments, uint64_t mib, uint64_t pinned,
                                              uint64_t live_mib)
{
    uint64_t whole = segments - pinned;
    struct gos_framework_evidence torch = framework("torch", segments * mib, pinned * live_mib);
    torch.inactive_split_bytes = pinned * (mib - live_mib) * MIB;
    torch.map_known = true;
    torch.segment_count = segments;
    torch.pinned_segment_count = pinned;
    torch.piece_count = pinned;
    torch.piece_bytes = torch.inactive_split_bytes;
    torch.largest_free_bytes = (whole ? mib : mib - live_mib) * MIB;
    torch.releasable_known = true;
    torch.releasable_bytes = whole * mib * MIB;
    torch.backend = "native";
    return torch;
}

static void see(struct look *view, const struct scene *scene, size_t count)
{
    scene_evidence(scene, &view->evidence);
    view->evidence.frameworks = view->frameworks;
    view->evidence.framework_count = count;
    gos_diagnose(&view->evidence, &view->diagnosis);
}

static void close_view(struct look *view)
{
    gos_scratch_release(&view->evidence.scratch);
}

static const struct gos_verdict *verdict_of(const struct look *view)
{
    return &view->diagnosis.verdict;
}

static int64_t line(const struct look *view, enum gos_ledger_line which)
{
    return view->diagnosis.ledgers[0].lines[which].bytes / (int64_t)MIB;
}

static const struct scene nccl_asks = {.torch = 15360, .ask = 1024 * MIB, .by = SITE_NCCL};
static const struct scene torch_asks = {.torch = 15360, .ask = 1024 * MIB, .by = SITE_TORCH};

/* --- ledger --- */

static void unused_memory_moves_to_a_line_of_its_own(void **state)
{
    (void)state;
    struct look view = {.frameworks = {torch_in(15, 1024, 3, 1024)}};
    see(&view, &nccl_asks, 1);
    assert_int_equal(line(&view, GOS_LEDGER_FRAMEWORK_IDLE), 12288);
    assert_int_equal(line(&view, GOS_LEDGER_LIVE_DEVICE), 3072);
    assert_int_equal(view.diagnosis.ledgers[0].lines[GOS_LEDGER_FRAMEWORK_IDLE].source,
                     GOS_SOURCE_MEASURED);
    close_view(&view);
}

static void expandable_segments_are_physical_memory(void **state)
{
    (void)state;
    static const struct scene scene = {
        .torch_physical = 12288, .torch = 3072, .ask = 1024 * MIB, .by = SITE_NCCL};
    struct look view = {.frameworks = {framework("torch", 15360, 1024)}};
    view.frameworks[0].expandable = GOS_SETTING_ON;
    see(&view, &scene, 1);
    assert_int_equal(line(&view, GOS_LEDGER_LIVE_PHYSICAL), 0);
    assert_int_equal(line(&view, GOS_LEDGER_LIVE_DEVICE), 1024);
    assert_int_equal(line(&view, GOS_LEDGER_FRAMEWORK_IDLE), 14336);
    close_view(&view);
}

static void what_lies_in_the_drivers_pools_is_not_counted_twice(void **state)
{
    (void)state;
    static const struct scene scene = {
        .pool_live = 3072, .pool_idle = 12288, .ask = 1024 * MIB, .by = SITE_NCCL};
    struct look view = {.frameworks = {framework("torch", 15360, 3072)}};
    view.frameworks[0].in_driver_pools = true;
    see(&view, &scene, 1);
    assert_int_equal(line(&view, GOS_LEDGER_FRAMEWORK_IDLE), 0);
    assert_int_equal(line(&view, GOS_LEDGER_POOL_IDLE), 12288);
    close_view(&view);
}

static void numbers_of_different_moments_make_no_negative_line(void **state)
{
    (void)state;
    struct look view = {.frameworks = {framework("torch", 16000, 0)}};
    see(&view, &nccl_asks, 1);
    assert_int_equal(line(&view, GOS_LEDGER_LIVE_DEVICE), 0);
    assert_int_equal(line(&view, GOS_LEDGER_FRAMEWORK_IDLE), 15360);
    assert_int_equal(view.diagnosis.ledgers[0].lines[GOS_LEDGER_FRAMEWORK_IDLE].source,
                     GOS_SOURCE_UNKNOWN);
    assert_int_not_equal(verdict_of(&view)->confidence, GOS_CONFIDENCE_PROVEN);
    close_view(&view);
}

static void check_sum(const struct gos_ledger *ledger)
{
    int64_t sum = 0;
    for (int i = 0; i < GOS_LEDGER_COUNT; i++) {
        sum += ledger->lines[i].bytes;
        assert_true(i == GOS_LEDGER_RESIDUAL || ledger->lines[i].bytes >= 0);
    }
    assert_int_equal(sum, ledger->total_bytes);
}

static struct gos_framework_evidence any_framework(uint64_t *seed)
{
    static const char *const names[] = {"torch", "cupy", "jax"};
    uint64_t reserved = random_below(seed, 20000);
    uint64_t used = random_below(seed, reserved + 1);
    struct gos_framework_evidence any = framework(names[random_below(seed, 3)], reserved, used);
    any.inactive_split_bytes = random_below(seed, reserved - used + 1) * MIB;
    any.map_known = random_below(seed, 2);
    any.releasable_known = random_below(seed, 2);
    any.releasable_bytes = random_below(seed, reserved - used + 1) * MIB;
    any.fitting_bytes = random_below(seed, reserved - used + 1) * MIB;
    any.in_driver_pools = random_below(seed, 4) == 0;
    any.is_late = random_below(seed, 2);
    any.expandable = (enum gos_setting_state)random_below(seed, 3);
    any.device = random_below(seed, 8) == 0;
    return any;
}

static void sums_hold_whatever_frameworks_say(void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (int round = 0; round < ROUNDS; round++) {
        struct look view = {.frameworks = {any_framework(&seed), any_framework(&seed)}};
        struct look without = {.evidence = {.pid = 0}};
        struct scene scene = {.torch = random_below(&seed, 8000),
                              .torch_physical = random_below(&seed, 4000),
                              .pool_idle = random_below(&seed, 2000),
                              .ask = random_below(&seed, 9000) * MIB,
                              .by = random_below(&seed, 2) ? SITE_TORCH : SITE_NCCL,
                              .view = (enum view)random_below(&seed, VIEW_COUNT)};
        see(&view, &scene, 1 + random_below(&seed, 2));
        see(&without, &scene, 0);
        check_sum(&view.diagnosis.ledgers[0]);
        assert_int_equal(view.diagnosis.ledgers[0].own_bytes,
                         without.diagnosis.ledgers[0].own_bytes);
        assert_true(view.diagnosis.fragmentation[0].framework_permille <= 1000);
        close_view(&view);
        close_view(&without);
    }
}

/* --- verdict --- */

static void whole_idle_segments_are_proof(void **state)
{
    (void)state;
    struct look view = {.frameworks = {torch_in(15, 1024, 3, 1024)}};
    view.frameworks[0].pinned_segment_count = 0;
    see(&view, &nccl_asks, 1);
    assert_int_equal(verdict_of(&view)->code, GOS_VERDICT_CACHE_HELD);
    assert_int_equal(verdict_of(&view)->confidence, GOS_CONFIDENCE_PROVEN);
    assert_string_equal(verdict_of(&view)->holder, "torch");
    assert_true(verdict_says(verdict_of(&view), "torch keeps 12.00 GiB that it does not use"));
    assert_true(verdict_advises(verdict_of(&view), "torch.cuda.empty_cache()"));
    close_view(&view);
}

struct doubt {
    const char *name;
    bool is_late;
    bool no_releasable;
    uint64_t books; /* MiB that torch has on our books; 0: what it says */
};

/* Each of them alone takes the proof away, though not the verdict. */
static void whatever_is_not_certain_is_not_proven(void **state)
{
    (void)state;
    static const struct doubt doubts[] = {{"late", .is_late = true},
                                          {"no map", .no_releasable = true},
                                          {"more than is on our books", .books = 14000}};
    for (size_t i = 0; i < sizeof doubts / sizeof doubts[0]; i++) {
        struct look view = {.frameworks = {torch_in(15, 1024, 3, 1024)}};
        struct scene scene = nccl_asks;
        view.frameworks[0].is_late = doubts[i].is_late;
        view.frameworks[0].releasable_known = !doubts[i].no_releasable;
        if (doubts[i].books) {
            scene.torch = doubts[i].books;
            scene.app = 15360 - doubts[i].books;
        }
        see(&view, &scene, 1);
        assert_int_equal(verdict_of(&view)->code, GOS_VERDICT_CACHE_HELD);
        assert_int_equal(verdict_of(&view)->confidence, GOS_CONFIDENCE_LIKELY);
        close_view(&view);
    }
}

static void a_hair_more_than_what_is_missing_is_no_proof(void **state)
{
    (void)state;
    struct look view = {.frameworks = {torch_in(30, 512, 29, 512)}};
    view.frameworks[0].pinned_segment_count = 0;
    see(&view, &nccl_asks, 1); /* 512 free, 512 missing, 512 idle; the last few MiB count */
    assert_int_equal(verdict_of(&view)->code, GOS_VERDICT_CACHE_HELD);
    assert_int_equal(verdict_of(&view)->confidence, GOS_CONFIDENCE_LIKELY);
    close_view(&view);
}

static void pieces_are_told_to_the_framework_that_asked(void **state)
{
    (void)state;
    struct look view = {.frameworks = {torch_in(30, 512, 30, 2)}};
    view.frameworks[0].is_late = true;
    view.frameworks[0].after_ns = 3000000;
    see(&view, &torch_asks, 1);
    assert_int_equal(verdict_of(&view)->code, GOS_VERDICT_FRAGMENTED);
    assert_int_equal(verdict_of(&view)->confidence, GOS_CONFIDENCE_LIKELY);
    assert_true(verdict_says(verdict_of(&view), "30 pieces, the largest of 510.0 MiB"));
    assert_true(verdict_says(verdict_of(&view), "3 ms after the failure"));
    assert_true(verdict_advises(verdict_of(&view), "expandable_segments:True"));
    assert_int_equal(view.diagnosis.fragmentation[0].framework_stuck_bytes, 30 * 510 * MIB);
    assert_int_equal(view.diagnosis.fragmentation[0].framework_permille, 1000);
    close_view(&view);
}

static void pieces_are_told_to_others_as_well(void **state)
{
    (void)state;
    struct look view = {.frameworks = {torch_in(30, 512, 30, 2)}};
    see(&view, &nccl_asks, 1);
    assert_int_equal(verdict_of(&view)->code, GOS_VERDICT_FRAGMENTED);
    assert_true(verdict_says(verdict_of(&view), "could give back nothing of it"));
    assert_int_equal(view.diagnosis.fragmentation[0].framework_permille, 1000);
    close_view(&view);
}

/* One handle of 20 MiB fails; 220 MiB of the same segment are made already. */
static void pieces_that_are_too_few_for_the_segment_are_none(void **state)
{
    (void)state;
    const struct scene handle_fails = {.torch = 15800, .ask = 96 * MIB, .by = SITE_TORCH};
    struct look view = {.frameworks = {torch_in(30, 512, 30, 506)}}; /* 180 MiB unused */

    scene_evidence(&handle_fails, &view.evidence);
    view.evidence.frameworks = view.frameworks;
    view.evidence.framework_count = 1;
    view.evidence.request.kind = GOS_KIND_PHYSICAL;
    gos_diagnose(&view.evidence, &view.diagnosis);
    assert_int_equal(verdict_of(&view)->code, GOS_VERDICT_FRAGMENTED);
    view.evidence.devices[0].unmapped_physical_bytes = 220 * MIB;
    gos_diagnose(&view.evidence, &view.diagnosis);
    assert_int_equal(verdict_of(&view)->code, GOS_VERDICT_EXHAUSTED_BY_PROCESS);
    assert_true(verdict_says(verdict_of(&view), "220.0 MiB of physical memory that nothing maps"));
    close_view(&view);
}

static void one_piece_is_not_in_pieces(void **state)
{
    (void)state;
    struct look view = {.frameworks = {torch_in(1, 15360, 1, 14336)}};
    const struct scene asks = {.torch = 15360, .ask = 1200 * MIB, .by = SITE_TORCH};

    see(&view, &asks, 1);
    assert_int_equal(verdict_of(&view)->code, GOS_VERDICT_EXHAUSTED_BY_PROCESS);
    close_view(&view);
}

/* Its word comes late where it was itself refused; what it says it uses is in no pieces. */
static void torch_that_uses_all_it_has_is_told_nothing_of_pieces(void **state)
{
    (void)state;
    struct look view = {.frameworks = {torch_in(30, 512, 30, 512)}};
    view.frameworks[0].is_late = true;
    see(&view, &torch_asks, 1);
    assert_int_equal(verdict_of(&view)->code, GOS_VERDICT_EXHAUSTED_BY_PROCESS);
    assert_false(verdict_advises(verdict_of(&view), "expandable_segments"));
    close_view(&view);
    see(&view, &torch_asks, 0);
    assert_true(verdict_advises(verdict_of(&view), "expandable_segments"));
    close_view(&view);
}

/* Without its word about its cache, the blocks that it told of say how much may be unused. */
static void blocks_in_use_that_torch_told_of_are_no_cache(void **state)
{
    (void)state;
    static const struct {
        uint64_t used;
        enum gos_verdict_code code;
    } cases[] = {{15360, GOS_VERDICT_EXHAUSTED_BY_PROCESS},
                 {15000, GOS_VERDICT_EXHAUSTED_BY_PROCESS},
                 {3072, GOS_VERDICT_CACHE_HELD},
                 {15361, GOS_VERDICT_CACHE_HELD}}; /* more than it holds: not on our books */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct look view = {.evidence = {.framework_count = 0}};
        scene_evidence(&nccl_asks, &view.evidence);
        view.evidence.devices[0].torch_used_known = true;
        view.evidence.devices[0].torch_used_bytes = cases[i].used * MIB;
        gos_diagnose(&view.evidence, &view.diagnosis);
        assert_int_equal(verdict_of(&view)->code, cases[i].code);
        close_view(&view);
    }
}

static void a_block_that_would_do_is_no_fragmentation(void **state)
{
    (void)state;
    struct look view = {.frameworks = {torch_in(5, 3072, 5, 2)}};
    view.frameworks[0].fitting_bytes = 5 * 3070 * MIB;
    see(&view, &torch_asks, 1);
    assert_int_equal(verdict_of(&view)->code, GOS_VERDICT_EXHAUSTED_BY_PROCESS);
    assert_int_equal(view.diagnosis.fragmentation[0].framework_permille, 0);
    close_view(&view);
}

static void too_little_that_is_unused_leaves_the_process(void **state)
{
    (void)state;
    for (int by_torch = 0; by_torch < 2; by_torch++) {
        struct look view = {.frameworks = {torch_in(15, 1024, 15, 1000)}};
        see(&view, by_torch ? &torch_asks : &nccl_asks, 1);
        assert_int_equal(verdict_of(&view)->code, GOS_VERDICT_EXHAUSTED_BY_PROCESS);
        assert_false(verdict_says(verdict_of(&view), "opaque"));
        assert_true(verdict_says(verdict_of(&view), "15.00 GiB reserved, 14.65 GiB in use"));
        close_view(&view);
    }
}

static void settings_that_are_on_are_not_advised(void **state)
{
    (void)state;
    struct look view = {.frameworks = {torch_in(30, 512, 30, 2)}};
    view.frameworks[0].max_split = GOS_SETTING_ON;
    see(&view, &torch_asks, 1);
    assert_true(verdict_advises(verdict_of(&view), "expandable_segments:True"));
    assert_false(verdict_advises(verdict_of(&view), "max_split_size_mb"));
    close_view(&view);
    view.frameworks[0].expandable = GOS_SETTING_ON;
    see(&view, &torch_asks, 1);
    assert_false(verdict_advises(verdict_of(&view), "expandable_segments"));
    assert_true(verdict_advises(verdict_of(&view), "large tensors first"));
    close_view(&view);
}

/* Torch set it from inside the program to off again, whatever the variable says. */
static void torchs_own_word_beats_the_environment(void **state)
{
    (void)state;
    struct scene scene = torch_asks;
    scene.variable = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True";
    struct look view = {.frameworks = {torch_in(30, 512, 30, 2)}};
    view.frameworks[0].expandable = GOS_SETTING_OFF;
    see(&view, &scene, 1);
    assert_true(verdict_advises(verdict_of(&view), "expandable_segments:True"));
    close_view(&view);
}

static void other_frameworks_are_likely_at_most(void **state)
{
    (void)state;
    static const char *const names[] = {"cupy", "jax"};
    for (size_t i = 0; i < 2; i++) {
        struct look view = {.frameworks = {framework(names[i], 15360, 1024)}};
        see(&view, &nccl_asks, 1);
        assert_int_equal(verdict_of(&view)->code, GOS_VERDICT_CACHE_HELD);
        assert_int_equal(verdict_of(&view)->confidence, GOS_CONFIDENCE_LIKELY);
        assert_string_equal(verdict_of(&view)->holder, names[i]);
        close_view(&view);
    }
}

static void a_framework_on_another_device_is_not_blamed(void **state)
{
    (void)state;
    struct look view = {.frameworks = {torch_in(15, 1024, 3, 1024)}};
    view.frameworks[0].device = 1;
    see(&view, &nccl_asks, 1);
    assert_int_equal(verdict_of(&view)->confidence, GOS_CONFIDENCE_POSSIBLE);
    assert_int_equal(line(&view, GOS_LEDGER_FRAMEWORK_IDLE), 0);
    close_view(&view);
}

/* A proof promises that the request would have fitted had the cache been given back. */
static void proofs_hold(void **state)
{
    (void)state;
    uint64_t seed = 11;
    int proofs = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct look view = {.frameworks = {any_framework(&seed)}};
        struct gos_framework_evidence *torch = &view.frameworks[0];
        if (torch->reserved_bytes > 15800 * MIB || strcmp(torch->name, "torch") != 0)
            continue;
        struct scene scene = {.torch = torch->reserved_bytes / MIB,
                              .ask = (1 + random_below(&seed, 9000)) * MIB,
                              .by = random_below(&seed, 4) ? SITE_NCCL : SITE_TORCH};
        torch->device = 0;
        see(&view, &scene, 1);
        if (verdict_of(&view)->code == GOS_VERDICT_CACHE_HELD &&
            verdict_of(&view)->confidence == GOS_CONFIDENCE_PROVEN) {
            proofs++;
            assert_true(scene.by == SITE_NCCL && !torch->is_late && !torch->in_driver_pools);
            assert_true(scene_free(&scene) * MIB + torch->releasable_bytes >= scene.ask);
            assert_true(scene_free(&scene) * MIB < scene.ask);
        }
        close_view(&view);
    }
    assert_true(proofs > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unused_memory_moves_to_a_line_of_its_own),
        cmocka_unit_test(expandable_segments_are_physical_memory),
        cmocka_unit_test(what_lies_in_the_drivers_pools_is_not_counted_twice),
        cmocka_unit_test(numbers_of_different_moments_make_no_negative_line),
        cmocka_unit_test(sums_hold_whatever_frameworks_say),
        cmocka_unit_test(whole_idle_segments_are_proof),
        cmocka_unit_test(whatever_is_not_certain_is_not_proven),
        cmocka_unit_test(a_hair_more_than_what_is_missing_is_no_proof),
        cmocka_unit_test(pieces_are_told_to_the_framework_that_asked),
        cmocka_unit_test(pieces_are_told_to_others_as_well),
        cmocka_unit_test(pieces_that_are_too_few_for_the_segment_are_none),
        cmocka_unit_test(one_piece_is_not_in_pieces),
        cmocka_unit_test(torch_that_uses_all_it_has_is_told_nothing_of_pieces),
        cmocka_unit_test(blocks_in_use_that_torch_told_of_are_no_cache),
        cmocka_unit_test(a_block_that_would_do_is_no_fragmentation),
        cmocka_unit_test(too_little_that_is_unused_leaves_the_process),
        cmocka_unit_test(settings_that_are_on_are_not_advised),
        cmocka_unit_test(torchs_own_word_beats_the_environment),
        cmocka_unit_test(other_frameworks_are_likely_at_most),
        cmocka_unit_test(a_framework_on_another_device_is_not_blamed),
        cmocka_unit_test(proofs_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
