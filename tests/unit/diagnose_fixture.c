#include "diagnose_fixture.h"

#include <errno.h>
#include <string.h>

#include "../../src/base/module.h"
#include "../../src/track/site.h"

#define DEFAULT_POOL 0xd00d
#define SECOND_POOL 0xd00e
#define BLOCK (2 * MIB)
#define OWN_PID 4711
#define MOMENTS 25

/* --- made-up modules and sites --- */

enum { LIB_TORCH, LIB_NCCL, LIB_APP, LIB_PYTHON, LIB_CTYPES, LIB_FFI, LIB_CUPY, LIB_BLAS };

#define PACKAGES "/usr/lib/python3/site-packages/"

static const struct gos_module modules[] = {
    {.path = PACKAGES "torch/lib/libc10_cuda.so", .name = "libc10_cuda.so"},
    {.path = PACKAGES "nvidia/nccl/lib/libnccl.so.2", .name = "libnccl.so.2"},
    {.path = "/home/u/app/libtrain.so", .name = "libtrain.so"},
    {.path = "/usr/bin/python3.12", .name = "python3.12"},
    {.path = "/usr/lib/python3.12/lib-dynload/_ctypes.cpython-312.so", .name = "_ctypes.so"},
    {.path = "/usr/lib/libffi.so.8", .name = "libffi.so.8"},
    {.path = PACKAGES "cupy_backends/cuda/api/runtime.cpython-312.so", .name = "runtime.so"},
    {.path = "/usr/lib/libcublas.so.13", .name = "libcublas.so.13"},
};

#define FRAMES(...)                                                                                \
    .native = (const struct gos_native_frame[]){__VA_ARGS__},                                      \
    .native_count =                                                                                \
        sizeof((const struct gos_native_frame[]){__VA_ARGS__}) / sizeof(struct gos_native_frame)
#define PYTHON(...)                                                                                \
    .python = (const struct gos_python_frame[]){__VA_ARGS__},                                      \
    .python_count =                                                                                \
        sizeof((const struct gos_python_frame[]){__VA_ARGS__}) / sizeof(struct gos_python_frame)

static const struct gos_site sites[SITE_COUNT] = {
    [SITE_TORCH] = {.id = SITE_TORCH,
                    FRAMES({LIB_TORCH, 16, 16}, {LIB_PYTHON, 16, 16}),
                    PYTHON({PACKAGES "torch/nn/modules/linear.py", "Linear.forward", 125},
                           {"/home/u/app/model.py", "forward", 41})},
    [SITE_NCCL] = {.id = SITE_NCCL, FRAMES({LIB_NCCL, 16, 16}, {LIB_TORCH, 16, 16})},
    [SITE_APP] = {.id = SITE_APP,
                  FRAMES({LIB_APP, 16, 16}, {LIB_PYTHON, 16, 16}),
                  PYTHON({"/home/u/app/train.py", "load_batch", 88})},
    [SITE_PIECES] = {.id = SITE_PIECES,
                     FRAMES({LIB_APP, 16, 16}),
                     PYTHON({"/home/u/app/pieces.py", "fill", 7})},
    [SITE_CTYPES] = {.id = SITE_CTYPES,
                     FRAMES({LIB_FFI, 16, 16}, {LIB_CTYPES, 16, 16}, {LIB_PYTHON, 16, 16}),
                     PYTHON({"/home/u/app/raw.py", "grab", 3})},
    [SITE_CUPY] = {.id = SITE_CUPY, FRAMES({LIB_CUPY, 16, 16}, {LIB_PYTHON, 16, 16})},
    [SITE_NUMBA] = {.id = SITE_NUMBA,
                    FRAMES({LIB_CTYPES, 16, 16}, {LIB_FFI, 16, 16}, {LIB_PYTHON, 16, 16}),
                    PYTHON({PACKAGES "numba/cuda/cudadrv/driver.py", "memalloc", 900},
                           {"/home/u/app/jit.py", "run", 12})},
    [SITE_KEEPS_IN_TRAINING] = {.id = SITE_KEEPS_IN_TRAINING,
                                FRAMES({LIB_APP, 16, 16}),
                                PYTHON({"/home/u/app/alloc.py", "allocate", 12},
                                       {"/home/u/app/model.py", "keeps", 3},
                                       {"/home/u/app/loop.py", "train", 9})},
    [SITE_KEEPS_IN_EVALUATION] = {.id = SITE_KEEPS_IN_EVALUATION,
                                  FRAMES({LIB_APP, 32, 32}),
                                  PYTHON({"/home/u/app/alloc.py", "allocate", 12},
                                         {"/home/u/app/model.py", "keeps", 3},
                                         {"/home/u/app/loop.py", "evaluate", 19})},
    [SITE_USES] = {.id = SITE_USES,
                   FRAMES({LIB_APP, 16, 16}),
                   PYTHON({"/home/u/app/alloc.py", "allocate", 12},
                          {"/home/u/app/model.py", "uses", 7})},
    [SITE_JIT] = {.id = SITE_JIT, FRAMES({UINT32_MAX, 77, 77}, {LIB_BLAS, 16, 16})},
    [SITE_UNSEEN] = {.id = SITE_UNSEEN, PYTHON({"/home/u/app/eval.py", "step", 5})},
};

