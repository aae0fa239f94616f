/* A framework refused out of a pool of its own: its limit, or an arena that is full. */
#include <string.h>

#include "advice.h"
#include "framework.h"
#include "rule.h"
#include "saturate.h"
#include "setting.h"
#include "wording.h"

#define LINES_SAID 3
/* Outside of an arena: less than this, or than 1/20 of the device, is no place to grow into. */
#define LEAST_OUTSIDE_BYTES (1ull << 30)

static const char *amount(const struct gos_situation *s, uint64_t bytes)
{
    return gos_wording_bytes(s->evidence, bytes);
}

static uint64_t room_of(const struct gos_framework_evidence *framework)
{
    return gos_beyond(framework->limit_bytes, framework->used_bytes);
}

/* --- lines of the program ------------------------------------------------------------------- */

static bool is_of(const struct gos_framework_line *line, const struct gos_situation *s)
{
    return line->device == (uint32_t)s->diagnosis->device &&
           strcmp(line->framework, s->request->api) == 0;
}

static const char *line_words(const struct gos_situation *s, const struct gos_framework_line *line)
{
    return gos_wording(s->evidence, "%s in %s", amount(s, line->bytes),
                       gos_wording_count(s->evidence, line->count, "array"));
}

void gos_verdict_say_lines(const struct gos_situation *s, struct gos_verdict *verdict)
{
    unsigned said = 0;
    for (size_t i = 0; i < s->evidence->framework_line_count && said < LINES_SAID; i++) {
        const struct gos_framework_line *line = &s->evidence->framework_lines[i];
        if (!s->request->is_word || !is_of(line, s) || line->part != GOS_PART_ARRAYS)
            continue;
        gos_verdict_say(verdict,
                        gos_wording(s->evidence, "%s holds %s.", line->label, line_words(s, line)));
        if (said++ == 0)
            gos_verdict_advise(verdict, gos_wording(s->evidence, "Begin with %s: %s.", line->label,
                                                    line_words(s, line)));
    }
}

/* --- the verdicts --------------------------------------------------------------------------- */

static void blame(const struct gos_situation *s, const struct gos_framework_evidence *framework,
                  struct gos_verdict *verdict)
{
    verdict->holder = framework->name;
    verdict->holder_bytes = framework->reserved_bytes;
    if (framework->limit_bytes)
        verdict->short_bytes = gos_beyond(s->asked_bytes, room_of(framework));
}

static const char *asked_words(const struct gos_situation *s)
{
    return s->asked_bytes ? gos_wording(s->evidence, "%s asked", amount(s, s->asked_bytes))
                          : "the size asked is not known";
}

static void advise_limit(const struct gos_situation *s,
                         const struct gos_framework_evidence *framework,
                         struct gos_verdict *verdict)
{
    if (strcmp(framework->name, "torch") == 0)
        gos_verdict_advise(verdict, "Raise it: torch.cuda.set_per_process_memory_fraction.");
    else if (gos_setting_get(s->evidence, "CUPY_GPU_MEMORY_LIMIT"))
        gos_verdict_advise(verdict, "Raise it: CUPY_GPU_MEMORY_LIMIT, or set_limit of its pool.");
    else
        gos_verdict_advise(verdict,
                           "Raise it: cupy.get_default_memory_pool().set_limit(size=...).");
}

static void tell_limit(const struct gos_situation *s,
                       const struct gos_framework_evidence *framework, struct gos_verdict *verdict)
{
    bool follows = framework->limit_bytes && s->asked_bytes > room_of(framework);
    verdict->code = GOS_VERDICT_POLICY_LIMIT;
    verdict->confidence = follows ? GOS_CONFIDENCE_PROVEN : GOS_CONFIDENCE_LIKELY;
    verdict->summary =
        framework->limit_bytes
            ? gos_wording(s->evidence, "%s's own limit of %s: %s with %s in use.", framework->name,
                          amount(s, framework->limit_bytes), asked_words(s),
                          amount(s, framework->used_bytes))
            : gos_wording(s->evidence, "%s's own limit: %s with %s in use.", framework->name,
                          asked_words(s), amount(s, framework->used_bytes));
    gos_verdict_say(verdict, gos_wording(s->evidence, "The device itself has %s free.",
                                         amount(s, s->free_bytes)));
    gos_framework_say(s, framework, verdict);
    advise_limit(s, framework, verdict);
    gos_advise_less(s, verdict);
}

/*
 * torch that gives up without having asked the driver has a limit of its own
 * [its source: nothing else makes it].  It does not say which, but what it has
 * is within it, and the request is not.
 */
static void tell_torchs_limit(const struct gos_situation *s,
                              const struct gos_framework_evidence *framework,
                              struct gos_verdict *verdict)
{
    uint64_t beyond = gos_plus(framework->reserved_bytes, s->asked_bytes);
    verdict->code = GOS_VERDICT_POLICY_LIMIT;
    verdict->confidence =
        s->free_bytes >= s->cost_bytes ? GOS_CONFIDENCE_PROVEN : GOS_CONFIDENCE_LIKELY;
    verdict->summary = gos_wording(
        s->evidence,
        "torch's own limit for this process (set_per_process_memory_fraction): it has %s reserved, "
        "and may not have %s; it did not ask the driver.",
        amount(s, framework->reserved_bytes), amount(s, beyond));
    gos_verdict_say(verdict, gos_wording(s->evidence, "The device itself has %s free.",
                                         amount(s, s->free_bytes)));
    gos_framework_say(s, framework, verdict);
    advise_limit(s, framework, verdict);
    gos_advise_less(s, verdict);
}

