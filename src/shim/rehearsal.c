#include "rehearsal.h"

#include <errno.h>
#include <string.h>

#include "../base/hot.h"
#include "../base/log.h"
#include "../base/options.h"
#include "../base/os.h"
#include "../base/text.h"
#include "../cuda/driver.h"
#include "../cuda/error.h"
#include "../track/allowance_measure.h"
#include "../track/pool.h"
#include "call.h"
#include "injection.h"
#include "place.h"

/* This near to the limit contexts and modules are measured anew before memory is given. */
#define NEAR_BYTES ((uint64_t)1 << 30)
/* How often, and how long, what other threads have in flight is waited for. */
#define WAITS 16
#define NAP_NS 200000u

GOS_READ_MOSTLY _Atomic bool gos_rehearsing;
static _Atomic uint64_t limited_count;

/* Of the call that this thread is in. */
static __thread struct {
    uint64_t reserved_bytes;
    uint64_t claimed; /* address whose block is kept on the books until the record is; 0: none */
    uint32_t device;  /* whose allowance the two above are of */
    enum gos_refusal refusal;
    bool tentative; /* asked although there is hardly room */
} ticket __attribute__((tls_model("initial-exec")));

/* --- start ------------------------------------------------------------------------------------ */

static bool is_same_for_all(const struct gos_limit_option *limit)
{
    for (int i = 1; i < GOS_LIMIT_DEVICES; i++) {
        if (limit->bytes[i] != limit->bytes[0])
            return false;
    }
    return true;
}

static void put_limits(struct gos_text *text, const struct gos_limit_option *limit)
{
    for (int i = 0; i < GOS_LIMIT_DEVICES; i++) {
        if (limit->bytes[i] == 0)
            continue;
        gos_text_format(text, "%sGPU %d acts as one of ", text->length > 0 ? ", " : "", i);
        gos_text_bytes(text, limit->bytes[i]);
    }
}

static void say_limit(const struct gos_limit_option *limit)
{
    char buffer[400];
    struct gos_text text = gos_text_on(buffer, sizeof(buffer));

    if (is_same_for_all(limit)) {
        gos_text_put(&text, "each GPU acts as one of ");
        gos_text_bytes(&text, limit->bytes[0]);
    } else {
        put_limits(&text, limit);
    }
    gos_log(GOS_LOG_NOTICE, "rehearsal: %s (GPUOOMSHIM_LIMIT)", buffer);
}

void gos_rehearsal_open(void)
{
    bool injects = gos_options.inject.rule != GOS_INJECT_NONE;

    gos_allowance_open(&gos_options.limit);
    atomic_store(&gos_rehearsing, gos_allowance_is_on() || injects);
    if (gos_allowance_is_on())
        say_limit(&gos_options.limit);
    if (injects)
        gos_log(GOS_LOG_NOTICE, "rehearsal: some allocations will be made to fail "
                                "(GPUOOMSHIM_INJECT)");
}

/* --- end -------------------------------------------------------------------------------------- */

struct gos_rehearsed gos_rehearsal_count(void)
{
    struct gos_rehearsed count = {.limited_count = atomic_load(&limited_count)};

    gos_injection_count(&count.candidate_count, &count.injected_count);
    return count;
}

/* A caller that survives is silent, and so is a setting that met no call: this tells them apart. */
void gos_rehearsal_close(void)
{
    struct gos_rehearsed count = gos_rehearsal_count();

    if (gos_options.inject.rule != GOS_INJECT_NONE)
        gos_log(
            GOS_LOG_NOTICE, "rehearsal: %llu of %llu calls were made to fail (GPUOOMSHIM_INJECT)",
            (unsigned long long)count.injected_count, (unsigned long long)count.candidate_count);
    if (gos_allowance_is_on())
        gos_log(GOS_LOG_NOTICE, "rehearsal: calls that were refused: %llu (GPUOOMSHIM_LIMIT)",
                (unsigned long long)count.limited_count);
}

