#include "doubt.h"

#include "rule.h"
#include "wording.h"

static bool stands_on_host(enum gos_verdict_code code)
{
    return code == GOS_VERDICT_HOST_MEMORY || code == GOS_VERDICT_HOST_LIMIT;
}

/* A size, a result code, a limit that refused and a fork are what they were. */
static bool stands_on_memory(enum gos_verdict_code code)
{
    switch (code) {
    case GOS_VERDICT_EXHAUSTED_BY_PROCESS:
    case GOS_VERDICT_LEAK:
    case GOS_VERDICT_EXHAUSTED_BY_OTHERS:
    case GOS_VERDICT_CACHE_HELD:
    case GOS_VERDICT_PENDING_FREE:
    case GOS_VERDICT_FRAGMENTED:
        return true;
    default:
        return false;
    }
}

static bool is_of_another_moment(const struct gos_evidence *evidence, enum gos_verdict_code code)
{
    return (evidence->told_wall_ns && stands_on_host(code)) ||
           (evidence->is_of_earlier && stands_on_memory(code));
}

static const char *late_framework(const struct gos_evidence *evidence, int device)
{
    for (size_t i = 0; i < evidence->framework_count; i++)
        if (evidence->frameworks[i].is_late && (int)evidence->frameworks[i].device == device)
            return evidence->frameworks[i].name;
    return NULL;
}

/* Numbers of different moments may differ by a trifle. */
static bool adds_up(const struct gos_ledger *ledger)
{
    return ledger->overbooked_bytes <= GOS_FREE_DUST_BYTES &&
           ledger->lines[GOS_LEDGER_RESIDUAL].bytes >= -(int64_t)GOS_FREE_DUST_BYTES;
}

/* NULL: none. */
static const char *reason(struct gos_evidence *evidence, const struct gos_diagnosis *diagnosis)
{
    enum gos_verdict_code code = diagnosis->verdict.code;

    if (is_of_another_moment(evidence, code))
        return "This was seen at another moment, not when the call failed.";
    if (!stands_on_memory(code) || diagnosis->device < 0)
        return NULL;
    const char *late = late_framework(evidence, diagnosis->device);
    if (late)
        return gos_wording(evidence, "%s was asked only when the call had returned.", late);
    return adds_up(&diagnosis->ledgers[diagnosis->device])
               ? NULL
               : "The ledger of the device does not add up, so that this is not proven.";
}

void gos_doubt(struct gos_evidence *evidence, struct gos_diagnosis *diagnosis)
{
    struct gos_verdict *verdict = &diagnosis->verdict;
    const char *why =
        verdict->confidence == GOS_CONFIDENCE_PROVEN ? reason(evidence, diagnosis) : NULL;

    if (!why)
        return;
    verdict->confidence = GOS_CONFIDENCE_LIKELY;
    gos_verdict_say(verdict, why);
}