/* What is free, and can never be the arena's. */
static uint64_t outside_bytes(const struct gos_situation *s,
                              const struct gos_framework_evidence *framework)
{
    return gos_lesser(gos_beyond(gos_situation_total_bytes(s), framework->limit_bytes),
                      s->free_bytes);
}

static void say_outside(const struct gos_situation *s,
                        const struct gos_framework_evidence *framework, struct gos_verdict *verdict)
{
    static const char *const names[] = {"XLA_CLIENT_MEM_FRACTION",
                                        "XLA_PYTHON_CLIENT_MEM_FRACTION"};
    uint64_t outside = outside_bytes(s, framework);
    const char *name = gos_setting_get(s->evidence, names[0]) ? names[0] : names[1];
    const char *set = gos_setting_get(s->evidence, name);
    if (outside < LEAST_OUTSIDE_BYTES || outside < gos_situation_total_bytes(s) / 20)
        return;
    gos_verdict_say(verdict,
                    gos_wording(s->evidence,
                                "Outside of the arena, which may take %s of the device's "
                                "%s, %s are free.",
                                amount(s, framework->limit_bytes),
                                amount(s, gos_situation_total_bytes(s)), amount(s, outside)));
    gos_verdict_advise(verdict,
                       gos_wording(s->evidence, "Let the arena be larger: %s=0.95%s%s%s.", name,
                                   set ? " (it is " : "", set ? set : "", set ? ")" : ""));
}

static void say_programs(const struct gos_situation *s, struct gos_verdict *verdict)
{
    for (size_t i = 0; i < s->evidence->framework_line_count; i++) {
        const struct gos_framework_line *line = &s->evidence->framework_lines[i];
        if (is_of(line, s) && line->part == GOS_PART_PROGRAMS)
            gos_verdict_say(verdict, gos_wording(s->evidence, "Compiled programs: %s.",
                                                 amount(s, line->bytes)));
    }
}

static const char *arena_words(const struct gos_situation *s,
                               const struct gos_framework_evidence *framework)
{
    return gos_wording(s->evidence, "%s's arena of %s has %s in use; %s", framework->name,
                       amount(s, framework->limit_bytes), amount(s, framework->used_bytes),
                       asked_words(s));
}

/* Enough is unused, but no block is as large; where the size is not known, it is taken for full. */
static bool is_in_pieces(const struct gos_situation *s,
                         const struct gos_framework_evidence *framework)
{
    return s->asked_bytes && s->asked_bytes <= room_of(framework) &&
           framework->largest_free_bytes && framework->largest_free_bytes < s->asked_bytes;
}

static void judge_arena(const struct gos_situation *s,
                        const struct gos_framework_evidence *framework, struct gos_verdict *verdict)
{
    verdict->code = GOS_VERDICT_EXHAUSTED_BY_PROCESS;
    verdict->confidence =
        s->asked_bytes > room_of(framework) ? GOS_CONFIDENCE_PROVEN : GOS_CONFIDENCE_LIKELY;
    if (s->asked_bytes > gos_situation_total_bytes(s)) {
        verdict->code = GOS_VERDICT_REQUEST_TOO_LARGE;
        verdict->summary = gos_wording(s->evidence, "%s; the whole device has %s.", asked_words(s),
                                       amount(s, gos_situation_total_bytes(s)));
    } else if (is_in_pieces(s, framework)) {
        verdict->code = GOS_VERDICT_FRAGMENTED;
        verdict->summary =
            gos_wording(s->evidence, "%s, and the largest unused block has %s.",
                        arena_words(s, framework), amount(s, framework->largest_free_bytes));
    } else {
        verdict->summary = gos_wording(s->evidence, "%s.", arena_words(s, framework));
    }
}

static void tell_arena(const struct gos_situation *s,
                       const struct gos_framework_evidence *framework, struct gos_verdict *verdict)
{
    judge_arena(s, framework, verdict);
    gos_verdict_say_lines(s, verdict);
    say_programs(s, verdict);
    gos_framework_say(s, framework, verdict);
    if (verdict->code != GOS_VERDICT_REQUEST_TOO_LARGE)
        say_outside(s, framework, verdict);
    gos_verdict_advise(verdict, "Keep less alive: drop references, donate arguments "
                                "(donate_argnums), jax.checkpoint, smaller batches.");
    gos_verdict_advise(verdict, "Or spread it: shard over more devices.");
}

bool gos_rule_refused(const struct gos_situation *s, struct gos_verdict *verdict)
{
    const struct gos_framework_evidence *framework =
        s->request->is_word && s->request->result == 0 && s->device
            ? gos_framework_word(s, s->request->api)
            : NULL;
    if (framework && !s->request->entry && strcmp(framework->name, "torch") == 0 &&
        !framework->limit_bytes) {
        blame(s, framework, verdict);
        tell_torchs_limit(s, framework, verdict);
        return true;
    }
    if (!framework || (framework->limited != GOS_SETTING_ON && !framework->limit_bytes))
        return false;
    blame(s, framework, verdict);
    if (framework->limited == GOS_SETTING_ON)
        tell_limit(s, framework, verdict);
    else
        tell_arena(s, framework, verdict);
    return true;
}
