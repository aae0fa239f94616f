#include "step_fallback.h"

#include <stddef.h>

#include "../base/memory.h"
#include "../base/options.h"
#include "../base/text.h"
#include "../cuda/driver.h"
#include "../track/allowance.h"
#include "../track/fallback.h"
#include "fallback_free.h"

#define WORDS_BYTES 320

/* One attempt: what is asked for, and what came of it. */
struct attempt {
    const struct gos_ladder *ladder;
    const struct gos_request *request;
    struct gos_fallback_memory memory;
    const char *why_not; /* it was not even tried */
    CUresult result;
};

static const struct {
    enum gos_kind kind;
    const char *words;
} ways[GOS_FALLBACK_COUNT] = {
    [GOS_FALLBACK_SYNC] = {GOS_KIND_DEVICE, "cuMemAlloc instead of the pool: slower to get"},
    [GOS_FALLBACK_MANAGED] = {GOS_KIND_MANAGED,
                              "managed memory: slower where its pages are not on the device"},
    [GOS_FALLBACK_HOST] = {GOS_KIND_HOST,
                           "pinned host memory: much slower, each access goes over the bus"},
};

bool gos_step_fallback_is_asked_for(void)
{
    return gos_options.fallback != 0;
}

bool gos_step_fallback_may_help(const struct gos_ladder *ladder, const char **why_not)
{
    if (!ladder->is_replaceable)
        *why_not = "this call cannot return other memory";
    return ladder->is_replaceable;
}

/* --- the ways ----------------------------------------------------------------------------------
 */

static uint64_t held_bytes(const struct attempt *attempt, enum gos_fallback way)
{
    return gos_fallback_total(attempt->memory.device, way).live_bytes;
}

static bool exceeds(uint64_t held, uint64_t bytes, uint64_t limit)
{
    return held > limit || bytes > limit - held;
}

/* Of another device than its own: a kernel there would fault on what cuMemAlloc gives. */
static bool may_access(uint32_t device, CUmemoryPool pool)
{
    CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = (int)device};
    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;

    return !gos_driver.cuMemPoolGetAccess ||
           gos_driver.cuMemPoolGetAccess(&flags, pool, &location) != CUDA_SUCCESS ||
           flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

static bool is_shared_pool(const struct attempt *attempt)
{
    CUmemoryPool pool = (CUmemoryPool)(uintptr_t)attempt->request->pool;
    uint32_t device_count = attempt->ladder->diagnosis->evidence->device_count;

    for (uint32_t device = 0; device < device_count; device++)
        if (device != attempt->memory.device && may_access(device, pool))
            return true;
    return false;
}

static void take_sync(struct attempt *attempt)
{
    CUdeviceptr address = 0;

    if (attempt->request->kind != GOS_KIND_POOL || !gos_driver.cuMemAlloc)
        attempt->why_not = "not a stream-ordered request";
    else if (gos_allowance_limit(attempt->memory.device))
        attempt->why_not = "GPUOOMSHIM_LIMIT leaves no room for it";
    else if (is_shared_pool(attempt))
        attempt->why_not = "other devices may use the pool";
    if (attempt->why_not)
        return;
    attempt->result = gos_driver.cuMemAlloc(&address, attempt->memory.bytes);
    attempt->memory.address = address;
}

/* Without what GPUOOMSHIM_LIMIT withholds. */
static uint64_t free_bytes(const struct attempt *attempt)
{
    const struct gos_evidence *evidence = attempt->ladder->diagnosis->evidence;
    uint64_t withheld = evidence->devices[attempt->memory.device].withheld_bytes;
    uint64_t bytes = gos_driver_free_bytes();

    return bytes > withheld ? bytes - withheld : 0;
}

static void take_managed(struct attempt *attempt)
{
    CUdeviceptr address = 0;
    uint64_t limit = free_bytes(attempt) + gos_options.fallback_limit;

    if (!gos_driver.cuMemAllocManaged)
        attempt->why_not = "not known to this driver";
    else if (exceeds(held_bytes(attempt, GOS_FALLBACK_MANAGED), attempt->memory.bytes, limit))
        attempt->why_not = "over GPUOOMSHIM_FALLBACK_LIMIT";
    if (attempt->why_not)
        return;
    attempt->result =
        gos_driver.cuMemAllocManaged(&address, attempt->memory.bytes, CU_MEM_ATTACH_GLOBAL);
    attempt->memory.address = address;
}

static bool has_host_room(const struct attempt *attempt)
{
    const struct gos_host_evidence *host = &attempt->ladder->diagnosis->evidence->host;

    return attempt->memory.bytes <= host->memory_available_bytes / 2;
}

