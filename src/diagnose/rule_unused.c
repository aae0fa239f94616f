/* Enough memory is unused, but not free. */
#include <string.h>

#include "advice.h"
#include "holder.h"
#include "rule.h"
#include "saturate.h"
#include "wording.h"

/* Requests up to this size share a 2 MiB block with others. */
#define SHARED_MOST_BYTES (1ull << 20)

/*
 * Pools without anything live give all of it back once the host has seen the
 * frees.  A stream-ordered request may have waited for pending frees already,
 * so for it nothing is certain.
 */
static bool surely_returns(const struct gos_situation *s)
{
    return s->strict && s->request->kind != GOS_KIND_POOL && s->pools.complete &&
           s->missing_bytes + GOS_FREE_DUST_BYTES <= s->pools.surely_unpinned_bytes;
}

static void say_streams(const struct gos_situation *s, struct gos_verdict *verdict)
{
    uint64_t running = 0;
    uint64_t finished = 0;
    for (size_t i = 0; i < s->evidence->stream_count; i++) {
        const struct gos_stream_evidence *stream = &s->evidence->streams[i];
        if (stream->device != (uint32_t)s->device->ordinal || stream->freed_bytes == 0)
            continue;
        running += stream->asked && stream->running;
        finished += stream->asked && !stream->running;
    }
    if (running)
        gos_verdict_say(verdict, gos_wording(s->evidence, "Still at work, with freed memory: %s.",
                                             gos_wording_count(s->evidence, running, "stream")));
    if (finished)
        gos_verdict_say(verdict,
                        gos_wording(s->evidence,
                                    "Done, but the host never waited, so the driver does not take "
                                    "the memory back: %s.",
                                    gos_wording_count(s->evidence, finished, "stream")));
}

bool gos_rule_pending_free(const struct gos_situation *s, struct gos_verdict *verdict)
{
    uint64_t idle = s->idle_bytes + s->own_idle_bytes;
    if (!gos_situation_is_short(s) || s->missing_bytes <= idle ||
        s->missing_bytes > idle + s->pending_bytes)
        return false;
    verdict->code = GOS_VERDICT_PENDING_FREE;
    verdict->confidence = surely_returns(s) ? GOS_CONFIDENCE_PROVEN : GOS_CONFIDENCE_LIKELY;
    verdict->summary =
        gos_wording(s->evidence,
                    "%s were freed in stream order but are not back yet; with them the request "
                    "fits.",
                    gos_situation_amount(s, s->pending_bytes));
    gos_verdict_say(verdict, gos_situation_arithmetic(s));
    say_streams(s, verdict);
    gos_verdict_advise(verdict, "Synchronize the stream that frees (cudaStreamSynchronize) "
                                "before this allocation.");
    gos_verdict_advise(verdict, "Or allocate in the same stream with cudaMallocAsync: it may use "
                                "that memory without waiting.");
    return true;
}

/* The pool with most unused bytes that is not the request's own. */
static const struct gos_pool_evidence *idlest_pool(const struct gos_situation *s)
{
    const struct gos_pool_evidence *best = NULL;
    uint64_t most = 0;
    for (size_t i = 0; i < s->evidence->pool_count; i++) {
        const struct gos_pool_evidence *pool = &s->evidence->pools[i];
        uint64_t unused = gos_beyond(pool->reserved_bytes, gos_pool_used_bytes(pool));
        if (pool->device != (uint32_t)s->device->ordinal || pool->imported || unused <= most ||
            !pool->attributes_known)
            continue;
        best = pool;
        most = unused;
    }
    return best;
}

static void say_pool(const struct gos_situation *s, struct gos_verdict *verdict)
{
    const struct gos_pool_evidence *pool = idlest_pool(s);
    if (!pool)
        return;
    gos_verdict_say(verdict,
                    gos_wording(s->evidence, "%s: %s reserved, %s in use.",
                                pool->is_default ? "The device's default pool" : "A memory pool",
                                gos_situation_amount(s, pool->reserved_bytes),
                                gos_situation_amount(s, gos_pool_used_bytes(pool))));
    if (pool->threshold_bytes)
        gos_verdict_say(verdict,
                        pool->threshold_bytes == UINT64_MAX
                            ? "Its release threshold has no limit: it keeps what it once had."
                            : gos_wording(s->evidence, "Its release threshold is %s.",
                                          gos_situation_amount(s, pool->threshold_bytes)));
}

