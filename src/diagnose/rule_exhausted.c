/* This process uses the memory itself. */
#include <string.h>

#include "advice.h"
#include "framework.h"
#include "holder.h"
#include "library.h"
#include "need.h"
#include "rule.h"
#include "saturate.h"
#include "setting.h"
#include "wording.h"

/*
 * Others' memory is out of the question only while the limit keeps some of what
 * is free from this process: a device may be short beside its limit.
 */
static uint64_t of_others(const struct gos_situation *s)
{
    return s->device->withheld_bytes > 0 ? s->neighbours_bytes
                                         : gos_situation_line_bytes(s, GOS_LEDGER_CHILDREN) +
                                               gos_situation_line_bytes(s, GOS_LEDGER_OTHERS);
}

/* Everything that might have served the request, seen or not. */
static uint64_t slack_bytes(const struct gos_situation *s)
{
    return gos_situation_unused_bytes(s) + gos_situation_line_bytes(s, GOS_LEDGER_FRAMEWORK_IDLE) +
           of_others(s) + gos_situation_line_bytes(s, GOS_LEDGER_HIDDEN) +
           gos_situation_line_bytes(s, GOS_LEDGER_HELD) + s->device->unmapped_physical_bytes;
}

/* What it said in time that it has: how much of that is unused is a line of the ledger. */
static uint64_t spoken_of(const struct gos_situation *s, const char *library)
{
    const struct gos_framework_evidence *framework = gos_framework_word(s, library);
    return framework && !framework->is_late ? framework->reserved_bytes : 0;
}

/* In segments of caches of which nobody knows how much is used; unseen ones may be a cache's. */
static uint64_t opaque_bytes(const struct gos_situation *s)
{
    const struct gos_diagnosis *diagnosis = s->diagnosis;
    uint64_t bytes = diagnosis->unseen_bytes;
    for (size_t i = 0; i < diagnosis->holder_count; i++) {
        const char *name = diagnosis->holders[i].name;
        uint64_t held = gos_framework_opaque_bytes(s->evidence, name, diagnosis->device,
                                                   diagnosis->holders[i].live_bytes);
        if (gos_library_caches(name))
            bytes = gos_plus(bytes, gos_beyond(held, spoken_of(s, name)));
    }
    return gos_beyond(bytes, s->device->unmapped_physical_bytes); /* no segment yet */
}

static bool holders_are_complete(const struct gos_diagnosis *diagnosis)
{
    return diagnosis->holder_count < sizeof(diagnosis->holders) / sizeof(diagnosis->holders[0]);
}

/* Could what torch has in pieces, or may have, serve the request?  By its own word, also if late.
 */
static bool pieces_could_help(const struct gos_situation *s,
                              const struct gos_framework_evidence *torch)
{
    if (torch)
        return gos_framework_has_enough(s, torch);
    if (s->request->kind == GOS_KIND_POOL) /* the driver's pool is its cache, and has no segments */
        return false;
    return !s->strict ||
           gos_plus(opaque_bytes(s), gos_situation_line_bytes(s, GOS_LEDGER_FRAMEWORK_IDLE)) >=
               s->missing_bytes;
}

/*
 * Proof needs every place where memory could have come from to be known and
 * too small, a framework's segments taken as a whole where it has not said what
 * it uses; managed memory can move to the host; what came
 * back, was enough and went to somebody else was there to be had.
 */
static bool nothing_could_help(const struct gos_situation *s)
{
    bool whole = s->device->driver_known && s->pools.complete && !s->ledger->clamped &&
                 s->ledger->lines[GOS_LEDGER_LIVE_GRAPH].source != GOS_SOURCE_UNKNOWN;
    return whole && s->strict && !s->was_taken && holders_are_complete(s->diagnosis) &&
           s->missing_bytes > gos_plus(slack_bytes(s), opaque_bytes(s)) &&
           s->device->live[GOS_KIND_MANAGED].live_bytes == 0;
}

/* Of allocations, without what a framework says it does not use, and what pools have given back. */
static uint64_t kept_bytes(const struct gos_situation *s)
{
    return gos_beyond(
        s->tracked_bytes,
        gos_plus(gos_situation_line_bytes(s, GOS_LEDGER_FRAMEWORK_IDLE), s->tried.pooled_bytes));
}

/* Of that, what is live; what is managed may be on the host. */
static uint64_t used_bytes(const struct gos_situation *s)
{
    return gos_beyond(kept_bytes(s), gos_plus(gos_situation_line_bytes(s, GOS_LEDGER_LIVE_MANAGED),
                                              gos_situation_unused_bytes(s)));
}

