#include "situation.h"

#include <string.h>

#include "framework.h"
#include "holder.h"
#include "library.h"
#include "need.h"
#include "saturate.h"
#include "wording.h"

/*
 * No process that uses CUDA takes less of a device than a context: a smaller
 * hidden amount is nobody, only numbers of two moments.
 */
#define NEIGHBOUR_LEAST_BYTES (256ull << 20)

static bool asks_host(enum gos_kind kind)
{
    return kind == GOS_KIND_HOST || kind == GOS_KIND_REGISTERED || kind == GOS_KIND_ADDRESS ||
           kind == GOS_KIND_MANAGED;
}

static uint64_t round_to_blocks(uint64_t bytes)
{
    uint64_t up = gos_plus(bytes, GOS_BLOCK_BYTES - 1);
    return up - up % GOS_BLOCK_BYTES;
}

static bool has_size(const struct gos_request *request)
{
    return request->bytes_known && request->bytes > 0;
}

/*
 * A small request could live in a shared block, but since it failed there was
 * no hole for it: it needs a block as well.
 */
uint64_t gos_situation_cost_bytes(const struct gos_request *request)
{
    if (has_size(request))
        return round_to_blocks(request->bytes);
    return gos_need_is_context(request) ? GOS_CONTEXT_BYTES : GOS_DEVICE_FULL_BYTES;
}

static void reckon_request(struct gos_situation *s)
{
    bool sized = has_size(s->request);
    bool is_most = s->diagnosis->need.is_most;
    s->cost_bytes = gos_situation_cost_bytes(s->request);
    if (!sized && s->asked_bytes)
        s->cost_bytes = round_to_blocks(s->asked_bytes);
    else if (!sized)
        s->cost_bytes =
            gos_greater(s->cost_bytes, gos_situation_total_bytes(s) / GOS_DEVICE_FULL_SHARE);
    s->free_bytes = (uint64_t)s->ledger->lines[GOS_LEDGER_FREE].bytes;
    s->strict = s->asked_bytes && !is_most && s->cost_bytes > s->free_bytes;
    uint64_t dust = s->asked_bytes && !is_most && !s->strict ? GOS_FREE_DUST_BYTES : 0;
    s->missing_bytes = gos_beyond(gos_plus(s->cost_bytes, dust), s->free_bytes);
}

static uint64_t credible_hidden(const struct gos_situation *s)
{
    uint64_t hidden = gos_situation_line_bytes(s, GOS_LEDGER_HIDDEN);
    if (!s->device->own_bytes_known)
        hidden = gos_beyond(hidden, GOS_CONTEXT_ALLOWANCE_BYTES);
    return hidden >= NEIGHBOUR_LEAST_BYTES ? hidden : 0;
}

/*
 * Before it fails the driver takes whole chunks back from pools, so what lies
 * idle between live buffers afterwards is pieces.  Pools without anything live
 * can give all of theirs, once the host has waited; when it has, and the
 * request failed again, the driver has taken that, too.
 */
static uint64_t givable_bytes(const struct gos_situation *s, uint64_t graphs)
{
    uint64_t pools = gos_beyond(s->idle_bytes, graphs);
    if (s->tried.trim_helped)
        return s->idle_bytes;
    if (s->tried.is_trimmed)
        return 0;
    if (s->tried.is_drained)
        return gos_lesser(graphs, s->idle_bytes);
    return graphs + (s->pools.complete ? gos_lesser(pools, s->pools.unpinned_bytes) : pools);
}

/* What was pending and did not come back lies idle in its pool now. */
static void reckon_pools(struct gos_situation *s)
{
    uint64_t returned = s->tried.pooled_bytes;
    uint64_t graphs = gos_situation_line_bytes(s, GOS_LEDGER_GRAPH_IDLE);
    uint64_t pending = gos_situation_line_bytes(s, GOS_LEDGER_POOL_PENDING);
    uint64_t idle = gos_situation_line_bytes(s, GOS_LEDGER_POOL_IDLE);
    uint64_t own = gos_pool_unused_own(s->evidence, (uint32_t)s->device->ordinal);
    s->pending_bytes = gos_beyond(pending, returned);
    idle = gos_beyond(idle + pending, returned) - s->pending_bytes;
    if (s->tried.is_drained) {
        idle += s->pending_bytes;
        s->pending_bytes = 0;
    }
    s->own_idle_bytes = gos_lesser(own, idle);
    s->idle_bytes = idle - s->own_idle_bytes + graphs;
    s->givable_bytes = givable_bytes(s, graphs);
    if (s->tried.is_drained || s->tried.is_trimmed)
        s->pools.surely_unpinned_bytes = 0;
}

