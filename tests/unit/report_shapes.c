#include "report_shapes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GIB (UINT64_C(1) << 30)
#define MIB (UINT64_C(1) << 20)

/* --- stacks: python, native only, machinery only --- */

static const struct gos_module modules[] = {
    {.index = 0, .name = "libgpuoomshim.so", .path = "/opt/lib/libgpuoomshim.so"},
    {.index = 3,
     .name = "libcudart.so.13",
     .path = "/usr/lib/libcudart.so.13",
     .build_id = {0xab, 0x01, 0xff},
     .build_id_bytes = 3},
    {.index = 7, .name = "libcupy_core.so", .path = "/env/lib/libcupy_core.so"},
    {.index = 9, .name = "libpython3.12.so.1.0", .path = "/usr/lib/libpython3.12.so.1.0"},
};

static struct gos_shown_frame native[] = {
    {&modules[0], 0x1000, "hook", 16},
    {&modules[1], 0x2000, "cudaMalloc", 30},
    {&modules[2], 0x3456, "allocate_block", 77},
    {NULL, 0x7f0000001234, NULL, 0},
    {&modules[2], 0x9999, NULL, 0},
    {&modules[3], 0x4000, "_PyEval_EvalFrameDefault", 4000},
};

static const struct gos_python_frame python[] = {
    {"/env/lib/python3.12/site-packages/cupy/memory.py", "MemoryPool.malloc", 1012},
    {"<frozen importlib._bootstrap>", "_call_with_frames_removed", 241},
    {"/home/user/train.py", "load_batch", 88},
    {"/home/user/train.py", "main", 140},
};

static const struct gos_python_frame hostile_python[] = {
    {"/home/u\x1b[31m/\xff\xfe\"quoted\"\\back\n.py", "f\x01\x7f\xc2\x9b", -1},
    {NULL, NULL, 0},
};

static const struct gos_python_frame user_python[] = {
    {"/home/user/train.py", "load_batch", 88},
    {"/home/user/train.py", "main", 140},
};

static const struct gos_python_frame other_python[] = {
    {"/home/user/train.py", "load_batch", 88},
    {"/home/user/train.py", "evaluate", 151},
};

static struct gos_shown_stack stacks[] = {
    {.site = 11, .native_count = 6, .native = native, .python_count = 4, .python = python},
    {.site = 12, .native_count = 5, .native = native},
    {.site = 13, .native_count = 1, .native = native},
    {.site = 14, .python_count = 2, .python = hostile_python},
    {.site = 15, .python_count = 2, .python = user_python, .tag = "kv-cache"},
    {.site = 16, .python_count = 2, .python = user_python},
    {.site = 17, .python_count = 2, .python = other_python},
};

static const struct gos_module *named_modules[] = {&modules[0], &modules[1], &modules[2],
                                                   &modules[3]};

/* --- the plain failure that the others vary --- */

static void *room(struct shape *shape, size_t bytes)
{
    void *memory = gos_scratch_alloc(&shape->evidence.scratch, bytes);
    if (!memory)
        abort();
    return memory;
}

static void set_ledger(struct shape *shape, int device, uint64_t free_bytes, uint64_t live)
{
    struct gos_ledger *ledger = &shape->diagnosis.ledgers[device];
    const uint64_t total = 150754820096u;
    ledger->known = true;
    ledger->total_bytes = total;
    ledger->lines[GOS_LEDGER_FREE].bytes = (int64_t)free_bytes;
    ledger->lines[GOS_LEDGER_RESERVE].bytes = 616 * (int64_t)MIB;
    ledger->lines[GOS_LEDGER_LIVE_DEVICE].bytes = (int64_t)live;
    ledger->lines[GOS_LEDGER_CONTEXT].bytes = 524 * (int64_t)MIB;
    ledger->lines[GOS_LEDGER_CONTEXT].source = GOS_SOURCE_DERIVED;
    ledger->lines[GOS_LEDGER_HIDDEN].bytes =
        (int64_t)(total - free_bytes - live - (616 + 524) * MIB);
    ledger->lines[GOS_LEDGER_HIDDEN].source = GOS_SOURCE_DERIVED;
    ledger->own_bytes = live + 524 * MIB;
}