/* --- the limit -------------------------------------------------------------------------------- */

static bool is_limited_kind(enum gos_kind kind)
{
    return kind == GOS_KIND_DEVICE || kind == GOS_KIND_PHYSICAL || kind == GOS_KIND_ARRAY ||
           kind == GOS_KIND_POOL;
}

static bool is_imported(uint64_t pool)
{
    struct gos_pool_info info;

    return pool && gos_pool_find(pool, &info) && info.imported;
}

/* GOS_DEVICE_HOST where no device, or none that we know, is asked. */
static uint32_t device_of(const struct gos_call *call)
{
    if (!is_limited_kind((enum gos_kind)call->kind) || call->bytes == 0)
        return GOS_DEVICE_HOST;
    if (call->kind != GOS_KIND_POOL)
        return call->device == GOS_DEVICE_CURRENT ? gos_place_of_context()->device
                                                  : (uint32_t)call->device;
    if (gos_capture_includes(call->stream, call->per_thread) || is_imported(call->pool))
        return GOS_DEVICE_HOST; /* a node of a graph takes its memory when it is launched */
    return gos_place_of_stream(call->stream, call->pool)->device;
}

static bool reserve(uint32_t device, uint64_t bytes)
{
    if (!gos_allowance_reserve(device, bytes))
        return false;
    ticket.reserved_bytes = bytes;
    return true;
}

/* The pool serves from what it holds and nobody uses, and grows by the rest. */
static uint64_t growth(const struct gos_call *call, uint32_t device)
{
    uint64_t pool = gos_home_get(gos_place_of_stream(call->stream, call->pool)->home).pool;
    uint64_t idle_bytes = gos_allowance_pool_idle(device, pool);

    if (call->bytes <= idle_bytes)
        return 0;
    return gos_allowance_cost(GOS_KIND_POOL, call->bytes - idle_bytes);
}

static bool reserve_growth(const struct gos_call *call, uint32_t device)
{
    uint64_t bytes = growth(call, device);

    return bytes == 0 || reserve(device, bytes);
}

/* Only what can be taken back is tried. */
static bool may_share_block(const struct gos_call *call)
{
    bool revocable =
        call->entry == GOS_EP_cuMemAlloc_v2 || call->entry == GOS_EP_cuMemAllocPitch_v2;

    return revocable && call->bytes <= GOS_ALLOWANCE_SMALL_BYTES;
}

/* Into what a pool has room for, or what it may still grow to; checked once it is served. */
static bool fits_in_pool(const struct gos_call *call, uint32_t device)
{
    gos_allowance_measure_pools(device);
    ticket.tentative = reserve_growth(call, device);
    return ticket.tentative;
}

static bool fits_now(const struct gos_call *call, uint32_t device, uint64_t cost)
{
    return call->kind == GOS_KIND_POOL ? fits_in_pool(call, device) : reserve(device, cost);
}

/* As a full driver does: idle memory that it has seen the end of goes back to the device first. */
static bool fits_after_trim(const struct gos_call *call, uint32_t device, uint64_t cost)
{
    if (call->kind == GOS_KIND_POOL && fits_in_pool(call, device))
        return true;
    gos_allowance_trim(device);
    gos_allowance_measure(device);
    if (fits_now(call, device, cost))
        return true;
    ticket.tentative = may_share_block(call);
    return ticket.tentative;
}

static void nap(void)
{
    static uint32_t never;

    gos_os.futex_wait(&never, 0, NAP_NS);
}

/*
 * What other threads reserved may turn out to be less, and what ended while we
 * measured was counted twice: a refusal stands when all was still.
 */
static bool finds_room(const struct gos_call *call, uint32_t device, uint64_t cost)
{
    for (int i = 0; i < WAITS; i++) {
        struct gos_allowance_mark mark = gos_allowance_mark(device);
        if (fits_after_trim(call, device, cost))
            return true;
        if (!gos_allowance_is_busy(device) && !gos_allowance_moved(device, &mark))
            break;
        nap();
    }
    return false;
}