/* Of what this process holds, what no call allocated. */
static bool context_is_most(const struct gos_situation *s)
{
    return gos_situation_line_bytes(s, GOS_LEDGER_CONTEXT) > kept_bytes(s);
}

/* Without what is managed, and what it says itself that it does not use. */
static uint64_t used_by(const struct gos_situation *s, size_t holder)
{
    const struct gos_diagnosis *diagnosis = s->diagnosis;
    const struct gos_framework_evidence *framework =
        gos_framework_word(s, diagnosis->holders[holder].name);
    uint64_t live =
        gos_beyond(diagnosis->holders[holder].live_bytes, diagnosis->holders[holder].managed_bytes);
    return gos_beyond(live, framework ? gos_framework_idle_bytes(framework) : 0);
}

/* ", most of it by torch (12.00 GiB)"; "" where nobody has a name. */
static const char *holder_words(const struct gos_situation *s)
{
    size_t largest = 0;
    for (size_t i = 1; i < s->diagnosis->holder_count; i++)
        if (used_by(s, i) > used_by(s, largest))
            largest = i;
    if (s->diagnosis->holder_count == 0 || !s->diagnosis->holders[largest].name[0])
        return "";
    return gos_wording(s->evidence, ", most of it by %s (%s)", s->diagnosis->holders[largest].name,
                       gos_situation_amount(s, gos_lesser(used_by(s, largest), used_bytes(s))));
}

/* "8.00 GiB freed but not back yet"; "" where that is little. */
static const char *unused_words(const struct gos_situation *s)
{
    uint64_t unused = gos_situation_unused_bytes(s);
    const char *state = s->pending_bytes == 0        ? "unused"
                        : s->pending_bytes == unused ? "freed but not back yet"
                                                     : "unused or not back yet";
    return unused > used_bytes(s) / 16
               ? gos_wording(s->evidence, "%s %s", gos_situation_amount(s, unused), state)
               : "";
}

static const char *managed_words(const struct gos_situation *s)
{
    uint64_t managed = s->device->live[GOS_KIND_MANAGED].live_bytes;
    return managed ? gos_wording(s->evidence, "%s managed, which may be on the host",
                                 gos_situation_amount(s, managed))
                   : "";
}

static const char *joined(const struct gos_situation *s, const char *first, const char *second)
{
    return first[0] && second[0] ? gos_wording(s->evidence, "%s, and %s", first, second)
           : first[0]            ? first
                                 : second;
}

/* "14.00 GiB in use, most of it by torch (12.00 GiB), and 8.00 GiB managed, …" */
static const char *held_words(const struct gos_situation *s)
{
    const char *others = joined(s, unused_words(s), managed_words(s));
    if (used_bytes(s) == 0 && others[0])
        return others;
    return joined(s,
                  gos_wording(s->evidence, "%s in use%s", gos_situation_amount(s, used_bytes(s)),
                              holder_words(s)),
                  others);
}

static const char *process_summary(const struct gos_situation *s)
{
    const char *short_words =
        s->strict
            ? gos_wording(s->evidence,
                          "Short by %s: ", gos_situation_amount(s, gos_situation_short_bytes(s)))
            : "";
    if (!context_is_most(s))
        return gos_wording(s->evidence, "%sthis process itself holds %s.", short_words,
                           held_words(s));
    return gos_wording(s->evidence,
                       "%sthis process itself holds %s in contexts, modules and what else no "
                       "call allocates%s.",
                       short_words,
                       gos_situation_amount(s, gos_situation_line_bytes(s, GOS_LEDGER_CONTEXT)),
                       used_bytes(s) ? gos_wording(s->evidence, ", and %s of allocations",
                                                   gos_situation_amount(s, used_bytes(s)))
                                     : "");
}

static void say_top_sites(const struct gos_situation *s, struct gos_verdict *verdict)
{
    int named = 0;
    for (size_t i = 0; i < s->evidence->use_count && named < 3; i++) {
        const struct gos_site_use *use = &s->evidence->uses[i];
        if (use->device != (uint32_t)s->device->ordinal || use->kind == GOS_KIND_MAPPING)
            continue;
        const char *words = gos_holder_site_words(s->evidence, use->site);
        if (!words[0])
            continue;
        named++;
        gos_verdict_say(verdict, gos_wording(s->evidence, "%s holds %s.", words,
                                             gos_holder_use_words(s->evidence, use)));
    }
}