static void set_device(struct shape *shape, int ordinal, uint64_t free_bytes, uint64_t live)
{
    struct gos_device_evidence *device = &shape->evidence.devices[ordinal];
    device->ordinal = ordinal;
    device->present = true;
    snprintf(device->name, sizeof device->name, "NVIDIA H200");
    snprintf(device->uuid, sizeof device->uuid, "GPU-00000000-0000-0000-0000-00000000000%d",
             ordinal % 10);
    device->driver_known = true;
    device->driver_total_bytes = 150754820096u;
    device->driver_free_bytes = free_bytes;
    device->live[GOS_KIND_DEVICE] = (struct gos_total){live, 482};
    device->peak_bytes = live + MIB;
    set_ledger(shape, ordinal, free_bytes, live);
}

static void set_uses(struct shape *shape)
{
    static const struct gos_site_use uses[] = {
        {11, GOS_KIND_DEVICE, 0, 61 * GIB, 482, GIB, 10, 9000, false, 0},
        {12, GOS_KIND_DEVICE, 0, 44 * GIB + 512 * MIB, 310, GIB, 20, 8000, false, 0},
        {13, GOS_KIND_POOL, 0, 3 * GIB, 1, 3 * GIB, 30, 30, false, 0},
        {15, GOS_KIND_HOST, GOS_DEVICE_HOST, 64 * MIB, 2, 32 * MIB, 5, 6, false, 0},
    };
    shape->evidence.use_count = sizeof uses / sizeof uses[0];
    shape->evidence.uses = room(shape, sizeof uses);
    memcpy(shape->evidence.uses, uses, sizeof uses);
    shape->diagnosis.holders[0].name = "torch";
    shape->diagnosis.holders[0].live_bytes = 105 * GIB;
    shape->diagnosis.holders[0].live_count = 792;
    shape->diagnosis.holder_count = 1;
}

static void set_request(struct shape *shape)
{
    struct gos_request *request = &shape->evidence.request;
    request->api = "cudaMalloc";
    request->entry = "cuMemAlloc_v2";
    request->kind = GOS_KIND_DEVICE;
    request->bytes_known = true;
    request->bytes = 4 * GIB;
    request->device = 0;
    request->result = 2;
    request->tid = 4712;
    request->site = 11;
    request->wall_ns = UINT64_C(1795576364000000000);
    request->attempts = 1;
}

static void set_verdict(struct shape *shape, enum gos_verdict_code code, const char *summary,
                        const char *advice)
{
    struct gos_verdict *verdict = &shape->diagnosis.verdict;
    verdict->code = code;
    verdict->confidence = GOS_CONFIDENCE_PROVEN;
    verdict->summary = summary;
    verdict->advice[0] = advice;
    verdict->advice_count = advice ? 1 : 0;
    verdict->evidence[0] = "live plus request is more than the device has";
    verdict->evidence_count = 1;
    verdict->holder = "";
}

static void set_world(struct shape *shape)
{
    struct gos_evidence *evidence = &shape->evidence;
    evidence->pid = 4711;
    evidence->initialised_pid = 4711;
    evidence->initialised_by = "libc10_cuda.so";
    evidence->rank = 3;
    evidence->world = 8;
    evidence->start_wall_ns = UINT64_C(1795570000000000000);
    evidence->wall_ns = UINT64_C(1795576364000000000);
    evidence->collected_in_ns = 3400000;
    snprintf(evidence->command, sizeof evidence->command, "python train.py");
    evidence->driver_version = 13000;
    evidence->contexts = 1;
    evidence->device_count = 8;
    evidence->unwinder = "libunwind";
    evidence->python = "3.12.3";
    evidence->allocated_count = 1000;
    evidence->freed_count = 204;
    evidence->metadata_bytes = 2 * MIB;
    evidence->host = (struct gos_host_evidence){.memory_total_bytes = 512 * GIB,
                                                .memory_available_bytes = 400 * GIB,
                                                .address_limit_bytes = UINT64_MAX,
                                                .locked_limit_bytes = 8 * MIB,
                                                .cgroup_limit_bytes = UINT64_MAX,
                                                .map_count_limit = 65530,
                                                .hostname = "node-17"};
}