/* An error that the driver returns whatever is asked is the one to be seen. */
static bool has_lost_context(void)
{
    size_t available, total;

    return gos_driver.cuMemGetInfo &&
           gos_cuda_error_is_sticky((int)gos_driver.cuMemGetInfo(&available, &total));
}

/* What not even the whole device could serve is the driver's to refuse, in its own words. */
static bool is_beyond_device(uint32_t device, uint64_t cost)
{
    size_t total = 0;

    return gos_driver.cuDeviceTotalMem &&
           gos_driver.cuDeviceTotalMem(&total, (CUdevice)device) == CUDA_SUCCESS && cost > total;
}

static bool is_near(uint32_t device, uint64_t cost)
{
    uint64_t used_bytes = gos_allowance_used(device);
    uint64_t limit_bytes = gos_allowance_limit(device);

    return cost > limit_bytes || used_bytes + cost + NEAR_BYTES > limit_bytes;
}

static bool is_within_limit(const struct gos_call *call)
{
    uint32_t device = device_of(call);
    uint64_t cost = gos_allowance_cost((enum gos_kind)call->kind, call->bytes);

    if (gos_allowance_limit(device) == 0)
        return true;
    ticket.device = device;
    if (call->kind != GOS_KIND_POOL && is_near(device, cost))
        gos_allowance_measure(device);
    if (reserve(device, cost) || finds_room(call, device, cost) || has_lost_context() ||
        is_beyond_device(device, cost))
        return true;
    return false;
}

/* --- one call --------------------------------------------------------------------------------- */

/* What recovery repeats counts once. */
static void refuse_by_limit(const struct gos_call *call)
{
    ticket.refusal = GOS_REFUSAL_LIMIT;
    if (call->first_result == CUDA_SUCCESS)
        atomic_fetch_add(&limited_count, 1);
}

bool gos_rehearsal_admits_context(struct gos_call *call)
{
    uint32_t device = (uint32_t)call->device;
    int saved = errno;
    bool admits = true;

    if (!gos_call_tracks() || call->device < 0 || gos_allowance_limit(device) == 0)
        return true;
    gos_thread.depth++;
    if (!call->rehearsed)
        memset(&ticket, 0, sizeof(ticket));
    call->rehearsed = true;
    ticket.device = device;
    if (!reserve(device, gos_allowance_context_cost(device)) &&
        !finds_room(call, device, gos_allowance_context_cost(device))) {
        refuse_by_limit(call);
        admits = false;
    }
    gos_thread.depth--;
    errno = saved;
    return admits;
}

/* A call that recovery repeats is no candidate any more. */
static bool is_injected(struct gos_call *call)
{
    if (call->rehearsed)
        return false;
    call->rehearsed = true;
    memset(&ticket, 0, sizeof(ticket));
    if (!gos_injection_hits(call))
        return false;
    ticket.refusal = GOS_REFUSAL_INJECTED;
    return true;
}

bool gos_rehearsal_admits(struct gos_call *call)
{
    int saved = errno;
    bool admits;

    if (!gos_call_tracks())
        return true;
    gos_thread.depth++;
    admits = !is_injected(call);
    if (admits && gos_allowance_is_on() && !is_within_limit(call)) {
        refuse_by_limit(call);
        admits = false;
    }
    gos_thread.depth--;
    errno = saved;
    return admits;
}

/* It is back when its stream has come there, which is for recovery to see. */
static void note_pending(const struct gos_call *call)
{
    gos_pending_add(&(struct gos_pending){.stream = call->stream,
                                          .context = gos_place_context_of_stream(call->stream),
                                          .device = ticket.device,
                                          .per_thread = call->per_thread,
                                          .bytes = call->bytes,
                                          .count = 1});
}

