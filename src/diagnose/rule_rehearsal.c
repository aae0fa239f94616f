/* Failures that GPUOOMSHIM_INJECT or GPUOOMSHIM_LIMIT made. */
#include <string.h>

#include "rule.h"
#include "wording.h"

bool gos_rule_injected(const struct gos_situation *s, struct gos_verdict *verdict)
{
    if (s->request->refusal != GOS_REFUSAL_INJECTED)
        return false;
    verdict->code = GOS_VERDICT_INJECTED;
    verdict->confidence = GOS_CONFIDENCE_PROVEN;
    verdict->summary =
        gos_wording(s->evidence, "GPUOOMSHIM_INJECT made %.*s fail; the driver was not asked.",
                    (int)strcspn(s->request->api, "_"), s->request->api);
    gos_verdict_say(verdict, "Nothing is known to be wrong: this is a rehearsal.");
    if (s->device)
        gos_verdict_say(verdict, gos_wording(s->evidence, "The device has %s free.",
                                             gos_wording_bytes(s->evidence, s->free_bytes)));
    gos_verdict_advise(verdict, "See how the program deals with it; unset GPUOOMSHIM_INJECT to run "
                                "it for real.");
    return true;
}

/*
 * The same reasons count on a device that acts as a smaller one, so this is
 * what is left when none of them can apply: memory came back since, or the
 * limit leaves no room beside the context.
 */
bool gos_rule_own_limit(const struct gos_situation *s, struct gos_verdict *verdict)
{
    if (s->request->refusal != GOS_REFUSAL_LIMIT || !s->device)
        return false;
    if (s->missing_bytes > 0 && s->tracked_bytes > 0)
        return false;
    verdict->code = GOS_VERDICT_POLICY_LIMIT;
    verdict->confidence = GOS_CONFIDENCE_LIKELY;
    verdict->summary = gos_wording(
        s->evidence, "GPUOOMSHIM_LIMIT refused %s: the device acts as one of %s, with %s free.",
        s->asked_bytes ? gos_wording_bytes(s->evidence, s->asked_bytes) : s->request->api,
        gos_wording_bytes(s->evidence, s->device->limit_bytes),
        gos_wording_bytes(s->evidence, s->free_bytes));
    gos_verdict_advise(verdict, "Raise or unset GPUOOMSHIM_LIMIT if no rehearsal is meant.");
    return true;
}