bool gos_rule_pool_held(const struct gos_situation *s, struct gos_verdict *verdict)
{
    if (!gos_situation_is_short(s) || s->missing_bytes > s->givable_bytes)
        return false;
    verdict->code = GOS_VERDICT_CACHE_HELD;
    verdict->confidence = surely_returns(s) ? GOS_CONFIDENCE_PROVEN : GOS_CONFIDENCE_LIKELY;
    verdict->summary = gos_wording(
        s->evidence, "Memory pools of this process keep %s that nobody uses; %s could not get it.",
        gos_situation_amount(s, s->idle_bytes), gos_situation_requester(s));
    gos_verdict_say(verdict, gos_situation_arithmetic(s));
    say_pool(s, verdict);
    uint64_t graphs = gos_situation_line_bytes(s, GOS_LEDGER_GRAPH_IDLE);
    if (graphs)
        gos_verdict_say(verdict, gos_wording(s->evidence, "%s of it is idle graph memory.",
                                             gos_situation_amount(s, graphs)));
    gos_verdict_advise(verdict, "Give it back first: cudaMemPoolTrimTo(pool, 0) after a "
                                "synchronization; cudaDeviceGraphMemTrim for graphs.");
    gos_verdict_advise(verdict, "Or lower the pool's release threshold "
                                "(cudaMemPoolAttrReleaseThreshold).");
    return true;
}

static void say_pins(const struct gos_situation *s, struct gos_verdict *verdict)
{
    for (size_t i = 0; i < s->fragmentation->pin_count && i < 4; i++) {
        const char *words = gos_holder_site_words(s->evidence, s->fragmentation->pins[i].site);
        gos_verdict_say(
            verdict,
            gos_wording(s->evidence, "%s pins %s with %s unused.",
                        words[0] ? words : "A site without a stack",
                        gos_wording_count(s->evidence, s->fragmentation->pins[i].blocks, "block"),
                        gos_situation_amount(s, s->fragmentation->pins[i].stuck_bytes)));
    }
}

static void advise_pins(const struct gos_situation *s, struct gos_verdict *verdict)
{
    const char *words = s->fragmentation->pin_count
                            ? gos_holder_site_words(s->evidence, s->fragmentation->pins[0].site)
                            : "";
    gos_verdict_advise(
        verdict, gos_wording(s->evidence,
                             "Put the small allocations%s%s into one larger one, or into a pool "
                             "(cudaMallocAsync).",
                             words[0] ? " of " : "", words));
    gos_verdict_advise(verdict, "Allocate the large buffers first, and free small ones together.");
}

/*
 * The block map comes from addresses.  It is proof where our own share is
 * known and has room for it: those bytes are gone, and nothing else claims
 * them.
 */
static enum gos_confidence confidence_in_blocks(const struct gos_situation *s)
{
    bool sure = s->strict && s->device->own_bytes_known && !s->ledger->clamped &&
                s->fragmentation->block_lost_count == 0 &&
                s->missing_bytes + GOS_FREE_DUST_BYTES <= s->stuck_bytes;
    return sure ? GOS_CONFIDENCE_PROVEN : GOS_CONFIDENCE_LIKELY;
}

bool gos_rule_blocks_fragmented(const struct gos_situation *s, struct gos_verdict *verdict)
{
    bool small = s->asked_bytes > 0 && s->asked_bytes <= SHARED_MOST_BYTES;
    if (!gos_situation_is_short(s) || small || s->stuck_bytes == 0 ||
        s->missing_bytes > gos_situation_unused_bytes(s))
        return false;
    verdict->code = GOS_VERDICT_FRAGMENTED;
    verdict->confidence = confidence_in_blocks(s);
    verdict->summary =
        gos_wording(s->evidence,
                    "%s of the device are unused, but lie in 2 MiB blocks that small allocations "
                    "keep; none is whole.",
                    gos_situation_amount(s, s->stuck_bytes));
    gos_verdict_say(verdict, gos_situation_arithmetic(s));
    gos_verdict_say(
        verdict, gos_wording(s->evidence, "%s shared by small allocations, %llu at most half used.",
                             gos_wording_count(s->evidence, s->fragmentation->block_count, "block"),
                             (unsigned long long)s->fragmentation->block_pinned_count));
    if (s->fragmentation->block_lost_count)
        gos_verdict_say(verdict,
                        gos_wording(s->evidence,
                                    "The map lacks %llu small allocations, so that less than this "
                                    "is unused.",
                                    (unsigned long long)s->fragmentation->block_lost_count));
    say_pins(s, verdict);
    advise_pins(s, verdict);
    return true;
}