static void set_plain(struct shape *shape)
{
    shape->report.kind = GOS_REPORT_FAILURE;
    shape->report.outcome = GOS_OUTCOME_FAILED;
    set_world(shape);
    set_device(shape, 0, 12 * MIB, 108 * GIB);
    set_uses(shape);
    set_request(shape);
    set_verdict(shape, GOS_VERDICT_EXHAUSTED_BY_PROCESS,
                "105.5 GiB are live in this process and 4.00 GiB more do not fit",
                "use a smaller batch, or shard the model: it was short by 3.99 GiB");
    shape->diagnosis.verdict.short_bytes = 4 * GIB - 12 * MIB;
}

/* --- variations --- */

static void native_only(struct shape *shape)
{
    shape->evidence.request.site = 12;
    shape->evidence.uses[0].site = 12;
    shape->evidence.python = NULL;
    shape->evidence.rank = -1;
    shape->evidence.world = -1;
}

static void rescued(struct shape *shape)
{
    shape->report.outcome = GOS_OUTCOME_RECOVERED;
    shape->report.steps[0] = (struct gos_step_record){
        .step = "sync", .result = "no help", .duration_ns = 1200000, .cuda_result = 2};
    shape->report.steps[1] = (struct gos_step_record){
        .step = "trim", .result = "helped", .freed_bytes = 12 * GIB, .duration_ns = 412000000};
    shape->report.step_count = 2;
    set_verdict(shape, GOS_VERDICT_CACHE_HELD,
                "the default pool of GPU 0 keeps 12.0 GiB that nothing uses",
                "set the pool's release threshold to what the program needs");
    shape->diagnosis.verdict.has_runner_up = true;
    shape->diagnosis.verdict.runner_up = GOS_VERDICT_PENDING_FREE;
}

static void by_others(struct shape *shape)
{
    static const struct gos_process_evidence processes[] = {
        {0, 4711, 5 * GIB, GOS_PROCESS_SELF, false, false, 1000, "python"},
        {0, 99, 100 * GIB, GOS_PROCESS_OTHER, false, false, 1001, "jupyter"},
        {0, 98, UINT64_MAX, GOS_PROCESS_UNSEEN, false, false, 0, ""},
        {0, 97, 2 * GIB, GOS_PROCESS_CHILD, true, false, 1000, "worker"},
        {0, 96, GIB, GOS_PROCESS_OTHER, false, true, 1001, "nvidia-cuda-mps"},
    };
    shape->evidence.process_count = sizeof processes / sizeof processes[0];
    shape->evidence.processes = room(shape, sizeof processes);
    memcpy(shape->evidence.processes, processes, sizeof processes);
    shape->evidence.incomplete[0] = "processes of other containers (NVML lists only this one)";
    shape->evidence.incomplete[1] = "names of processes of other users";
    shape->evidence.incomplete_count = 2;
    set_verdict(shape, GOS_VERDICT_EXHAUSTED_BY_OTHERS,
                "process 99 (jupyter) holds 100.0 GiB of GPU 0", "stop it: kill 99");
}

static void fragmented(struct shape *shape)
{
    struct gos_fragmentation *fragmentation = &shape->diagnosis.fragmentation[0];
    fragmentation->block_count = 72704;
    fragmentation->block_live_bytes = 71 * GIB;
    fragmentation->block_stuck_bytes = 71 * GIB;
    fragmentation->block_pinned_count = 72704;
    fragmentation->block_permille = 999;
    fragmentation->pins[0].site = 11;
    fragmentation->pins[0].blocks = 70000;
    fragmentation->pins[0].stuck_bytes = 68 * GIB;
    fragmentation->pins[1].site = 12;
    fragmentation->pins[1].blocks = 2704;
    fragmentation->pins[1].stuck_bytes = 3 * GIB;
    fragmentation->pin_count = 2;
    set_verdict(shape, GOS_VERDICT_FRAGMENTED,
                "71.0 GiB are unused, but in 2 MiB blocks that small allocations pin",
                "put the small buffers of train.py:88 into one large allocation");
}