const struct gos_module *gos_module_at(uint32_t index)
{
    return index < sizeof(modules) / sizeof(modules[0]) ? &modules[index] : NULL;
}

const char *gos_module_nearest(const struct gos_module *module, uintptr_t address, uint64_t *offset)
{
    (void)module;
    if (offset)
        *offset = 0;
    return address == 16 ? "ncclAllocate" : NULL;
}

const struct gos_site *gos_site_get(uint32_t id)
{
    return id > 0 && id < SITE_COUNT ? &sites[id] : NULL;
}

uint32_t gos_site_requester_module(const struct gos_site *site)
{
    return site->native_count ? site->native[0].module : UINT32_MAX;
}

/* --- scenes --- */

struct room {
    struct gos_site_use uses[16];
    struct gos_pool_evidence pools[2];
    struct gos_stream_evidence stream;
    struct gos_process_evidence processes[5];
    struct gos_version versions[8];
    struct gos_event event;
    struct gos_variable variable;
    char variable_name[64];
    struct gos_framework_evidence frameworks[2];
    struct gos_moment moments[MOMENTS];
    struct gos_growth_series series[3];
    uint64_t live_bytes[3][MOMENTS];
};

static uint64_t scene_total(const struct scene *scene)
{
    return scene->total ? scene->total : 16384;
}

static uint64_t scene_context(const struct scene *scene)
{
    return scene->context ? scene->context : 512;
}

uint64_t scene_own(const struct scene *scene)
{
    return scene_context(scene) + scene->torch + scene->torch_physical + scene->app +
           scene->unseen + scene->managed + 2 * scene->pieces + scene->pool_live +
           scene->pool_idle + scene->pool_pending + scene->pool2_idle + scene->pool2_foreign +
           scene->graph_idle + scene->cupy + scene->held;
}

/* What an MPS server is charged with may be ours: beyond that it is the clients' of others. */
static uint64_t scene_server(const struct scene *scene)
{
    return scene->mps_server > scene_own(scene) ? scene->mps_server - scene_own(scene) : 0;
}

uint64_t scene_really_free(const struct scene *scene)
{
    return scene_total(scene) - scene_own(scene) - scene->others - scene->children - scene->hidden -
           scene_server(scene);
}

static uint64_t scene_left(const struct scene *scene)
{
    return scene->limit > scene_own(scene) ? scene->limit - scene_own(scene) : 0;
}

uint64_t scene_free(const struct scene *scene)
{
    uint64_t free_mib = scene_really_free(scene);
    return scene->limit && scene_left(scene) < free_mib ? scene_left(scene) : free_mib;
}

