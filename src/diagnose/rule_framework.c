/* A framework said how much of its cache it does not use. */
#include <string.h>

#include "advice.h"
#include "framework.h"
#include "rule.h"
#include "saturate.h"
#include "wording.h"

typedef uint64_t measure(const struct gos_situation *s,
                         const struct gos_framework_evidence *framework);

static bool was_asked(const struct gos_situation *s, const struct gos_framework_evidence *framework)
{
    return gos_tried_asked(s->diagnosis, framework->name);
}

/* Still; which of those that were asked gave how much is not told apart. */
static uint64_t idle_bytes(const struct gos_situation *s,
                           const struct gos_framework_evidence *framework)
{
    return gos_beyond(gos_framework_idle_bytes(framework),
                      was_asked(s, framework) ? s->tried.flushed_bytes : 0);
}

/* One that was asked has given what it could. */
static uint64_t givable_bytes(const struct gos_situation *s,
                              const struct gos_framework_evidence *framework)
{
    return was_asked(s, framework) ? 0 : gos_framework_givable_bytes(framework);
}

/*
 * The one with most by that measure.  Either those that the request is served
 * by (they have looked through their own cache already), or the others.
 */
static const struct gos_framework_evidence *most(const struct gos_situation *s, bool serving,
                                                 measure *of)
{
    const struct gos_framework_evidence *best = NULL;
    for (size_t i = 0; i < s->evidence->framework_count; i++) {
        const struct gos_framework_evidence *one = &s->evidence->frameworks[i];
        if (one->device != (uint32_t)s->device->ordinal ||
            gos_framework_serves(one, s->evidence) != serving)
            continue;
        if (!best || of(s, one) > of(s, best))
            best = one;
    }
    return best;
}

static void blame(const struct gos_framework_evidence *framework, struct gos_verdict *verdict)
{
    verdict->holder = framework->name;
    verdict->holder_bytes = framework->reserved_bytes;
}

/* When it was asked matters as soon as the program has gone on meanwhile. */
static const char *when_words(const struct gos_situation *s,
                              const struct gos_framework_evidence *framework)
{
    return framework->is_late
               ? gos_wording(s->evidence,
                             " (asked %llu ms after the failure, when the call had returned)",
                             (unsigned long long)(framework->after_ns / 1000000))
               : "";
}

/* "30 segments, all in use only in part; the largest unused block has 510.0 MiB." */
static const char *segments_words(const struct gos_situation *s,
                                  const struct gos_framework_evidence *framework)
{
    uint64_t pinned = framework->pinned_segment_count;
    const char *in_part =
        pinned == 0 || pinned == framework->segment_count
            ? (pinned ? ", all in use only in part" : "")
            : gos_wording(s->evidence, ", %llu in use only in part", (unsigned long long)pinned);
    return gos_wording(s->evidence, "%s%s; the largest unused block has %s.",
                       gos_wording_count(s->evidence, framework->segment_count, "segment"), in_part,
                       gos_situation_amount(s, framework->largest_free_bytes));
}

void gos_framework_say(const struct gos_situation *s,
                       const struct gos_framework_evidence *framework, struct gos_verdict *verdict)
{
    gos_verdict_say(verdict,
                    gos_wording(s->evidence, "%s says: %s reserved, %s in use%s.", framework->name,
                                gos_situation_amount(s, framework->reserved_bytes),
                                gos_situation_amount(s, framework->used_bytes),
                                when_words(s, framework)));
    if (framework->map_known)
        gos_verdict_say(verdict, segments_words(s, framework));
    if (framework->settings[0])
        gos_verdict_say(
            verdict, gos_wording(s->evidence, "Its allocator is set to %s.", framework->settings));
}

/* --- enough that it would give back --- */

/* On our books: what is claimed must have been allocated. */
static uint64_t booked_bytes(const struct gos_situation *s, const char *name)
{
    for (size_t i = 0; i < s->diagnosis->holder_count; i++)
        if (strcmp(s->diagnosis->holders[i].name, name) == 0)
            return s->diagnosis->holders[i].live_bytes;
    return 0;
}

/*
 * Device blocks that small allocations share come back only when all of them
 * are freed, and whose they are is not looked up.
 */
static uint64_t shared_bytes(const struct gos_situation *s)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < s->device->small_count; i++)
        bytes += s->device->smalls[i].bytes;
    return bytes;
}

/*
 * Its own word about whole segments, of the time when the call was failing,
 * borne out by our books, and more than what the last few MiB of the device
 * could make of it.
 */
static bool surely_gives(const struct gos_situation *s,
                         const struct gos_framework_evidence *framework)
{
    uint64_t sure = gos_beyond(gos_framework_givable_bytes(framework), shared_bytes(s));
    return s->strict && framework->releasable_known && !framework->is_late &&
           s->device->small_lost == 0 &&
           s->ledger->lines[GOS_LEDGER_FRAMEWORK_IDLE].source == GOS_SOURCE_MEASURED &&
           booked_bytes(s, framework->name) >= framework->reserved_bytes &&
           sure >= s->missing_bytes + GOS_FREE_DUST_BYTES;
}