static void too_large(struct shape *shape)
{
    static const struct gos_event events[] = {
        {UINT64_C(1795576363000000000), "cuLaunchKernel", 209, 4712, 0, 0},
        {UINT64_C(1795576364000000000), "cuMemAlloc_v2", 2, 4712, 0, 0xfffffffffffff000u},
    };
    shape->evidence.event_count = 2;
    shape->evidence.events = room(shape, sizeof events);
    memcpy(shape->evidence.events, events, sizeof events);
    shape->evidence.events_lost = 3;
    shape->evidence.request.bytes = 0xfffffffffffff000u;
    shape->diagnosis.verdict.short_bytes = 0;
    set_verdict(shape, GOS_VERDICT_REQUEST_TOO_LARGE,
                "0xfffffffffffff000 bytes is -4096 read as a size", "check the arithmetic");
}

static void host_memory(struct shape *shape)
{
    shape->evidence.request.device = -1;
    shape->evidence.request.kind = GOS_KIND_HOST;
    shape->evidence.request.api = "cudaHostAlloc";
    shape->evidence.host_live[GOS_KIND_HOST] = (struct gos_total){64 * MIB, 2};
    shape->diagnosis.device = -1;
    set_verdict(shape, GOS_VERDICT_HOST_MEMORY, "6.0 GiB of the host's memory are available",
                "pin less at a time");
}

static void watched_call(struct shape *shape)
{
    shape->evidence.request.bytes_known = false;
    shape->evidence.request.bytes = 0;
    shape->evidence.request.kind = GOS_KIND_NONE;
    shape->evidence.request.api = "cuLaunchKernel";
    shape->diagnosis.verdict.short_bytes = 0;
    shape->report.outcome = GOS_OUTCOME_RECOVERED_BY_CALLER;
}

static void snapshot(struct shape *shape)
{
    memset(&shape->evidence.request, 0, sizeof shape->evidence.request);
    memset(&shape->diagnosis.verdict, 0, sizeof shape->diagnosis.verdict);
    shape->report.kind = GOS_REPORT_SNAPSHOT;
    shape->report.outcome = GOS_OUTCOME_NONE;
    shape->diagnosis.device = -1;
    for (int i = 1; i < 4; i++)
        set_device(shape, i, 100 * GIB, 20 * GIB);
}

static void empty(struct shape *shape)
{
    snapshot(shape);
    shape->report.kind = GOS_REPORT_EXIT;
    memset(shape->evidence.devices, 0, sizeof shape->evidence.devices);
    memset(shape->diagnosis.ledgers, 0, sizeof shape->diagnosis.ledgers);
    shape->evidence.use_count = 0;
    shape->diagnosis.holder_count = 0;
    shape->evidence.rank = -1;
}

static void unreadable_device(struct shape *shape)
{
    struct gos_device_evidence *device = &shape->evidence.devices[0];
    device->driver_known = false;
    device->nvml_status = -13;
    device->processes_status = -13;
    device->uuid[0] = '\0';
    shape->diagnosis.ledgers[0].known = false;
    shape->evidence.use_count = 0;
    shape->diagnosis.holder_count = 0;
    set_verdict(shape, GOS_VERDICT_UNEXPLAINED, NULL, NULL);
}

