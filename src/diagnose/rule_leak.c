/* One line keeps more and more: measured, but never proof (leak.h). */
#include <string.h>

#include "../track/site.h"
#include "code_place.h"
#include "holder.h"
#include "library.h"
#include "rule.h"
#include "saturate.h"
#include "wording.h"

static const char *site_words(const struct gos_situation *s, uint32_t site)
{
    const char *words = gos_holder_site_words(s->evidence, site);
    return words[0] ? words : "a line without a name";
}

/* As few of its lines as all ways to it have in common. */
static const char *suspect_words(const struct gos_situation *s, const struct gos_leak *leak)
{
    if (leak->lines == 0 || leak->lines > GOS_CODE_LINES_MAX)
        return site_words(s, leak->site->site);
    return gos_holder_line_words(s->evidence, leak->site->site, leak->lines);
}

/* Between the first sample and now. */
static uint64_t span_count(const struct gos_situation *s)
{
    const struct gos_growth *growth = &s->evidence->growth;
    return growth->moments[growth->moment_count - 1].allocated_count -
           growth->moments[0].allocated_count;
}

/* "from 8.0 MiB to 15.01 GiB over 3842 allocations" */
static const char *course(const struct gos_situation *s, const struct gos_growth_series *series)
{
    const struct gos_growth *growth = &s->evidence->growth;
    return gos_wording(s->evidence, "from %s to %s over %s",
                       gos_situation_amount(s, series->live_bytes[0]),
                       gos_situation_amount(s, series->live_bytes[growth->moment_count - 1]),
                       gos_wording_count(s->evidence, span_count(s), "allocation"));
}

static const char *held_words(const struct gos_situation *s, const struct gos_growth_series *series)
{
    return gos_situation_amount(s, series->live_bytes[s->evidence->growth.moment_count - 1]);
}

static void say_pace(const struct gos_situation *s, const struct gos_leak *leak,
                     struct gos_verdict *verdict)
{
    uint64_t pace = gos_leak_pace(&s->evidence->growth, leak->site);
    uint64_t left = s->free_bytes / (pace / 1000 + 1);
    const char *rest =
        left ? gos_wording(s->evidence, "; what is free would have lasted for about %llu more",
                           (unsigned long long)left)
             : "";
    if (pace)
        gos_verdict_say(verdict,
                        gos_wording(s->evidence, "Lately it took about %s per 1000 allocations%s.",
                                    gos_situation_amount(s, pace), rest));
}

static void say_ways(const struct gos_situation *s, const struct gos_leak *leak,
                     struct gos_verdict *verdict)
{
    if (leak->lines)
        gos_verdict_say(verdict,
                        gos_wording(s->evidence,
                                    "It is reached by %zu different stacks, added up here.",
                                    leak->way_count));
}

static void say_share(const struct gos_situation *s, const struct gos_leak *leak,
                      struct gos_verdict *verdict)
{
    gos_verdict_say(verdict,
                    gos_wording(s->evidence,
                                "In the later half of that it made up %u %% of all growth on the "
                                "device, while other memory came and went.",
                                (leak->share_permille + 5) / 10));
}

/* The one that met the end need not be the one that brought it about. */
static void say_victim(const struct gos_situation *s, const struct gos_leak *leak,
                       struct gos_verdict *verdict)
{
    const struct gos_growth *growth = &s->evidence->growth;
    uint32_t victim = s->request->site;
    const char *words = gos_holder_site_words(s->evidence, victim);
    const struct gos_growth_series *series = gos_leak_series(growth, victim, leak->site->device);
    if (gos_leak_has(leak, victim) || !words[0] ||
        (series && gos_leak_trend(growth, series) == GOS_TREND_STEADY))
        return;
    uint64_t held = series ? series->live_bytes[growth->moment_count - 1] : 0;
    gos_verdict_say(verdict,
                    gos_wording(s->evidence,
                                "%s, where it failed, is not the cause: it holds %s and does not "
                                "grow.",
                                words, held ? gos_situation_amount(s, held) : "nothing"));
}