static void reckon_sources(struct gos_situation *s)
{
    reckon_pools(s);
    s->stuck_bytes = gos_situation_line_bytes(s, GOS_LEDGER_HALF_EMPTY);
    s->tracked_bytes = s->ledger->own_bytes - gos_situation_line_bytes(s, GOS_LEDGER_CONTEXT) -
                       gos_situation_line_bytes(s, GOS_LEDGER_HELD);
    s->neighbours_bytes = gos_situation_line_bytes(s, GOS_LEDGER_CHILDREN) +
                          gos_situation_line_bytes(s, GOS_LEDGER_OTHERS);
    s->hidden_bytes = credible_hidden(s);
    s->imported_bytes = gos_lesser(s->device->live[GOS_KIND_IMPORTED].live_bytes,
                                   gos_plus(s->neighbours_bytes, s->hidden_bytes));
    /* The limit is this process' own: what others hold, or gave back, does not move it. */
    if (s->request->refusal == GOS_REFUSAL_LIMIT)
        s->neighbours_bytes = s->imported_bytes = s->hidden_bytes = 0;
}

static void reckon_tried(struct gos_situation *s)
{
    gos_tried_make(s->diagnosis, &s->tried);
    s->was_taken = s->missing_bytes > 0 && s->tried.returned_bytes >= s->missing_bytes;
    if (!s->was_taken)
        s->missing_bytes = gos_beyond(s->missing_bytes, s->tried.returned_bytes);
}

static void reckon_device(struct gos_situation *s)
{
    uint32_t ordinal = (uint32_t)s->diagnosis->device;
    s->device = &s->evidence->devices[ordinal];
    s->ledger = &s->diagnosis->ledgers[ordinal];
    s->fragmentation = &s->diagnosis->fragmentation[ordinal];
    gos_pool_sum_make(s->evidence, s->device, &s->pools);
    reckon_request(s);
    reckon_tried(s);
    reckon_sources(s);
    s->on_device = s->out_of_memory && !s->on_host && s->request->kind != GOS_KIND_IMPORTED;
}

void gos_situation_make(struct gos_evidence *evidence, const struct gos_diagnosis *diagnosis,
                        struct gos_situation *situation)
{
    const struct gos_request *request = &evidence->request;
    *situation = (struct gos_situation){
        .evidence = evidence,
        .diagnosis = diagnosis,
        .request = request,
        .requester = gos_holder_of_request(request),
        .out_of_memory = request->result == 2 || request->is_word,
        .on_host = asks_host(request->kind),
        .asked_bytes = request->bytes_known ? request->bytes : diagnosis->need.bytes,
    };
    int device = diagnosis->device;
    if (device >= 0 && device < GOS_DEVICE_MAX && diagnosis->ledgers[device].known)
        reckon_device(situation);
    if (situation->on_device && situation->missing_bytes > 0)
        gos_leak_find(evidence, (uint32_t)device, situation->missing_bytes, &situation->leak);
}

uint64_t gos_situation_unused_bytes(const struct gos_situation *s)
{
    return s->idle_bytes + s->own_idle_bytes + s->pending_bytes + s->stuck_bytes;
}

const char *gos_situation_cache(const struct gos_situation *s, uint64_t *bytes)
{
    for (size_t i = 0; i < s->diagnosis->holder_count; i++) {
        if (!gos_library_caches(s->diagnosis->holders[i].name))
            continue;
        *bytes =
            gos_framework_opaque_bytes(s->evidence, s->diagnosis->holders[i].name,
                                       s->diagnosis->device, s->diagnosis->holders[i].live_bytes);
        return s->diagnosis->holders[i].name;
    }
    *bytes = 0;
    return "";
}

uint64_t gos_situation_short_bytes(const struct gos_situation *s)
{
    return s->asked_bytes > s->free_bytes ? s->asked_bytes - s->free_bytes
                                          : s->cost_bytes - s->free_bytes;
}

const char *gos_situation_amount(const struct gos_situation *s, uint64_t bytes)
{
    return gos_wording_bytes(s->evidence, bytes);
}

const char *gos_situation_arithmetic(const struct gos_situation *s)
{
    const char *free_words = gos_wording_bytes(s->evidence, s->free_bytes);
    if (s->diagnosis->need.words && !s->strict)
        return gos_wording(s->evidence, "%s needed %s; %s are free.", s->request->api,
                           s->diagnosis->need.words, free_words);
    if (!s->asked_bytes)
        return gos_wording(s->evidence, "The size of what %s needed is not known; %s are free.",
                           s->request->api, free_words);
    const char *asked = gos_wording_bytes(s->evidence, s->asked_bytes);
    if (!s->strict)
        return gos_wording(s->evidence,
                           "%s asked, %s free: the last few MiB cannot be had, the driver needs "
                           "them itself.",
                           asked, free_words);
    return gos_wording(s->evidence, "%s asked, %s free: short by %s%s.", asked, free_words,
                       gos_wording_bytes(s->evidence, gos_situation_short_bytes(s)),
                       s->asked_bytes > s->free_bytes ? "" : " (whole 2 MiB blocks are needed)");
}

uint64_t gos_situation_total_bytes(const struct gos_situation *s)
{
    uint64_t total =
        s->device->driver_known ? s->device->driver_total_bytes : s->ledger->total_bytes;
    uint64_t limit = s->device->limit_bytes;
    return limit ? gos_lesser(total, limit) : total;
}

const char *gos_situation_requester(const struct gos_situation *s)
{
    return s->requester[0] ? s->requester : "the caller";
}