static void frameworks(struct shape *shape)
{
    static const struct gos_framework_evidence told[] = {
        {.name = "torch",
         .device = 0,
         .reserved_bytes = 139 * GIB,
         .used_bytes = GIB,
         .active_bytes = GIB,
         .inactive_split_bytes = 2 * GIB,
         .map_known = true,
         .segment_count = 482,
         .pinned_segment_count = 3,
         .piece_count = 7,
         .piece_bytes = 2 * GIB,
         .fitting_bytes = 136 * GIB,
         .largest_free_bytes = 4 * GIB,
         .free_block_count = 483,
         .releasable_known = true,
         .releasable_bytes = 136 * GIB,
         .expandable = GOS_SETTING_OFF,
         .max_split = GOS_SETTING_ON,
         .collects = GOS_SETTING_OFF,
         .limited = GOS_SETTING_ON,
         .backend = "native",
         .settings = "max_split_size_mb:512",
         .after_ns = 412345,
         .is_late = true},
        {.name = "cupy",
         .device = 0,
         .reserved_bytes = 3 * GIB,
         .used_bytes = 2 * GIB,
         .backend = "",
         .settings = "",
         .pinned_free_count = 5},
        {.name = "jax",
         .device = 0,
         .reserved_bytes = GIB,
         .largest_free_bytes = GIB / 2,
         .limit_bytes = 2 * GIB,
         .in_driver_pools = true,
         .backend = "",
         .settings = ""},
    };
    shape->evidence.framework_count = sizeof told / sizeof told[0];
    shape->evidence.frameworks = room(shape, sizeof told);
    memcpy(shape->evidence.frameworks, told, sizeof told);
    static const struct gos_framework_line lines[] = {
        {"jax", 0, GOS_PART_ARRAYS, GIB, 3, "train.py:8 load"},
        {"jax", 0, GOS_PART_REST, GIB / 2, 9, "4 other lines"},
    };
    shape->evidence.framework_line_count = sizeof lines / sizeof lines[0];
    shape->evidence.framework_lines = room(shape, sizeof lines);
    memcpy(shape->evidence.framework_lines, lines, sizeof lines);
    shape->evidence.torch_snapshot = "/tmp/gpuoomshim.host.4711.1.torch.pickle";
    shape->diagnosis.fragmentation[0].framework_idle_bytes = 138 * GIB;
    shape->diagnosis.fragmentation[0].framework_stuck_bytes = 2 * GIB;
    shape->diagnosis.fragmentation[0].framework_permille = 14;
}

static void pools_and_streams(struct shape *shape)
{
    static const struct gos_pool_evidence pools[] = {
        {0x7f001, 0, true, false, true, 12 * GIB, GIB, false, UINT64_MAX, GIB},
        {0x7f002, 0, false, true, false, 0, 0, false, 0, 0},
    };
    static const struct gos_stream_evidence streams[] = {
        {.stream = 0x55aa, .context = 0x99, .running = true, .asked = true, .freed_bytes = 2 * GIB},
        {.stream = 2, .context = 0x99, .per_thread = true, .freed_bytes = MIB},
    };
    shape->evidence.pool_count = 2;
    shape->evidence.pools = room(shape, sizeof pools);
    memcpy(shape->evidence.pools, pools, sizeof pools);
    shape->evidence.stream_count = 2;
    shape->evidence.streams = room(shape, sizeof streams);
    memcpy(shape->evidence.streams, streams, sizeof streams);
    shape->evidence.request.pool = 0x7f001;
    shape->diagnosis.ledgers[0].clamped = true;
    shape->diagnosis.ledgers[0].lines[GOS_LEDGER_RESIDUAL].bytes = -(int64_t)GIB;
    shape->diagnosis.ledgers[0].lines[GOS_LEDGER_HIDDEN].bytes += (int64_t)GIB;
}