bool gos_rule_pool_fragmented(const struct gos_situation *s, struct gos_verdict *verdict)
{
    if (!gos_situation_is_short(s) || s->own_idle_bytes == 0 ||
        (s->missing_bytes > s->own_idle_bytes + s->idle_bytes &&
         s->asked_bytes > s->own_idle_bytes))
        return false;
    verdict->code = GOS_VERDICT_FRAGMENTED;
    verdict->confidence = GOS_CONFIDENCE_LIKELY;
    verdict->summary = gos_wording(
        s->evidence, "The pool has %s unused, which would be enough, but not in one piece.",
        gos_situation_amount(s, s->own_idle_bytes));
    gos_verdict_say(verdict, gos_situation_arithmetic(s));
    say_pool(s, verdict);
    gos_verdict_advise(verdict, "Take long-lived and short-lived buffers from different pools.");
    gos_verdict_advise(verdict, s->tried.is_trimmed
                                    ? "Allocate the large buffers first."
                                    : "Allocate the large buffers first, or trim the pool "
                                      "(cudaMemPoolTrimTo) between phases.");
    return true;
}

static const char *where_words(const struct gos_situation *s)
{
    if (s->tried.is_trimmed)
        return "that trimming did not give back";
    return s->tried.is_drained ? "that waiting for its streams did not give back"
                               : "between live buffers";
}

/* The same of pools that the request is not served from. */
bool gos_rule_pool_pieces(const struct gos_situation *s, struct gos_verdict *verdict)
{
    if (!gos_situation_is_short(s) || s->missing_bytes > s->idle_bytes)
        return false;
    verdict->code = GOS_VERDICT_FRAGMENTED;
    verdict->confidence = GOS_CONFIDENCE_LIKELY;
    verdict->summary = gos_wording(
        s->evidence,
        "Memory pools of this process have %s unused %s; the driver takes back whole chunks only.",
        gos_situation_amount(s, s->idle_bytes), where_words(s));
    gos_verdict_say(verdict, gos_situation_arithmetic(s));
    say_pool(s, verdict);
    gos_verdict_advise(verdict, "Take long-lived and short-lived buffers from different pools, so "
                                "that one of them empties.");
    gos_verdict_advise(verdict, "Allocate the large buffers first.");
    return true;
}

/*
 * A framework's segments are opaque: which of them are idle, only it knows.
 * It empties its cache for its own requests, but never for somebody else's,
 * and not for a kernel that the driver has to load.
 */
bool gos_rule_cache_opaque(const struct gos_situation *s, struct gos_verdict *verdict)
{
    uint64_t held = 0;
    const char *cache = gos_situation_cache(s, &held);
    bool is_asked = gos_tried_asked(s->diagnosis, cache); /* it gave what it does not use */
    bool for_itself = s->asked_bytes > 0 && strcmp(cache, s->requester) == 0;
    if (!gos_situation_is_short(s) || !cache[0] || is_asked || for_itself ||
        held < s->missing_bytes || gos_framework_word(s, cache))
        return false;
    verdict->code = GOS_VERDICT_CACHE_HELD;
    verdict->confidence = GOS_CONFIDENCE_POSSIBLE;
    verdict->holder = cache;
    verdict->holder_bytes = held;
    verdict->summary = gos_wording(
        s->evidence,
        "%s keeps up to %s that it may not use, and gives none of it back by itself when %s "
        "needs memory.",
        cache, gos_situation_amount(s, held),
        strcmp(cache, s->requester) == 0 ? "a kernel or library" : gos_situation_requester(s));
    gos_verdict_say(verdict, gos_situation_arithmetic(s));
    gos_verdict_say(verdict,
                    gos_wording(s->evidence,
                                "How much of it %s does not use cannot be seen from outside: its "
                                "segments are opaque.",
                                cache));
    gos_advise_cache(s, verdict, cache);
    gos_verdict_say_others(s, verdict);
    return true;
}