bool gos_rule_framework_held(const struct gos_situation *s, struct gos_verdict *verdict)
{
    const struct gos_framework_evidence *framework =
        gos_situation_is_short(s) ? most(s, false, givable_bytes) : NULL;
    if (!framework || givable_bytes(s, framework) < s->missing_bytes)
        return false;
    verdict->code = GOS_VERDICT_CACHE_HELD;
    verdict->confidence =
        surely_gives(s, framework) ? GOS_CONFIDENCE_PROVEN : GOS_CONFIDENCE_LIKELY;
    blame(framework, verdict);
    verdict->summary =
        gos_wording(s->evidence, "%s keeps %s that it does not use; %s could not get it.",
                    framework->name, gos_situation_amount(s, gos_framework_idle_bytes(framework)),
                    strcmp(framework->name, s->requester) == 0 ? "a kernel or library"
                                                               : gos_situation_requester(s));
    gos_verdict_say(verdict, gos_situation_arithmetic(s));
    gos_framework_say(s, framework, verdict);
    gos_advise_cache(s, verdict, framework->name);
    return true;
}

/* --- enough, but in pieces --- */

static const char *pieces_words(const struct gos_situation *s,
                                const struct gos_framework_evidence *framework, bool serving)
{
    uint64_t givable = gos_framework_givable_bytes(framework);
    if (was_asked(s, framework))
        return gos_wording(s->evidence, "but %s when it was asked to",
                           s->tried.flushed_bytes
                               ? gos_wording(s->evidence, "gave back only %s",
                                             gos_situation_amount(s, s->tried.flushed_bytes))
                               : "gave back nothing");
    if (!framework->map_known)
        return "but only parts of segments, as far as it tells";
    if (!serving)
        return gos_wording(
            s->evidence,
            "but could give back %s of it: the rest is in segments where "
            "something lives",
            givable ? gos_wording(s->evidence, "only %s", gos_situation_amount(s, givable))
                    : "nothing");
    return gos_wording(s->evidence, "but in %s, the largest of %s",
                       gos_wording_count(s->evidence, framework->piece_count, "piece"),
                       gos_situation_amount(s, framework->largest_free_bytes));
}

/*
 * How much of what is unused would do.  What fails with physical memory is one
 * piece of a segment: unless torch's word says how large that was to be, it is not
 * known, but that all pieces made so far belong to it is likely.
 */
static uint64_t enough_bytes(const struct gos_situation *s, bool serving)
{
    if (!serving || s->request->kind != GOS_KIND_PHYSICAL || s->request->is_word)
        return s->missing_bytes;
    return gos_plus(s->asked_bytes, s->device->unmapped_physical_bytes);
}

const struct gos_framework_evidence *gos_framework_word(const struct gos_situation *s,
                                                        const char *library)
{
    return gos_framework_find(s->evidence, library, (uint32_t)s->diagnosis->device);
}

bool gos_framework_has_enough(const struct gos_situation *s,
                              const struct gos_framework_evidence *framework)
{
    bool serving = gos_framework_serves(framework, s->evidence);
    return idle_bytes(s, framework) >= enough_bytes(s, serving);
}

/* Only torch tells pieces from whole segments. */
static bool is_in_pieces(const struct gos_situation *s,
                         const struct gos_framework_evidence *framework, bool serving)
{
    if (!gos_framework_has_enough(s, framework))
        return false;
    if (serving && framework->map_known)
        return framework->piece_count > 1 && framework->largest_free_bytes < s->asked_bytes;
    if (serving)
        return framework->inactive_split_bytes >= s->missing_bytes;
    return givable_bytes(s, framework) < s->missing_bytes &&
           (was_asked(s, framework) || framework->inactive_split_bytes > 0 ||
            framework->releasable_known);
}

bool gos_rule_framework_fragmented(const struct gos_situation *s, struct gos_verdict *verdict)
{
    bool serving = true;
    const struct gos_framework_evidence *framework =
        gos_situation_is_short(s) ? most(s, true, idle_bytes) : NULL;
    if (gos_situation_is_short(s) && !framework) {
        serving = false;
        framework = most(s, false, idle_bytes);
    }
    if (!framework || !is_in_pieces(s, framework, serving))
        return false;
    verdict->code = GOS_VERDICT_FRAGMENTED;
    verdict->confidence = GOS_CONFIDENCE_LIKELY;
    blame(framework, verdict);
    verdict->summary =
        gos_wording(s->evidence, "%s has %s reserved and unused, which would be enough, %s.",
                    framework->name, gos_situation_amount(s, gos_framework_idle_bytes(framework)),
                    pieces_words(s, framework, serving));
    gos_verdict_say(verdict, gos_situation_arithmetic(s));
    gos_framework_say(s, framework, verdict);
    gos_advise_torch_whole(s, verdict);
    return true;
}