static void give_back(const struct gos_call *call, CUdeviceptr pointer)
{
    CUstream stream = (CUstream)(uintptr_t)call->stream;

    if (call->kind != GOS_KIND_POOL)
        GOS_REAL(cuMemFree_v2)(pointer);
    else if (call->per_thread)
        GOS_REAL(cuMemFreeAsync_ptsz)(pointer, stream);
    else
        GOS_REAL(cuMemFreeAsync)(pointer, stream);
}

/* Measured, so that what was reserved for the growth is not counted again. */
static bool pool_fits(void)
{
    uint32_t device = ticket.device;

    gos_allowance_measure_pools(device);
    gos_allowance_release(device, ticket.reserved_bytes);
    ticket.reserved_bytes = 0;
    return gos_allowance_used(device) <= gos_allowance_limit(device);
}

static bool fits(const struct gos_call *call, CUdeviceptr pointer)
{
    if (call->kind == GOS_KIND_POOL)
        return pool_fits();
    if (!gos_allowance_claim(ticket.device, pointer))
        return false;
    ticket.claimed = pointer;
    return true;
}

CUresult gos_rehearsal_keep(struct gos_call *call, CUresult result, CUdeviceptr *pointer)
{
    int saved = errno;
    bool tentative = ticket.tentative;

    ticket.tentative = false;
    if (!tentative || result != CUDA_SUCCESS || *pointer == 0)
        return result;
    gos_thread.depth++;
    if (!fits(call, *pointer)) {
        give_back(call, *pointer);
        if (call->kind == GOS_KIND_POOL)
            note_pending(call);
        *pointer = 0;
        refuse_by_limit(call);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    gos_thread.depth--;
    errno = saved;
    return result;
}

enum gos_refusal gos_rehearsal_refusal(void)
{
    return ticket.refusal;
}

void gos_rehearsal_settle(struct gos_call *call, CUresult result)
{
    uint32_t device = ticket.device;

    if (ticket.claimed)
        gos_allowance_unclaim(device, ticket.claimed);
    if (ticket.reserved_bytes && call->kind == GOS_KIND_POOL && result == CUDA_SUCCESS)
        gos_allowance_draw(device, ticket.reserved_bytes);
    else if (ticket.reserved_bytes)
        gos_allowance_release(device, ticket.reserved_bytes);
    ticket.claimed = 0;
    ticket.reserved_bytes = 0;
    ticket.tentative = false;
}

/* --- what the host is told -------------------------------------------------------------------- */

void gos_rehearsal_show(uint32_t device, struct gos_shown_memory *shown)
{
    uint64_t limit_bytes = gos_allowance_limit(device);
    uint64_t used_bytes, left_bytes;
    int saved = errno;

    if (limit_bytes == 0 || !gos_call_tracks())
        return;
    gos_thread.depth++;
    gos_allowance_measure(device);
    used_bytes = gos_allowance_used(device);
    gos_thread.depth--;
    errno = saved;
    left_bytes = used_bytes < limit_bytes ? limit_bytes - used_bytes : 0;
    if (shown->free_bytes > left_bytes)
        shown->free_bytes = left_bytes;
    if (shown->total_bytes > limit_bytes)
        shown->total_bytes = limit_bytes;
}

/* --- contexts --------------------------------------------------------------------------------- */

void gos_rehearsal_context_made(uint32_t device, CUcontext context)
{
    int saved = errno;

    if (gos_allowance_limit(device) == 0)
        return;
    gos_thread.depth++;
    gos_allowance_context_made(device, (uint64_t)(uintptr_t)context);
    gos_thread.depth--;
    errno = saved;
}

void gos_rehearsal_context_ended(uint32_t device)
{
    int saved = errno;

    if (gos_allowance_limit(device) == 0)
        return;
    gos_thread.depth++;
    gos_allowance_context_ended(device);
    gos_thread.depth--;
    errno = saved;
}

void gos_rehearsal_reset_after_fork(void)
{
    gos_allowance_reset_after_fork();
    gos_allowance_measure_reset_after_fork();
    gos_injection_reset_after_fork();
    atomic_store(&limited_count, 0);
}