static void add_use(struct gos_evidence *evidence, enum site site, enum gos_kind kind, uint64_t mib)
{
    if (mib == 0)
        return;
    evidence->uses[evidence->use_count++] = (struct gos_site_use){
        .site = site,
        .kind = kind,
        .live_bytes = mib * MIB,
        .live_count = kind == GOS_KIND_DEVICE && site == SITE_PIECES ? mib : 3,
        .largest_bytes = mib * MIB};
    evidence->devices[0].live[kind].live_bytes += mib * MIB;
    evidence->devices[0].live[kind].live_count += 3;
}

static void add_uses(const struct scene *scene, struct gos_evidence *evidence)
{
    add_use(evidence, SITE_TORCH, GOS_KIND_DEVICE, scene->torch);
    add_use(evidence, SITE_TORCH, GOS_KIND_PHYSICAL, scene->torch_physical);
    add_use(evidence, SITE_CUPY, GOS_KIND_DEVICE, scene->cupy);
    add_use(evidence, SITE_APP, GOS_KIND_DEVICE, scene->app);
    add_use(evidence, SITE_UNSEEN, GOS_KIND_DEVICE, scene->unseen);
    add_use(evidence, SITE_APP, GOS_KIND_MANAGED, scene->managed);
    add_use(evidence, SITE_PIECES, GOS_KIND_DEVICE, scene->pieces);
    add_use(evidence, SITE_APP, GOS_KIND_POOL, scene->pool_live);
}

static void add_pieces(const struct scene *scene, struct gos_evidence *evidence)
{
    struct gos_device_evidence *device = &evidence->devices[0];
    if (scene->pieces == 0)
        return;
    device->smalls = gos_scratch_alloc(&evidence->scratch, scene->pieces * sizeof(*device->smalls));
    device->small_count = scene->pieces;
    for (uint64_t i = 0; i < scene->pieces; i++)
        device->smalls[i] = (struct gos_small){GIB + i * BLOCK, MIB, SITE_PIECES};
}

static void add_pools(const struct scene *scene, struct gos_evidence *evidence)
{
    uint64_t reserved = scene->pool_live + scene->pool_idle + scene->pool_pending;
    uint64_t freed = scene->pool_pending + scene->pending_seen;
    evidence->pools[0] =
        (struct gos_pool_evidence){.pool = DEFAULT_POOL,
                                   .is_default = true,
                                   .attributes_known = !scene->pool_silent,
                                   .reserved_bytes = reserved * MIB,
                                   .used_bytes = (scene->pool_live + scene->pool_stale) * MIB,
                                   .used_sticks = scene->pool_stale > 0,
                                   .threshold_bytes = UINT64_MAX,
                                   .live_bytes = scene->pool_live * MIB};
    evidence->pools[1] = (struct gos_pool_evidence){
        .pool = SECOND_POOL,
        .attributes_known = !scene->pool_silent,
        .reserved_bytes = (scene->pool2_idle + scene->pool2_foreign) * MIB,
        .used_bytes = scene->pool2_foreign * MIB};
    evidence->pool_count = 2;
    evidence->streams[0] = (struct gos_stream_evidence){
        .stream = 0x51, .running = !scene->pending_done, .asked = true, .freed_bytes = freed * MIB};
    evidence->stream_count = freed ? 1 : 0;
    evidence->devices[0].graph_reserved_bytes = scene->graph_idle * MIB;
}

static void add_process(struct gos_evidence *evidence, uint32_t pid, const char *name, uint64_t mib,
                        enum gos_relation relation, enum view view)
{
    struct gos_process_evidence process = {
        .pid = pid, .used_bytes = mib * MIB, .relation = relation};
    if (mib == 0 || (relation == GOS_PROCESS_SELF && view == VIEW_NOT_LISTED))
        return;
    strncpy(process.name, name, sizeof(process.name) - 1);
    if (view == VIEW_NO_NUMBERS)
        process.used_bytes = UINT64_MAX;
    if (view == VIEW_NOT_LISTED && relation == GOS_PROCESS_OTHER)
        process.relation = GOS_PROCESS_UNSEEN;
    evidence->processes[evidence->process_count++] = process;
}