static void hostile(struct shape *shape)
{
    static const struct gos_variable variables[] = {
        {"CUDA_VISIBLE_DEVICES", "\x1b]0;owned\x07,\xc3\x28", NULL},
        {"PYTORCH_CUDA_ALLOC_CONF", "", "expandable_segments:True"},
        {"NCCL_DEBUG", NULL, "INFO"},
    };
    static const struct gos_version versions[] = {
        {"driver", "580.159", ""}, {"libtorch_cuda.so", "", "/very/\xf0\x9f\x98\x80/path"}};
    shape->evidence.variable_count = 3;
    shape->evidence.variables = room(shape, sizeof variables);
    memcpy(shape->evidence.variables, variables, sizeof variables);
    shape->evidence.version_count = 2;
    shape->evidence.versions = room(shape, sizeof versions);
    memcpy(shape->evidence.versions, versions, sizeof versions);
    shape->evidence.request.site = 14;
    shape->evidence.uses[0].site = 14;
    snprintf(shape->evidence.command, sizeof shape->evidence.command, "sh\r\n\xe2\x82 x");
    snprintf(shape->evidence.host.hostname, sizeof shape->evidence.host.hostname, "../..\n/host");
    set_verdict(shape, GOS_VERDICT_LEAK, "\x1b[2J keeps \xff more and\nmore", "\t\xed\xa0\x80");
}

/* Everything that can be long is long: the screen must choose. */
static void crowded(struct shape *shape)
{
    static const char long_line[] =
        "a sentence that goes on and on, with numbers such as 12.5 GiB and names such as "
        "/a/path/without/any/space/that/is/much/longer/than/one/line/of/the/screen/can/ever/be/"
        "in/the/world and then some more words until it cannot possibly fit into three lines";
    static const char wide[] = "\xc3\xa9\xe2\x82\xac\xc3\xa9\xe2\x82\xac\xc3\xa9\xe2\x82\xac "
                               "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac";
    rescued(shape);
    for (size_t i = 0; i < GOS_LINES_MAX; i++) {
        shape->diagnosis.verdict.advice[i] = long_line;
        shape->diagnosis.verdict.evidence[i] = wide;
    }
    shape->diagnosis.verdict.advice_count = GOS_LINES_MAX;
    shape->diagnosis.verdict.evidence_count = GOS_LINES_MAX;
    shape->diagnosis.verdict.summary = long_line;
    for (unsigned i = 0; i < GOS_STEP_MAX; i++)
        shape->report.steps[i] = (struct gos_step_record){.step = "trim",
                                                          .result = "error",
                                                          .reason = wide,
                                                          .freed_bytes = GIB,
                                                          .duration_ns = 5000000,
                                                          .cuda_result = 2};
    shape->report.step_count = GOS_STEP_MAX;
    for (size_t i = 0; i < 32; i++)
        shape->evidence.incomplete[i] = long_line;
    shape->evidence.incomplete_count = 32;
    shape->evidence.told_wall_ns = shape->evidence.wall_ns + 61000000000u;
    shape->evidence.is_of_earlier = true;
    shape->evidence.rank = 1023;
    shape->evidence.world = 1024;
    shape->evidence.pid = 4194304;
    shape->evidence.first_sticky_error = 700;
    shape->document.health.losses[GOS_LOSS_STACK] = 7;
    shape->document.health.fuse_reason = "a broken invariant";
    memset(shape->evidence.devices[0].name, 'N', sizeof shape->evidence.devices[0].name - 1);
    for (int i = 1; i < GOS_DEVICE_MAX; i++)
        set_device(shape, i, GIB, GIB);
    pools_and_streams(shape);
    frameworks(shape);
}

static void nothing_to_try(struct shape *shape)
{
    native_only(shape);
    shape->evidence.request.api = "cuMemAllocAsync_ptsz";
    shape->report.steps[0] =
        (struct gos_step_record){.step = "sync",
                                 .result = "skipped",
                                 .reason = "no stream has frees that are pending",
                                 .cuda_result = 2};
    shape->report.steps[1] = (struct gos_step_record){.step = "trim",
                                                      .result = "skipped",
                                                      .reason = "no pool holds idle memory",
                                                      .cuda_result = 2};
    shape->report.step_count = 2;
}

static void sampled_and_tagged(struct shape *shape)
{
    static const uint32_t sites[] = {15, 16, 17, 0};
    shape->evidence.stack_sample_bytes = 4 * MIB;
    for (size_t i = 0; i < 4; i++) {
        struct gos_site_use *use = &shape->evidence.uses[i];
        *use = (struct gos_site_use){.site = sites[i],
                                     .kind = GOS_KIND_POOL,
                                     .live_bytes = (i == 3 ? 30 : 3 - i) * GIB,
                                     .live_count = 5,
                                     .is_estimated = true,
                                     .estimated_bytes = (3 - i) * 8 * GIB};
    }
}