static CUresult pin(struct gos_fallback_memory *memory)
{
    void *host = NULL;
    CUdeviceptr address = 0;
    CUresult result = gos_driver.cuMemHostAlloc(
        &host, memory->bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);

    if (result != CUDA_SUCCESS)
        return result;
    result = gos_driver.cuMemHostGetDevicePointer(&address, host, 0);
    if (result != CUDA_SUCCESS)
        gos_driver.cuMemFreeHost(host);
    memory->host = (uint64_t)(uintptr_t)host;
    memory->address = address;
    return result;
}

static void take_host(struct attempt *attempt)
{
    uint64_t limit = gos_options.fallback_limit;

    if (!gos_driver.cuMemHostAlloc || !gos_driver.cuMemHostGetDevicePointer ||
        !gos_driver.cuMemFreeHost)
        attempt->why_not = "not known to this driver";
    else if (exceeds(held_bytes(attempt, GOS_FALLBACK_HOST), attempt->memory.bytes, limit))
        attempt->why_not = "over GPUOOMSHIM_FALLBACK_LIMIT";
    else if (!has_host_room(attempt))
        attempt->why_not = "more than half of the host's available memory";
    else
        attempt->result = pin(&attempt->memory);
}

/* --- trying them -------------------------------------------------------------------------------
 */

static void take_back(const struct attempt *attempt)
{
    if (attempt->memory.way == GOS_FALLBACK_HOST)
        gos_driver.cuMemFreeHost((void *)(uintptr_t)attempt->memory.host);
    else
        gos_driver.cuMemFree(attempt->memory.address);
}

/* What could not be freed again rightly must not be handed out. */
static void enter(struct attempt *attempt)
{
    if (attempt->why_not || attempt->result != CUDA_SUCCESS || gos_fallback_add(&attempt->memory))
        return;
    take_back(attempt);
    attempt->why_not = "too many fallbacks are in use";
}

static bool is_served(const struct attempt *attempt)
{
    return !attempt->why_not && attempt->result == CUDA_SUCCESS;
}

static void put_outcome(struct gos_text *text, const struct attempt *attempt)
{
    enum gos_fallback way = attempt->memory.way;

    if (text->length)
        gos_text_put(text, "; ");
    if (is_served(attempt))
        gos_text_put(text, ways[way].words);
    else if (attempt->why_not)
        gos_text_format(text, "%s: %s", gos_fallback_code(way), attempt->why_not);
    else
        gos_text_format(text, "%s: error %d", gos_fallback_code(way), (int)attempt->result);
}

static struct attempt begin(const struct gos_ladder *ladder, enum gos_fallback way)
{
    const struct gos_request *request = &ladder->diagnosis->evidence->request;
    struct attempt attempt = {.ladder = ladder, .request = request};
    CUcontext context = NULL;

    if (gos_driver.cuCtxGetCurrent)
        gos_driver.cuCtxGetCurrent(&context);
    attempt.memory = (struct gos_fallback_memory){
        .bytes = request->bytes,
        .context = (uint64_t)(uintptr_t)context,
        .device = (uint32_t)ladder->diagnosis->device,
        .way = way,
    };
    return attempt;
}

static struct attempt try_way(const struct gos_ladder *ladder, enum gos_fallback way)
{
    static void (*const takers[GOS_FALLBACK_COUNT])(struct attempt *) = {
        [GOS_FALLBACK_SYNC] = take_sync,
        [GOS_FALLBACK_MANAGED] = take_managed,
        [GOS_FALLBACK_HOST] = take_host,
    };
    struct attempt attempt = begin(ladder, way);

    takers[way](&attempt);
    enter(&attempt);
    return attempt;
}

static void serve(struct gos_ladder *ladder, const struct attempt *attempt)
{
    ladder->substitute = attempt->memory.address;
    ladder->substitute_kind = ways[attempt->memory.way].kind;
}

bool gos_step_fallback_run(struct gos_ladder *ladder, struct gos_step_record *record)
{
    char words[WORDS_BYTES];
    struct gos_text text = gos_text_on(words, sizeof words);

    record->result = "no help";
    gos_fallback_sweep();
    for (unsigned way = 0; way < GOS_FALLBACK_COUNT && !ladder->substitute; way++) {
        if (!(gos_options.fallback & 1u << way))
            continue;
        struct attempt attempt = try_way(ladder, (enum gos_fallback)way);
        put_outcome(&text, &attempt);
        if (is_served(&attempt))
            serve(ladder, &attempt);
        else if (!attempt.why_not && attempt.result != CUDA_ERROR_OUT_OF_MEMORY)
            record->result = "error";
        record->cuda_result = (int)attempt.result;
    }
    const char *kept = gos_arena_intern(text.data, text.length);
    record->reason = kept ? kept : "";
    return ladder->substitute != 0;
}
