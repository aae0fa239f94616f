/*
 * The verdict on one scene after the other, in numbers, and the matrix of what
 * was expected against what was said.  Twins differ in one number each.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "diagnose_fixture.h"

#define IS(code, confidence) GOS_VERDICT_##code, GOS_CONFIDENCE_##confidence
#define PROCESS_PROVEN IS(EXHAUSTED_BY_PROCESS, PROVEN)
#define PROCESS_LIKELY IS(EXHAUSTED_BY_PROCESS, LIKELY)

static const struct scene scenes[] = {
    /* --- caches of frameworks: their segments cannot be looked into --- */
    {"torch_holds_segments_and_nccl_asks", IS(CACHE_HELD, POSSIBLE), .torch = 15360,
     .ask = 1024 * MIB, .by = SITE_NCCL, .says = "torch keeps up to 15.00 GiB that it may not use",
     .says_too = "opaque", .advises = "torch.cuda.empty_cache()"},
    {"the_same_during_a_capture", IS(CACHE_HELD, POSSIBLE), .torch = 15360, .ask = 1024 * MIB,
     .by = SITE_NCCL, .capture = GOS_CAPTURE_THIS_STREAM, .says = "captured"},
    {"a_kernel_cannot_be_loaded_beside_torchs_cache", IS(CACHE_HELD, POSSIBLE), .torch = 15869,
     .unsized = true, .kind = GOS_KIND_NONE, .by = SITE_TORCH, .says = "is not known"},
    {"torch_asks_for_itself", PROCESS_LIKELY, .torch = 15360, .ask = 2048 * MIB, .by = SITE_TORCH,
     .says = "opaque", .advises = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"},
    {"thirty_torch_segments_each_with_a_live_block", PROCESS_LIKELY, .torch = 15360,
     .ask = 1024 * MIB, .by = SITE_TORCH, .variable = "PYTORCH_CUDA_ALLOC_CONF=backend:native",
     .advises = "Add expandable_segments:True to PYTORCH_CUDA_ALLOC_CONF"},
    {"expandable_segments_are_already_on", PROCESS_LIKELY, .torch = 15360, .ask = 1024 * MIB,
     .by = SITE_TORCH, .variable = "PYTORCH_ALLOC_CONF=expandable_segments:True",
     .advises = "garbage_collection_threshold", .never_advises = "expandable_segments"},
    {"expandable_segments_show_in_torchs_memory", PROCESS_LIKELY, .torch_physical = 15360,
     .ask = 1024 * MIB, .by = SITE_TORCH, .never_advises = "expandable_segments"},
    {"both_settings_are_already_on", PROCESS_LIKELY, .torch = 15360, .ask = 1024 * MIB,
     .by = SITE_TORCH,
     .variable = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, "
                 "garbage_collection_threshold:0.8",
     .advises = "memory_summary", .never_advises = "ALLOC_CONF"},
    {"torch_holds_too_little_to_matter", IS(EXHAUSTED_BY_PROCESS, PROVEN), .torch = 256,
     .app = 15000, .ask = 1024 * MIB, .by = SITE_NCCL, .says = "libtrain.so"},

    /* --- pools --- */
    {"a_free_waits_behind_running_work", IS(PENDING_FREE, PROVEN), .pool_pending = 12288,
     .ask = 8192 * MIB, .by = SITE_APP, .says = "12.00 GiB were freed", .says_too = "Still at work",
     .advises = "cudaStreamSynchronize"},
    {"a_free_is_done_but_nobody_waited", IS(PENDING_FREE, PROVEN), .pool_pending = 12288,
     .pending_done = true, .ask = 8192 * MIB, .by = SITE_APP, .says = "never waited"},
    {"a_free_waits_but_others_live_in_the_pool", IS(PENDING_FREE, LIKELY), .pool_pending = 8000,
     .pool_live = 4288, .ask = 8192 * MIB, .by = SITE_APP},
    {"a_free_waits_but_would_not_be_enough", PROCESS_PROVEN, .pool_pending = 1024,
     .pool_live = 12288, .ask = 8192 * MIB, .by = SITE_APP},
    {"pending_and_idle_together_are_enough", IS(PENDING_FREE, PROVEN), .pool_pending = 3000,
     .pool_idle = 3000, .app = 9000, .ask = 6000 * MIB, .by = SITE_APP},
    {"a_second_pool_keeps_idle_memory", IS(CACHE_HELD, PROVEN), .pool2_idle = 12288,
     .ask = 8192 * MIB, .by = SITE_APP, .says = "12.00 GiB that nobody uses",
     .advises = "cudaMemPoolTrimTo"},
    {"the_same_for_a_stream_ordered_request", IS(CACHE_HELD, LIKELY), .pool2_idle = 12288,
     .ask = 8192 * MIB, .kind = GOS_KIND_POOL, .by = SITE_APP},
    {"twin_the_pool_is_in_use", PROCESS_PROVEN, .pool_live = 12288, .ask = 8192 * MIB,
     .by = SITE_APP},
    {"graphs_keep_idle_memory", IS(CACHE_HELD, LIKELY), .graph_idle = 12288, .ask = 8192 * MIB,
     .by = SITE_APP, .says = "idle graph memory"},
    {"the_requests_own_pool_is_in_pieces", IS(FRAGMENTED, LIKELY), .pool_idle = 6144,
     .pool_live = 8000, .ask = 4096 * MIB, .kind = GOS_KIND_POOL, .by = SITE_APP,
     .says = "not in one piece"},
    {"async_of_what_is_left_fails", PROCESS_PROVEN, .pool_live = 12288, .ask = 8192 * MIB,
     .kind = GOS_KIND_POOL, .by = SITE_APP, .says = "4.50 GiB",
     .says_too = "train.py:88 load_batch", .advises = "train.py:88 load_batch"},
    {"a_pool_that_tells_nothing_proves_nothing", PROCESS_LIKELY, .pool_live = 12288,
     .pool_silent = true, .ask = 8192 * MIB, .by = SITE_APP},

    /* --- blocks --- */
    {"every_other_mib_was_freed", IS(FRAGMENTED, PROVEN), .pieces = 7936, .ask = 4 * MIB,
     .by = SITE_APP, .says = "2 MiB blocks", .says_too = "pieces.py:7 fill pins 7936 blocks",
     .advises = "pieces.py:7 fill"},
    {"twin_a_small_request_does_not_need_a_whole_block", PROCESS_LIKELY, .pieces = 7936,
     .ask = MIB / 2, .by = SITE_APP},
    {"twin_too_few_stuck_bytes", PROCESS_PROVEN, .pieces = 100, .app = 15000, .ask = 1024 * MIB,
     .by = SITE_APP},
    {"blocks_without_our_own_number_are_not_proof", IS(FRAGMENTED, LIKELY), .pieces = 7936,
     .ask = 4 * MIB, .by = SITE_APP, .view = VIEW_NONE},

    /* --- neighbours --- */
    {"a_neighbour_holds_it", IS(EXHAUSTED_BY_OTHERS, PROVEN), .others = 10752, .ask = 8192 * MIB,
     .by = SITE_APP, .says = "pid 4242 (neighbour) holds 10.50 GiB", .says_too = "10.50 GiB",
     .advises = "CUDA_VISIBLE_DEVICES"},
    {"twin_a_neighbour_is_too_small_to_matter", PROCESS_PROVEN, .others = 1024, .app = 12288,
     .ask = 8192 * MIB, .by = SITE_APP},
    {"own_children_hold_it", IS(EXHAUSTED_BY_OTHERS, PROVEN), .children = 10752, .ask = 8192 * MIB,
     .by = SITE_APP, .says = "child processes hold 10.50 GiB", .advises = "worker processes"},
    {"something_hidden_holds_it", IS(EXHAUSTED_BY_OTHERS, LIKELY), .hidden = 10752,
     .ask = 8192 * MIB, .by = SITE_APP, .says = "nobody that can be seen", .advises = "nvidia-smi"},
    {"twin_of_hidden_it_is_our_own", PROCESS_PROVEN, .app = 10752, .ask = 8192 * MIB,
     .by = SITE_APP},
    {"the_list_of_processes_is_forbidden", IS(EXHAUSTED_BY_OTHERS, LIKELY), .others = 10752,
     .ask = 8192 * MIB, .by = SITE_APP, .view = VIEW_FORBIDDEN},
    {"a_neighbour_without_a_number", IS(EXHAUSTED_BY_OTHERS, LIKELY), .others = 10752,
     .ask = 8192 * MIB, .by = SITE_APP, .view = VIEW_NO_NUMBERS},
    {"pids_of_another_namespace_while_we_are_not_listed", IS(EXHAUSTED_BY_OTHERS, LIKELY),
     .others = 10752, .ask = 8192 * MIB, .by = SITE_APP, .view = VIEW_NOT_LISTED},
    {"our_own_context_is_not_taken_for_a_neighbour", PROCESS_LIKELY, .app = 15600, .ask = 300 * MIB,
     .by = SITE_APP, .view = VIEW_NONE},
    {"twin_with_our_own_number_it_is_proven", PROCESS_PROVEN, .app = 15600, .ask = 300 * MIB,
     .by = SITE_APP},
    {"proof_holds_without_nvml_when_hidden_is_too_small", PROCESS_PROVEN, .pool_live = 12288,
     .ask = 8192 * MIB, .by = SITE_APP, .view = VIEW_NONE},
    {"a_few_hidden_mib_are_nobody", PROCESS_LIKELY, .hidden = 100, .app = 15700, .ask = 100 * MIB,
     .by = SITE_APP},

    /* --- just enough, and just not --- */
    {"short_by_one_byte", PROCESS_PROVEN, .app = 8192, .ask = 7680 * MIB + 1, .by = SITE_APP,
     .says = "short by 1 B"},
    {"twin_it_would_have_fitted", IS(UNEXPLAINED, POSSIBLE), .app = 8192, .ask = 7000 * MIB,
     .by = SITE_APP, .says = "are free now"},
    {"the_last_mib_cannot_be_had", PROCESS_LIKELY, .app = 15869, .ask = 2 * MIB, .by = SITE_APP,
     .says = "last few MiB"},
    {"managed_memory_may_move_so_nothing_is_proven", PROCESS_LIKELY, .managed = 12288,
     .ask = 8192 * MIB, .by = SITE_APP},
    {"a_launch_on_a_full_device", PROCESS_LIKELY, .app = 15869, .unsized = true,
     .kind = GOS_KIND_NONE, .by = SITE_APP, .says = "is not known"},
    {"twin_a_launch_on_an_empty_device", IS(UNEXPLAINED, POSSIBLE), .unsized = true,
     .kind = GOS_KIND_NONE, .by = SITE_APP},

    /* --- sizes --- */
    {"a_size_below_zero_after_an_ignored_error", IS(REQUEST_TOO_LARGE, PROVEN),
     .ask = 0xFFFFFFFFFFFFF000u, .by = SITE_APP, .earlier_error = 209, .says = "0xfffffffffffff000",
     .says_too = "-4096", .advises = "cuLaunchKernel"},
    {"the_earlier_error_is_named", IS(REQUEST_TOO_LARGE, PROVEN), .ask = 0xFFFFFFFFFFFFF000u,
     .by = SITE_APP, .earlier_error = 209, .says = "returned 209"},
    {"a_tebibyte_on_a_small_device", IS(REQUEST_TOO_LARGE, PROVEN), .ask = 1024 * GIB,
     .by = SITE_APP, .says = "1.00 TiB"},
    {"a_little_more_than_the_device", IS(REQUEST_TOO_LARGE, PROVEN), .ask = 17 * GIB,
     .by = SITE_APP, .says = "17.00 GiB"},
    {"more_than_an_empty_device_gives", IS(REQUEST_TOO_LARGE, LIKELY), .ask = 16000 * MIB,
     .by = SITE_APP, .says = "even with everything freed"},
    {"a_petabyte_of_host_memory", IS(REQUEST_TOO_LARGE, LIKELY), .ask = 1ull << 50,
     .kind = GOS_KIND_HOST, .by = SITE_APP},
    {"a_wrapped_size_on_a_small_device", IS(REQUEST_TOO_LARGE, PROVEN), .total = 2048,
     .ask = 0xFFFFF000u, .by = SITE_APP, .says = "32-bit"},

    /* --- the host --- */
    {"pinned_memory_beyond_what_is_available", IS(HOST_MEMORY, LIKELY), .ask = 8192 * MIB,
     .kind = GOS_KIND_HOST, .host_available = 6144, .by = SITE_APP, .says = "6.00 GiB"},
    {"pinned_memory_beyond_what_exists", IS(HOST_MEMORY, PROVEN), .ask = 600 * GIB,
     .kind = GOS_KIND_HOST, .by = SITE_APP},
    {"twin_pinned_memory_that_is_there", IS(UNEXPLAINED, POSSIBLE), .ask = 8192 * MIB,
     .kind = GOS_KIND_HOST, .by = SITE_APP},
    {"the_address_limit_is_near", IS(HOST_LIMIT, PROVEN), .ask = 8192 * MIB, .address_room = 1024,
     .by = SITE_APP, .says = "RLIMIT_AS", .advises = "ulimit -v"},
    {"twin_the_address_limit_is_far", IS(UNEXPLAINED, POSSIBLE), .ask = 8192 * MIB,
     .address_room = 9000, .by = SITE_APP},
    {"twin_the_device_is_full_as_well", PROCESS_PROVEN, .app = 15000, .ask = 8192 * MIB,
     .address_room = 1024, .by = SITE_APP},
    {"the_cgroup_is_full", IS(HOST_LIMIT, LIKELY), .ask = 8192 * MIB, .kind = GOS_KIND_HOST,
     .cgroup_room = 4096, .by = SITE_APP, .says = "cgroup"},
    {"too_many_mappings", IS(HOST_LIMIT, LIKELY), .ask = 1024 * MIB, .maps_left = 3, .by = SITE_APP,
     .says = "vm.max_map_count"},
    {"the_address_space_is_used_up", IS(HOST_LIMIT, PROVEN), .ask = 8192 * GIB,
     .kind = GOS_KIND_ADDRESS, .addresses_reserved_gib = 125 * 1024, .by = SITE_APP},
    {"the_host_is_starved_while_the_device_has_room", IS(HOST_MEMORY, LIKELY), .ask = 64 * MIB,
     .host_available = 16, .by = SITE_APP, .says = "not the reason"},

    /* --- the call itself --- */
    {"a_forked_child", IS(FORKED, PROVEN), .ask = MIB, .result = 3, .forked = true,
     .by = SITE_TORCH, .says = "Process 4700", .says_too = "torch", .advises = "spawn"},
    {"twin_not_initialised_but_not_forked", IS(DRIVER_OR_CONTEXT, PROVEN), .ask = MIB, .result = 3,
     .by = SITE_APP},
    {"a_capture_forbids_it", IS(IN_CAPTURE, PROVEN), .ask = MIB, .result = 900, .by = SITE_APP,
     .capture = GOS_CAPTURE_THIS_STREAM, .advises = "warm-up"},
    {"a_broken_context", IS(DRIVER_OR_CONTEXT, PROVEN), .ask = MIB, .result = 700, .by = SITE_APP,
     .says = "Not memory"},
    {"a_driver_of_another_version", IS(DRIVER_OR_CONTEXT, PROVEN), .ask = MIB, .result = 803,
     .by = SITE_APP, .says = "different versions"},
    {"mps_takes_no_more_clients", IS(POLICY_LIMIT, PROVEN), .ask = MIB, .result = 808,
     .by = SITE_APP},
    {"mps_limits_the_share", IS(POLICY_LIMIT, LIKELY), .app = 2048, .ask = 2048 * MIB,
     .variable = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=1=1G,0=3G", .by = SITE_APP},
    {"twin_mps_limits_another_device", IS(UNEXPLAINED, POSSIBLE), .app = 2048, .ask = 2048 * MIB,
     .variable = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=1=3G", .by = SITE_APP},
};
#define SCENE_COUNT (sizeof(scenes) / sizeof(scenes[0]))

static unsigned matrix[GOS_VERDICT_COUNT][GOS_VERDICT_COUNT];

static bool wrong_words(const struct scene *scene, const struct gos_verdict *verdict)
{
    return (scene->says && !verdict_says(verdict, scene->says)) ||
           (scene->says_too && !verdict_says(verdict, scene->says_too)) ||
           (scene->advises && !verdict_advises(verdict, scene->advises)) ||
           (scene->never_advises && verdict_advises(verdict, scene->never_advises)) ||
           verdict->advice_count == 0 || verdict->summary[0] == '\0';
}

static void print_verdict(const struct scene *scene, const struct gos_verdict *verdict)
{
    print_error("%s: %s (%s), expected %s (%s)\n  %s\n", scene->name,
                gos_verdict_code(verdict->code), gos_confidence_code(verdict->confidence),
                gos_verdict_code(scene->code), gos_confidence_code(scene->confidence),
                verdict->summary);
    for (size_t i = 0; i < verdict->evidence_count; i++)
        print_error("  . %s\n", verdict->evidence[i]);
    for (size_t i = 0; i < verdict->advice_count; i++)
        print_error("  > %s\n", verdict->advice[i]);
}

static bool scene_fails(const struct scene *scene)
{
    static struct gos_evidence evidence;
    static struct gos_diagnosis diagnosis;
    scene_evidence(scene, &evidence);
    gos_diagnose(&evidence, &diagnosis);
    const struct gos_verdict *verdict = &diagnosis.verdict;
    matrix[scene->code][verdict->code]++;
    bool fails = verdict->code != scene->code || verdict->confidence != scene->confidence ||
                 wrong_words(scene, verdict);
    if (fails)
        print_verdict(scene, verdict);
    gos_scratch_release(&evidence.scratch);
    return fails;
}

static void verdicts_fit_their_scenes(void **state)
{
    (void)state;
    unsigned failed = 0;
    for (size_t i = 0; i < SCENE_COUNT; i++)
        failed += scene_fails(&scenes[i]);
    assert_int_equal(failed, 0);
}

/* Rows: expected; columns: said, by number. */
static void nothing_lies_off_the_diagonal(void **state)
{
    (void)state;
    unsigned off = 0;
    for (int row = 0; row < GOS_VERDICT_COUNT; row++) {
        print_message("%2d %-22s", row, gos_verdict_code((enum gos_verdict_code)row));
        for (int column = 0; column < GOS_VERDICT_COUNT; column++) {
            print_message("%4u", matrix[row][column]);
            off += row != column ? matrix[row][column] : 0;
        }
        print_message("\n");
    }
    assert_int_equal(off, 0);
}

static void diagnose_scene(const struct scene *scene, struct gos_evidence *evidence,
                           struct gos_diagnosis *diagnosis)
{
    scene_evidence(scene, evidence);
    gos_diagnose(evidence, diagnosis);
}

static void shortfall_is_what_was_asked_minus_what_is_free(void **state)
{
    (void)state;
    static struct gos_evidence evidence;
    static struct gos_diagnosis diagnosis;
    struct scene scene = {
        .pool_live = 12288, .ask = 8192 * MIB, .kind = GOS_KIND_POOL, .by = SITE_APP};
    diagnose_scene(&scene, &evidence, &diagnosis);
    assert_int_equal(diagnosis.verdict.short_bytes, 4608 * MIB);
    assert_string_equal(diagnosis.verdict.holder, "libtrain.so");
    assert_int_equal(diagnosis.verdict.holder_bytes, 12288 * MIB);
    assert_int_equal(diagnosis.verdict.pending_bytes, 0);
    assert_int_equal(diagnosis.verdict.idle_bytes, 0);
    gos_scratch_release(&evidence.scratch);
}

static void recovery_learns_what_a_step_could_give_back(void **state)
{
    (void)state;
    static struct gos_evidence evidence;
    static struct gos_diagnosis diagnosis;
    struct scene scene = {.pool_pending = 3000,
                          .pool_idle = 2000,
                          .pool2_idle = 1000,
                          .graph_idle = 500,
                          .app = 8000,
                          .ask = 4096 * MIB,
                          .by = SITE_APP};
    diagnose_scene(&scene, &evidence, &diagnosis);
    assert_int_equal(diagnosis.verdict.pending_bytes, 3000 * MIB);
    assert_int_equal(diagnosis.verdict.idle_bytes, 3500 * MIB);
    gos_scratch_release(&evidence.scratch);
}

static void the_next_rule_that_applies_is_the_runner_up(void **state)
{
    (void)state;
    static struct gos_evidence evidence;
    static struct gos_diagnosis diagnosis;
    struct scene scene = {.torch = 15360, .ask = 1024 * MIB, .by = SITE_NCCL};
    diagnose_scene(&scene, &evidence, &diagnosis);
    assert_true(diagnosis.verdict.has_runner_up);
    assert_int_equal(diagnosis.verdict.runner_up, GOS_VERDICT_EXHAUSTED_BY_PROCESS);
    assert_string_equal(diagnosis.verdict.holder, "torch");
    gos_scratch_release(&evidence.scratch);
}

static bool says_how_long(uint64_t unused_mib)
{
    static struct gos_evidence evidence;
    static struct gos_diagnosis diagnosis;
    struct scene scene = {.torch = 15360,
                          .torch_unused = unused_mib,
                          .torch_pieces = unused_mib,
                          .course = COURSE_TORCH,
                          .ask = 1000 * MIB,
                          .by = SITE_TORCH};
    diagnose_scene(&scene, &evidence, &diagnosis);
    assert_true(verdict_says(&diagnosis.verdict, "grew steadily"));
    bool said = verdict_says(&diagnosis.verdict, "would have lasted for about");
    gos_scratch_release(&evidence.scratch);
    return said;
}

/* One allocation took 6.4 MiB. */
static void what_would_not_do_for_one_more_is_not_reckoned_with(void **state)
{
    (void)state;
    assert_true(says_how_long(8));
    assert_false(says_how_long(4));
}

static void a_snapshot_accuses_nobody(void **state)
{
    (void)state;
    static struct gos_evidence evidence;
    static struct gos_diagnosis diagnosis;
    struct scene scene = {.torch = 15360};
    scene_evidence(&scene, &evidence);
    evidence.request = (struct gos_request){.device = -1};
    gos_diagnose(&evidence, &diagnosis);
    assert_int_equal(diagnosis.device, 0);
    assert_int_equal(diagnosis.verdict.code, GOS_VERDICT_UNEXPLAINED);
    assert_int_equal(diagnosis.verdict.advice_count, 0);
    assert_int_equal(diagnosis.verdict.short_bytes, 0);
    assert_string_equal(diagnosis.holders[0].name, "torch");
    gos_scratch_release(&evidence.scratch);
}

static void an_unreadable_device_is_unexplained(void **state)
{
    (void)state;
    static struct gos_evidence evidence;
    static struct gos_diagnosis diagnosis;
    struct scene scene = {.ask = 8192 * MIB, .view = VIEW_NONE, .by = SITE_APP};
    scene_evidence(&scene, &evidence);
    evidence.devices[0].driver_known = false;
    gos_diagnose(&evidence, &diagnosis);
    assert_int_equal(diagnosis.verdict.code, GOS_VERDICT_UNEXPLAINED);
    assert_true(verdict_says(&diagnosis.verdict, "could not be read"));
    gos_scratch_release(&evidence.scratch);
}

/* More of it than the device has: it is named beside what is there for certain. */
static void managed_memory_is_no_part_of_what_fills_the_device(void **state)
{
    (void)state;
    static struct gos_evidence evidence;
    static struct gos_diagnosis diagnosis;
    struct scene scene = {.app = 15871, .managed = 1, .ask = 512 * MIB, .by = SITE_APP};
    scene_evidence(&scene, &evidence);
    evidence.devices[0].live[GOS_KIND_MANAGED].live_bytes = 32 * GIB;
    for (size_t i = 0; i < evidence.use_count; i++)
        if (evidence.uses[i].kind == GOS_KIND_MANAGED)
            evidence.uses[i].live_bytes = 32 * GIB;
    gos_diagnose(&evidence, &diagnosis);
    assert_int_equal(diagnosis.verdict.code, GOS_VERDICT_EXHAUSTED_BY_PROCESS);
    assert_true(verdict_says(&diagnosis.verdict,
                             "holds 15.50 GiB in use, most of it by libtrain.so (15.50 GiB), and "
                             "32.00 GiB managed, which may be on the host."));
    assert_true(verdict_says(&diagnosis.verdict, "32.00 GiB in 3 allocations of managed memory"));
    assert_int_equal(diagnosis.holders[0].managed_bytes, 32 * GIB);
    gos_scratch_release(&evidence.scratch);
}

/* The bytes are the other's, but ending it would take them from this process. */
static void owner_of_what_is_mapped_here_is_not_to_be_ended(void **state)
{
    static struct gos_evidence evidence;
    static struct gos_diagnosis diagnosis;
    (void)state;
    struct scene scene = {.others = 10752, .ask = 8192 * MIB, .by = SITE_APP};
    scene_evidence(&scene, &evidence);
    gos_diagnose(&evidence, &diagnosis);
    assert_true(verdict_advises(&diagnosis.verdict, "End pid 4242"));
    evidence.devices[0].live[GOS_KIND_IMPORTED].live_bytes = 6000 * MIB;
    gos_diagnose(&evidence, &diagnosis);
    assert_int_equal(diagnosis.verdict.code, GOS_VERDICT_EXHAUSTED_BY_OTHERS);
    assert_true(verdict_says(&diagnosis.verdict, "5.86 GiB are mapped here (IPC)"));
    assert_true(verdict_advises(&diagnosis.verdict, "uses 5.86 GiB of that itself"));
    assert_false(verdict_advises(&diagnosis.verdict, "End pid"));
    evidence.devices[0].live[GOS_KIND_IMPORTED].live_bytes = 2 * MIB;
    gos_diagnose(&evidence, &diagnosis);
    assert_true(verdict_advises(&diagnosis.verdict,
                                "End pid 4242 (neighbour) if it is not needed and not the owner of "
                                "the 2.0 MiB that are mapped here (IPC)"));
    assert_false(verdict_advises(&diagnosis.verdict, "of that itself"));
    gos_scratch_release(&evidence.scratch);
}

/* A list of another namespace's pids has this process under a number that it does not know. */
static void who_may_be_this_process_itself_is_not_to_be_ended(void **state)
{
    static struct gos_evidence evidence;
    static struct gos_diagnosis diagnosis;
    (void)state;
    struct scene scene = {
        .app = 11000, .others = 3000, .ask = 3000 * MIB, .by = SITE_APP, .view = VIEW_NOT_LISTED};
    scene_evidence(&scene, &evidence);
    evidence.processes[evidence.process_count++] = (struct gos_process_evidence){
        .pid = 31337, .used_bytes = 11512 * MIB, .relation = GOS_PROCESS_UNSEEN};
    gos_diagnose(&evidence, &diagnosis);
    assert_int_equal(diagnosis.verdict.runner_up, GOS_VERDICT_EXHAUSTED_BY_OTHERS);
    assert_false(verdict_advises(&diagnosis.verdict, "31337"));
    assert_false(verdict_says(&diagnosis.verdict, "31337"));
    assert_true(verdict_advises(&diagnosis.verdict, "End pid 4242"));
    gos_scratch_release(&evidence.scratch);
}

static void child_is_none_of_the_other_processes(void **state)
{
    static struct gos_evidence evidence;
    static struct gos_diagnosis diagnosis;
    (void)state;
    struct scene scene = {.app = 1000,
                          .others = 3200,
                          .children = 5000,
                          .hidden = 3000,
                          .ask = 5000 * MIB,
                          .by = SITE_APP};
    scene_evidence(&scene, &evidence);
    evidence.processes[evidence.process_count++] = (struct gos_process_evidence){
        .pid = 777, .used_bytes = 3000 * MIB, .relation = GOS_PROCESS_OTHER};
    gos_diagnose(&evidence, &diagnosis);
    assert_true(verdict_says(&diagnosis.verdict,
                             "Other processes hold 6.05 GiB (most: pid 4242 (neighbour));"));
    gos_scratch_release(&evidence.scratch);
}

static bool says_shape(uint64_t ask)
{
    static struct gos_evidence evidence;
    static struct gos_diagnosis diagnosis;
    struct scene scene = {.app = 14000, .ask = ask, .by = SITE_APP};
    scene_evidence(&scene, &evidence);
    gos_diagnose(&evidence, &diagnosis);
    assert_int_equal(diagnosis.verdict.code, GOS_VERDICT_EXHAUSTED_BY_PROCESS);
    bool said = verdict_says(&diagnosis.verdict, "perhaps a size that wrapped around");
    assert_true(said == verdict_advises(&diagnosis.verdict, "just beside a limit of 32-bit"));
    gos_scratch_release(&evidence.scratch);
    return said;
}

/* Round sizes are meant; so are those that no wrapped number gives. */
static void size_just_beside_a_limit_of_32_bits_is_pointed_out(void **state)
{
    (void)state;
    assert_true(says_shape((1ull << 32) - 4096));
    assert_true(says_shape((1ull << 32) - 1));
    assert_true(says_shape((1ull << 31) + 512));
    assert_false(says_shape(1ull << 32));
    assert_false(says_shape(1ull << 31));
    assert_false(says_shape((1ull << 32) - 2 * MIB));
    assert_false(says_shape(3ull << 30));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts_fit_their_scenes),
        cmocka_unit_test(nothing_lies_off_the_diagonal),
        cmocka_unit_test(shortfall_is_what_was_asked_minus_what_is_free),
        cmocka_unit_test(recovery_learns_what_a_step_could_give_back),
        cmocka_unit_test(the_next_rule_that_applies_is_the_runner_up),
        cmocka_unit_test(what_would_not_do_for_one_more_is_not_reckoned_with),
        cmocka_unit_test(who_may_be_this_process_itself_is_not_to_be_ended),
        cmocka_unit_test(child_is_none_of_the_other_processes),
        cmocka_unit_test(owner_of_what_is_mapped_here_is_not_to_be_ended),
        cmocka_unit_test(size_just_beside_a_limit_of_32_bits_is_pointed_out),
        cmocka_unit_test(a_snapshot_accuses_nobody),
        cmocka_unit_test(an_unreadable_device_is_unexplained),
        cmocka_unit_test(managed_memory_is_no_part_of_what_fills_the_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