static void say_opaque(const struct gos_situation *s, struct gos_verdict *verdict)
{
    uint64_t held = 0;
    const char *cache = gos_situation_cache(s, &held);
    const struct gos_framework_evidence *framework = gos_framework_word(s, cache);
    if (framework)
        gos_framework_say(s, framework, verdict);
    else if (held > 0)
        gos_verdict_say(verdict,
                        gos_wording(s->evidence,
                                    "Up to %s of what %s holds may be unused, in pieces: its "
                                    "segments are opaque from outside.",
                                    gos_situation_amount(s, held), cache));
    if (s->device->torch_used_known && !framework)
        gos_verdict_say(verdict, gos_wording(s->evidence, "torch has told of %s in use.",
                                             gos_situation_amount(s, s->device->torch_used_bytes)));
    if (s->diagnosis->unseen_bytes >= s->missing_bytes)
        gos_verdict_say(verdict,
                        gos_wording(s->evidence,
                                    "The stacks that were kept do not show which library asked for "
                                    "%s of it.",
                                    gos_situation_amount(s, s->diagnosis->unseen_bytes)));
}

static void advise_pieces(const struct gos_situation *s, struct gos_verdict *verdict)
{
    uint64_t held = 0;
    const char *cache = gos_situation_cache(s, &held);
    if (strcmp(cache, "torch") == 0 && pieces_could_help(s, gos_framework_word(s, cache)))
        gos_advise_torch_pieces(s, verdict);
}

/* A segment is made of several pieces, all of them before the first is mapped [torch's source]. */
static void say_burst(const struct gos_situation *s, struct gos_verdict *verdict)
{
    if (s->request->kind != GOS_KIND_PHYSICAL || s->device->unmapped_physical_bytes == 0)
        return;
    gos_verdict_say(verdict,
                    gos_wording(s->evidence,
                                "The process has made %s of physical memory that nothing maps yet: "
                                "if that is for the same segment, more than %s was wanted.",
                                gos_situation_amount(s, s->device->unmapped_physical_bytes),
                                gos_situation_amount(s, s->asked_bytes)));
}

static void say_first(const struct gos_situation *s, struct gos_verdict *verdict)
{
    if (s->evidence->allocated_count == 0)
        gos_verdict_say(verdict, "It is the first allocation of the process: what it holds is its "
                                 "context and modules.");
}

/* More than a context with the usual libraries takes. */
#define LARGE_CONTEXT_BYTES (1ull << 30)

static void say_context(const struct gos_situation *s, struct gos_verdict *verdict)
{
    uint64_t context = gos_situation_line_bytes(s, GOS_LEDGER_CONTEXT);
    if (context < LARGE_CONTEXT_BYTES && !context_is_most(s))
        return;
    gos_verdict_say(verdict, gos_wording(s->evidence,
                                         "%s of this process are contexts, modules and what else "
                                         "no call allocates.",
                                         gos_situation_amount(s, context)));
}

/* What is larger comes first; pieces that growth has made a trifle of come last. */
static void advise_own(const struct gos_situation *s, struct gos_verdict *verdict)
{
    bool first = context_is_most(s);
    bool trifles = s->leak.kind != GOS_GROWTH_NONE && gos_framework_word(s, "torch");
    if (!trifles)
        advise_pieces(s, verdict);
    if (first)
        gos_advise_context(s, verdict);
    gos_advise_less(s, verdict);
    if (trifles)
        advise_pieces(s, verdict);
    if (!first && gos_situation_line_bytes(s, GOS_LEDGER_CONTEXT) >= LARGE_CONTEXT_BYTES)
        gos_advise_context(s, verdict);
}

bool gos_rule_process(const struct gos_situation *s, struct gos_verdict *verdict)
{
    if (!s->on_device || s->missing_bytes == 0 ||
        s->tracked_bytes + gos_situation_line_bytes(s, GOS_LEDGER_CONTEXT) == 0)
        return false;
    verdict->code = GOS_VERDICT_EXHAUSTED_BY_PROCESS;
    verdict->confidence = nothing_could_help(s) ? GOS_CONFIDENCE_PROVEN : GOS_CONFIDENCE_LIKELY;
    verdict->summary = process_summary(s);
    gos_verdict_say(verdict, gos_situation_arithmetic(s));
    say_first(s, verdict);
    say_context(s, verdict);
    gos_verdict_say_lines(s, verdict);
    say_top_sites(s, verdict);
    say_burst(s, verdict);
    gos_verdict_say_growth(s, verdict);
    gos_verdict_advise(verdict, gos_need_advice(s->evidence));
    say_opaque(s, verdict);
    advise_own(s, verdict);
    gos_verdict_say_others(s, verdict);
    return true;
}