/* Site 11 grows, site 12 was loaded at once. */
static void leaking(struct shape *shape)
{
    enum { POINTS = 20 };
    struct gos_growth *growth = &shape->evidence.growth;
    growth->moments = room(shape, POINTS * sizeof *growth->moments);
    growth->series = room(shape, 3 * sizeof *growth->series);
    growth->moment_count = POINTS;
    growth->series_count = 3;
    for (uint32_t k = 0; k < 3; k++) {
        growth->series[k].site = k ? 10 + k : 0;
        growth->series[k].live_bytes = room(shape, POINTS * sizeof(uint64_t));
    }
    for (uint32_t i = 0; i < POINTS; i++) {
        growth->moments[i] = (struct gos_moment){1000 * i, 500 * i, 250 * i};
        growth->series[1].live_bytes[i] = i * 3 * GIB;
        growth->series[2].live_bytes[i] = i ? 44 * GIB : 0;
        growth->series[0].live_bytes[i] = (i * 3 + (i ? 44 : 0)) * GIB;
    }
    set_verdict(shape, GOS_VERDICT_LEAK,
                "train.py:88 load_batch keeps more and more: it grew steadily from 0 B to 57 GiB.",
                "Look at train.py:88 load_batch.");
}

static void plain(struct shape *shape)
{
    (void)shape;
}

static const struct {
    const char *name;
    void (*vary)(struct shape *shape);
} shapes[] = {
    {"plain", plain},
    {"native-only", native_only},
    {"nothing-to-try", nothing_to_try},
    {"rescued", rescued},
    {"by-others", by_others},
    {"fragmented", fragmented},
    {"too-large", too_large},
    {"host-memory", host_memory},
    {"watched-call", watched_call},
    {"snapshot", snapshot},
    {"empty", empty},
    {"unreadable-device", unreadable_device},
    {"pools-and-streams", pools_and_streams},
    {"frameworks", frameworks},
    {"hostile", hostile},
    {"crowded", crowded},
    {"sampled-and-tagged", sampled_and_tagged},
    {"leaking", leaking},
};

bool shape_make(struct shape *shape, unsigned index)
{
    if (index >= sizeof shapes / sizeof shapes[0])
        return false;
    memset(shape, 0, sizeof *shape);
    shape->diagnosis.evidence = &shape->evidence;
    shape->report.diagnosis = &shape->diagnosis;
    shape->document.report = &shape->report;
    shape->document.version = "1.0.0";
    shape->document.stacks.stacks = stacks;
    shape->document.stacks.count = sizeof stacks / sizeof stacks[0];
    shape->document.stacks.modules = named_modules;
    shape->document.stacks.module_count = sizeof named_modules / sizeof named_modules[0];
    set_plain(shape);
    shapes[index].vary(shape);
    if (shape->evidence.request.api)
        shape->document.stacks.requester = &modules[2];
    return true;
}

const char *shape_name(unsigned index)
{
    return shapes[index].name;
}

void shape_release(struct shape *shape)
{
    gos_scratch_release(&shape->evidence.scratch);
}

char *shape_emit(const struct gos_document *document, enum gos_form form, size_t *length)
{
    struct gos_scratch scratch = {0};
    struct gos_sink sink;
    struct gos_emitter emitter;
    gos_sink_open(&sink, &scratch, -1, 64u << 20);
    gos_emitter_init(&emitter, form, &sink);
    gos_document_emit(document, &emitter);
    char *copy = gos_sink_finish(&sink) == 0 ? malloc(sink.used + 1) : NULL;
    if (!copy)
        abort();
    memcpy(copy, sink.data, sink.used);
    copy[sink.used] = '\0';
    if (length)
        *length = sink.used;
    gos_scratch_release(&scratch);
    return copy;
}