static void advise_numbers(const struct gos_leak *leak, struct gos_verdict *verdict)
{
    const struct gos_site *site = gos_site_get(leak->site->site);
    if (site && site->python_count)
        gos_verdict_advise(verdict, "In a training loop keep numbers, not tensors with their "
                                    "graph: loss.item(), tensor.detach().cpu().");
}

static void advise(const struct gos_situation *s, const struct gos_leak *leak,
                   struct gos_verdict *verdict)
{
    gos_verdict_advise(verdict, gos_wording(s->evidence,
                                            "Look at %s: what it allocates is kept (in a list, a "
                                            "cache, a closure). Free it, or bound it.",
                                            suspect_words(s, leak)));
    advise_numbers(leak, verdict);
    gos_verdict_advise(verdict, "If that line is meant to keep it all (loading, a cache without "
                                "a limit), the program needs more than the device has.");
}

/* Growth of a cache's own memory may be unused memory, of which another requester gets nothing. */
static bool may_be_cached(const struct gos_situation *s, const struct gos_leak *leak)
{
    const char *library = gos_holder_of_site(leak->site->site);
    return gos_library_caches(library) && strcmp(library, s->requester) != 0;
}

static bool is_leak(const struct gos_situation *s)
{
    return s->leak.kind == GOS_GROWTH_LEAK && !may_be_cached(s, &s->leak);
}

/*
 * At last a leak is short of less than one request, and then some neighbour or
 * some pieces are always enough: without the leak nobody had missed those.
 */
bool gos_rule_outgrown(const struct gos_situation *s, struct gos_verdict *verdict)
{
    uint64_t grown_bytes = s->leak.grown_bytes;
    return is_leak(s) && grown_bytes > s->neighbours_bytes + s->hidden_bytes &&
           grown_bytes > gos_situation_unused_bytes(s) &&
           grown_bytes > gos_situation_line_bytes(s, GOS_LEDGER_FRAMEWORK_IDLE) &&
           gos_rule_leak(s, verdict);
}

/*
 * Growth that nobody can be accused of (loading, larger work, a leak where nothing else is freed)
 * comes before pieces of which it would have used up as much again in an eighth of the run: whole,
 * they had put the end off by so little.
 */
#define GROWTH_DWARFS 8

static bool dwarfs(const struct gos_situation *s, uint64_t bytes)
{
    return s->leak.kind != GOS_GROWTH_NONE && s->leak.grown_bytes / GROWTH_DWARFS > bytes;
}

bool gos_rule_outgrown_pieces(const struct gos_situation *s, struct gos_verdict *verdict)
{
    return dwarfs(s, gos_situation_unused_bytes(s)) &&
           dwarfs(s, gos_situation_line_bytes(s, GOS_LEDGER_FRAMEWORK_IDLE)) &&
           (gos_rule_shared_memory(s, verdict) || gos_rule_others(s, verdict) ||
            gos_rule_leak(s, verdict) || gos_rule_cache_opaque(s, verdict) ||
            gos_rule_process(s, verdict));
}

bool gos_rule_leak(const struct gos_situation *s, struct gos_verdict *verdict)
{
    const struct gos_leak *leak = &s->leak;
    if (!is_leak(s))
        return false;
    verdict->code = GOS_VERDICT_LEAK;
    verdict->confidence = GOS_CONFIDENCE_LIKELY;
    verdict->summary = gos_wording(s->evidence, "%s keeps more and more: it grew steadily %s.",
                                   suspect_words(s, leak), course(s, leak->site));
    gos_verdict_say(verdict, gos_situation_arithmetic(s));
    say_ways(s, leak, verdict);
    say_pace(s, leak, verdict);
    say_share(s, leak, verdict);
    say_victim(s, leak, verdict);
    advise(s, leak, verdict);
    gos_verdict_say_others(s, verdict);
    return true;
}

