#include "revise.h"

#include <string.h>

#include "advice.h"
#include "rule.h"
#include "situation.h"
#include "wording.h"

static uint64_t held_by(const struct gos_diagnosis *diagnosis, const char *name)
{
    for (size_t i = 0; i < diagnosis->holder_count; i++)
        if (strcmp(diagnosis->holders[i].name, name) == 0)
            return diagnosis->holders[i].live_bytes;
    return 0;
}

static void put_summary(const struct gos_situation *s, struct gos_verdict *verdict,
                        uint64_t given_bytes)
{
    verdict->summary = gos_wording(
        s->evidence, "%s kept %s that it did not use; with them given back, %s got its memory.",
        verdict->holder, gos_wording_bytes(s->evidence, given_bytes), gos_situation_requester(s));
    gos_verdict_say(verdict, gos_situation_arithmetic(s));
    gos_tried_say(s, verdict);
    if (verdict->holder_bytes)
        gos_verdict_say(verdict,
                        gos_wording(s->evidence, "Before, %s held %s in all.", verdict->holder,
                                    gos_wording_bytes(s->evidence, verdict->holder_bytes)));
}

/*
 * Less than what was missing proves nothing: somebody else may have freed at
 * the same time.  Nor does anything where nothing was missing.
 */
static void learn_from_flush(struct gos_evidence *evidence, struct gos_diagnosis *diagnosis,
                             const struct gos_step_record *flush)
{
    struct gos_verdict *verdict = &diagnosis->verdict;
    struct gos_situation s;

    gos_situation_make(evidence, diagnosis, &s);
    if (verdict->code != GOS_VERDICT_CACHE_HELD) {
        verdict->has_runner_up = true;
        verdict->runner_up = verdict->code;
    }
    verdict->code = GOS_VERDICT_CACHE_HELD;
    verdict->confidence = s.missing_bytes > 0 && flush->given_bytes >= s.missing_bytes
                              ? GOS_CONFIDENCE_PROVEN
                              : GOS_CONFIDENCE_LIKELY;
    verdict->holder = flush->giver;
    verdict->holder_bytes = held_by(diagnosis, flush->giver);
    verdict->evidence_count = 0;
    verdict->advice_count = 0;
    put_summary(&s, verdict, flush->given_bytes);
    gos_advise_cache(&s, verdict, flush->giver);
    gos_verdict_say_leak(&s, verdict);
}

/* That nothing was to be had was not so. */
static void learn_from_pools(struct gos_evidence *evidence, struct gos_verdict *verdict,
                             const struct gos_step_record *step)
{
    bool is_blamed =
        verdict->code == GOS_VERDICT_PENDING_FREE || verdict->code == GOS_VERDICT_CACHE_HELD;

    if (is_blamed || verdict->confidence != GOS_CONFIDENCE_PROVEN)
        return;
    verdict->confidence = GOS_CONFIDENCE_LIKELY;
    gos_verdict_say(verdict,
                    gos_wording(evidence, "After %s there was room all the same.", step->step));
}

static bool was_anything_in_vain(const struct gos_step_record *steps, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (gos_step_was_in_vain(&steps[i]))
            return true;
    return false;
}

void gos_diagnose_revise(struct gos_evidence *evidence, struct gos_diagnosis *diagnosis,
                         const struct gos_step_record *steps, size_t count, bool recovered)
{
    const struct gos_step_record *helped = recovered && count ? &steps[--count] : NULL;
    bool is_trim = helped && strcmp(helped->step, "trim") == 0;
    bool is_sync = helped && strcmp(helped->step, "sync") == 0;

    diagnosis->steps = steps;
    diagnosis->step_count = count;
    diagnosis->helped = helped;
    if (is_trim || was_anything_in_vain(steps, count))
        gos_verdict_make(evidence, diagnosis);
    if (helped && helped->giver)
        learn_from_flush(evidence, diagnosis, helped);
    else if (is_trim || is_sync)
        learn_from_pools(evidence, &diagnosis->verdict, helped);
}
