#include "flushed.h"

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
    if (verdict->holder_bytes)
        gos_verdict_say(verdict,
                        gos_wording(s->evidence, "Before, %s held %s in all.", verdict->holder,
                                    gos_wording_bytes(s->evidence, verdict->holder_bytes)));
}

/*
 * Less than what was missing proves nothing: somebody else may have freed at
 * the same time.  Nor does anything where nothing was missing.
 */
void gos_diagnose_flushed(struct gos_evidence *evidence, struct gos_diagnosis *diagnosis,
                          const char *giver, uint64_t given_bytes)
{
    struct gos_verdict *verdict = &diagnosis->verdict;
    struct gos_situation s;

    gos_situation_make(evidence, diagnosis, &s);
    if (verdict->code != GOS_VERDICT_CACHE_HELD) {
        verdict->has_runner_up = true;
        verdict->runner_up = verdict->code;
    }
    verdict->code = GOS_VERDICT_CACHE_HELD;
    verdict->confidence = s.missing_bytes > 0 && given_bytes >= s.missing_bytes
                              ? GOS_CONFIDENCE_PROVEN
                              : GOS_CONFIDENCE_LIKELY;
    verdict->holder = giver;
    verdict->holder_bytes = held_by(diagnosis, giver);
    verdict->evidence_count = 0;
    verdict->advice_count = 0;
    put_summary(&s, verdict, given_bytes);
    gos_advise_cache(&s, verdict, giver);
    gos_verdict_say_leak(&s, verdict);
}

void gos_diagnose_flushed_in_vain(struct gos_evidence *evidence, struct gos_diagnosis *diagnosis)
{
    struct gos_verdict *verdict = &diagnosis->verdict;

    if (verdict->code != GOS_VERDICT_CACHE_HELD || verdict->confidence != GOS_CONFIDENCE_PROVEN)
        return;
    verdict->confidence = GOS_CONFIDENCE_LIKELY;
    gos_verdict_say(verdict, gos_wording(evidence, "Asked to give it back, they gave too little: "
                                                   "somebody else was quicker, or something "
                                                   "keeps it."));
}