/* Second, so that the first screen has it. */
static void advise_second(struct gos_verdict *verdict, const char *line)
{
    if (verdict->advice_count < 2) {
        gos_verdict_advise(verdict, line);
        return;
    }
    const char *displaced = verdict->advice[1];
    verdict->advice[1] = line;
    gos_verdict_advise(verdict, displaced);
}

void gos_verdict_say_leak(const struct gos_situation *s, struct gos_verdict *verdict)
{
    const struct gos_leak *leak = &s->leak;
    if (verdict->code == GOS_VERDICT_LEAK || !is_leak(s))
        return;
    gos_verdict_say(verdict,
                    gos_wording(s->evidence, "%s keeps more and more: it grew steadily %s.",
                                suspect_words(s, leak), course(s, leak->site)));
    advise_second(verdict, gos_wording(s->evidence,
                                       "It will not last: %s keeps more and more, %s now. Free "
                                       "it, or bound it.",
                                       suspect_words(s, leak), held_words(s, leak->site)));
}

/* Two stacks that read the same are no two lines. */
static void say_many(const struct gos_situation *s, const struct gos_leak *leak,
                     struct gos_verdict *verdict)
{
    const char *first = site_words(s, leak->site->site);
    const char *second = leak->next ? site_words(s, leak->next->site) : first;
    const char *grew = gos_wording(s->evidence, "Live memory grew %s", course(s, leak->device));
    if (strcmp(first, second) == 0)
        gos_verdict_say(verdict, gos_wording(s->evidence, "%s, most by %s.", grew, first));
    else
        gos_verdict_say(verdict,
                        gos_wording(s->evidence,
                                    "%s, by many lines together: larger work, not a leak of one "
                                    "line. Most by %s, %s.",
                                    grew, first, second));
}

/* How long what lies unused, were it whole, had lasted. */
static void say_pieces(const struct gos_situation *s, struct gos_verdict *verdict)
{
    uint64_t unused = gos_plus(gos_situation_unused_bytes(s),
                               gos_situation_line_bytes(s, GOS_LEDGER_FRAMEWORK_IDLE));
    uint64_t pace = gos_leak_pace(&s->evidence->growth, s->leak.device);
    uint64_t left = unused / (pace / 1000 + 1);
    if (left == 0 || pace == 0 || !dwarfs(s, unused))
        return;
    gos_verdict_say(verdict,
                    gos_wording(s->evidence,
                                "All that lies unused, %s, would have lasted for about %s.",
                                gos_situation_amount(s, unused),
                                gos_wording_count(s->evidence, left, "more allocation")));
}

void gos_verdict_say_growth(const struct gos_situation *s, struct gos_verdict *verdict)
{
    const struct gos_leak *leak = &s->leak;
    if (leak->kind == GOS_GROWTH_OF_MANY)
        say_many(s, leak, verdict);
    if (leak->kind == GOS_GROWTH_UNFREED)
        gos_verdict_say(verdict,
                        gos_wording(s->evidence,
                                    "%s grew steadily %s while hardly anything was freed: it "
                                    "loads more than fits, or it leaks.",
                                    suspect_words(s, leak), course(s, leak->site)));
    if (leak->kind != GOS_GROWTH_NONE)
        say_pieces(s, verdict);
}

/* "it" where the advice before has just named it. */
static const char *grower_words(const struct gos_situation *s, const struct gos_leak *leak)
{
    const struct gos_site_use *top =
        gos_holder_top_use(s->evidence, (uint32_t)s->diagnosis->device);
    return top && gos_leak_has(leak, top->site) ? "it" : suspect_words(s, leak);
}

void gos_verdict_advise_growth(const struct gos_situation *s, struct gos_verdict *verdict)
{
    const struct gos_leak *leak = &s->leak;
    if (leak->kind != GOS_GROWTH_UNFREED)
        return;
    gos_verdict_advise(
        verdict, gos_wording(s->evidence, "Should %s keep all that? If not, free it, or bound it.",
                             grower_words(s, leak)));
    advise_numbers(leak, verdict);
}