static void add_nvml(const struct scene *scene, struct gos_evidence *evidence)
{
    struct gos_device_evidence *device = &evidence->devices[0];
    bool memory = scene->view < VIEW_NONE;
    bool list = memory && scene->view != VIEW_NO_LIST;
    int status = scene->view == VIEW_NONE ? -ENOENT : -EACCES;
    device->nvml_status = memory ? 0 : status;
    device->processes_status = list ? 0 : status;
    device->nvml_total_bytes = memory ? (scene_total(scene) + 616) * MIB : 0;
    device->nvml_reserved_bytes = memory ? 616 * MIB : 0;
    device->nvml_free_bytes = memory ? scene_really_free(scene) * MIB : 0;
    device->own_bytes_known = scene->view == VIEW_FULL;
    device->own_bytes = device->own_bytes_known ? scene_own(scene) * MIB : 0;
    if (!list)
        return;
    add_process(evidence, OWN_PID, "python", scene_own(scene), GOS_PROCESS_SELF, scene->view);
    add_process(evidence, 4242, "neighbour", scene->others, GOS_PROCESS_OTHER, scene->view);
    add_process(evidence, 4712, "loader", scene->children, GOS_PROCESS_CHILD, scene->view);
    add_process(evidence, 90, "nvidia-cuda-mps", scene->mps_server, GOS_PROCESS_OTHER, VIEW_FULL);
    if (scene->mps_server)
        evidence->processes[evidence->process_count - 1].mps_server = true;
}

static void add_request(const struct scene *scene, struct gos_evidence *evidence)
{
    bool host = scene->kind == GOS_KIND_HOST || scene->kind == GOS_KIND_ADDRESS;
    evidence->request =
        (struct gos_request){.api = scene->unsized ? "cuLaunchKernel" : "cudaMalloc",
                             .entry = scene->makes_context ? "cuCtxCreate_v4"
                                      : scene->unsized     ? "cuLaunchKernel"
                                                           : "cuMemAlloc_v2",
                             .kind = scene->kind,
                             .bytes_known = !scene->unsized,
                             .bytes = scene->ask,
                             .device = host ? -1 : 0,
                             .result = scene->result ? scene->result : 2,
                             .capture = scene->capture,
                             .site = scene->by,
                             .requester_module = UINT32_MAX};
    if (scene->kind == GOS_KIND_POOL)
        evidence->request.pool = DEFAULT_POOL;
    if (scene->limit && !host && scene->ask > scene_left(scene) * MIB)
        evidence->request.refusal = GOS_REFUSAL_LIMIT;
    if (scene->injected || scene->limited)
        evidence->request.refusal = scene->injected ? GOS_REFUSAL_INJECTED : GOS_REFUSAL_LIMIT;
}

/* A third of the way into the run FLAT has all, the steady ones a third. */
static uint64_t at_moment(uint64_t mib, bool steady, uint64_t i)
{
    uint64_t whole = steady ? MOMENTS - 1 : (MOMENTS - 1) / 3;
    return i < whole ? mib * MIB * i / whole : mib * MIB;
}

static void add_growth(const struct scene *scene, struct gos_evidence *evidence, struct room *room)
{
    bool app_steady = scene->course != COURSE_FLAT;
    bool torch_steady = scene->course == COURSE_TOGETHER || scene->course == COURSE_TORCH;
    bool unfreed = scene->course == COURSE_UNFREED || scene->course == COURSE_TORCH;
    if (scene->course == COURSE_UNKNOWN)
        return;
    for (uint32_t i = 0; i < MOMENTS; i++) {
        room->moments[i] = (struct gos_moment){
            .allocated_count = 100 * i, .freed_count = unfreed ? 0 : 50 * i, .age_ms = 100 * i};
        room->live_bytes[1][i] = at_moment(scene->app, app_steady, i);
        room->live_bytes[2][i] = at_moment(scene->torch, torch_steady, i);
        room->live_bytes[0][i] = room->live_bytes[1][i] + room->live_bytes[2][i];
    }
    const uint32_t whose[] = {SITE_NONE, SITE_APP, SITE_TORCH};
    for (size_t i = 0; i < 3; i++)
        room->series[i] =
            (struct gos_growth_series){.site = whose[i], .live_bytes = room->live_bytes[i]};
    evidence->growth = (struct gos_growth){.moments = room->moments,
                                           .moment_count = MOMENTS,
                                           .series = room->series,
                                           .series_count = 3};
}

/* Torch's segments are of 512 MiB. */
static void add_torch(const struct scene *scene, struct gos_evidence *evidence)
{
    uint64_t whole = scene->torch_unused - scene->torch_pieces;
    if (scene->torch_unused == 0)
        return;
    uint64_t told = scene->torch - scene->torch_untold;
    evidence->frameworks[evidence->framework_count++] = (struct gos_framework_evidence){
        .name = "torch",
        .reserved_bytes = told * MIB,
        .used_bytes = (told - scene->torch_unused) * MIB,
        .active_bytes = (told - scene->torch_unused) * MIB,
        .inactive_split_bytes = scene->torch_pieces * MIB,
        .map_known = true,
        .segment_count = scene->torch / 512,
        .pinned_segment_count = (scene->torch - whole) / 512,
        .piece_count = scene->torch_pieces / 510,
        .piece_bytes = scene->torch_pieces * MIB,
        .fitting_bytes = scene->ask <= 510 * MIB ? scene->torch_unused * MIB : 0,
        .largest_free_bytes = 510 * MIB,
        .releasable_known = true,
        .releasable_bytes = whole * MIB,
        .backend = "native",
        .settings = "",
        .is_late = scene->by == SITE_TORCH};
}

/* It says what it would give back only where nothing of its is in use. */
static void add_cupy(const struct scene *scene, struct gos_evidence *evidence)
{
    bool all = scene->cupy_unused == scene->cupy;
    if (scene->cupy_unused == 0)
        return;
    evidence->frameworks[evidence->framework_count++] =
        (struct gos_framework_evidence){.name = "cupy",
                                        .reserved_bytes = scene->cupy * MIB,
                                        .used_bytes = (scene->cupy - scene->cupy_unused) * MIB,
                                        .releasable_known = all,
                                        .releasable_bytes = all ? scene->cupy * MIB : 0,
                                        .backend = "",
                                        .settings = "",
                                        .is_late = scene->by == SITE_CUPY};
}

static void add_host(const struct scene *scene, struct gos_evidence *evidence)
{
    struct gos_host_evidence *host = &evidence->host;
    host->memory_total_bytes = 128 * GIB;
    host->memory_available_bytes = scene->host_available ? scene->host_available * MIB : 100 * GIB;
    host->address_used_bytes = 40 * GIB;
    host->address_limit_bytes =
        scene->address_room ? 40 * GIB + scene->address_room * MIB : UINT64_MAX;
    host->cgroup_used_bytes = 3 * GIB;
    host->cgroup_limit_bytes = scene->cgroup_room ? 3 * GIB + scene->cgroup_room * MIB : UINT64_MAX;
    host->locked_limit_bytes = scene->locked_room ? scene->locked_room * MIB : UINT64_MAX;
    host->overcommit_mode = scene->commit_room ? 2 : 0;
    host->committed_bytes = 50 * GIB;
    host->commit_limit_bytes = 50 * GIB + scene->commit_room * MIB;
    host->map_count_limit = 65530;
    host->map_count = scene->maps_left ? 65530 - scene->maps_left : 900;
    evidence->host_live[GOS_KIND_ADDRESS].live_bytes = scene->addresses_reserved_gib * GIB;
}

static void add_variable(const struct scene *scene, struct gos_evidence *evidence,
                         struct room *room)
{
    if (!scene->variable)
        return;
    const char *equals = strchr(scene->variable, '=');
    memcpy(room->variable_name, scene->variable, (size_t)(equals - scene->variable));
    room->variable = (struct gos_variable){.name = room->variable_name,
                                           .value = equals + 1,
                                           .at_start = scene->variable_late ? "" : NULL};
    evidence->variables = &room->variable;
    evidence->variable_count = 1;
}

static void add_version(struct gos_evidence *evidence, const char *what, const char *version,
                        const char *path)
{
    if (version)
        evidence->versions[evidence->version_count++] =
            (struct gos_version){.what = what, .version = version, .path = path};
}

/* "580.159" of "/usr/lib/libcuda.so.580.159". */
static const char *version_in(const char *path)
{
    const char *suffix = path ? strstr(path, ".so.") : NULL;
    return suffix ? suffix + 4 : NULL;
}

static void add_versions(const struct scene *scene, struct gos_evidence *evidence)
{
    add_version(evidence, "driver", scene->kernel, "");
    add_version(evidence, "kernel module", scene->kernel, "/proc/driver/nvidia/version");
    add_version(evidence, "libcuda.so.1", version_in(scene->libcuda), scene->libcuda);
    add_version(evidence, "libnvidia-ml.so.1", version_in(scene->nvml), scene->nvml);
    add_version(evidence, "libcudart.so.13", scene->cudart, "/opt/cuda/lib/libcudart.so.13");
    add_version(evidence, "torch is for CUDA", scene->torch_cuda,
                PACKAGES "torch/lib/libtorch_cuda.so");
    evidence->driver_version = scene->driver_version;
}

void scene_evidence(const struct scene *scene, struct gos_evidence *evidence)
{
    memset(evidence, 0, sizeof(*evidence));
    struct room *room = gos_scratch_alloc(&evidence->scratch, sizeof(*room));
    evidence->uses = room->uses;
    evidence->frameworks = room->frameworks;
    evidence->pools = room->pools;
    evidence->streams = &room->stream;
    evidence->processes = room->processes;
    evidence->versions = room->versions;
    evidence->allocated_count = scene->first ? 0 : 100;
    evidence->pid = OWN_PID;
    evidence->initialised_pid = scene->forked ? 4700 : OWN_PID;
    evidence->device_count = 1;
    evidence->devices[0].present = !scene->forked;
    evidence->devices[0].driver_known = true;
    evidence->devices[0].integrated = scene->integrated;
    evidence->devices[0].small_lost = scene->smalls_lost;
    evidence->devices[0].driver_total_bytes = scene_total(scene) * MIB;
    evidence->devices[0].driver_free_bytes = scene_free(scene) * MIB;
    evidence->devices[0].limit_bytes = scene->limit * MIB;
    evidence->devices[0].withheld_bytes = (scene_really_free(scene) - scene_free(scene)) * MIB;
    evidence->devices[0].held_bytes = scene->held * MIB;
    add_uses(scene, evidence);
    add_pieces(scene, evidence);
    add_pools(scene, evidence);
    add_nvml(scene, evidence);
    add_request(scene, evidence);
    add_host(scene, evidence);
    add_variable(scene, evidence, room);
    add_growth(scene, evidence, room);
    add_torch(scene, evidence);
    add_cupy(scene, evidence);
    add_versions(scene, evidence);
    if (scene->earlier_error) {
        room->event = (struct gos_event){.what = "cuLaunchKernel", .result = scene->earlier_error};
        evidence->events = &room->event;
        evidence->event_count = 1;
    }
}

static bool any_has(const char *const *lines, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++)
        if (strstr(lines[i], text))
            return true;
    return false;
}

bool verdict_says(const struct gos_verdict *verdict, const char *text)
{
    return strstr(verdict->summary, text) ||
           any_has(verdict->evidence, verdict->evidence_count, text);
}

bool verdict_advises(const struct gos_verdict *verdict, const char *text)
{
    return any_has(verdict->advice, verdict->advice_count, text);
}

/* xorshift64*: no library's generator, so that the numbers never change. */
uint64_t random_next(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545F4914F6CDD1Du;
}

uint64_t random_below(uint64_t *state, uint64_t end)
{
    return end ? random_next(state) % end : 0;
}
