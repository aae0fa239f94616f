#include "doubt.h"

#include "rule.h"

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

void gos_doubt(const struct gos_evidence *evidence, struct gos_verdict *verdict)
{
    bool is_late = evidence->told_wall_ns && stands_on_host(verdict->code);

    is_late = is_late || (evidence->is_of_telling && stands_on_memory(verdict->code));
    if (!is_late || verdict->confidence != GOS_CONFIDENCE_PROVEN)
        return;
    verdict->confidence = GOS_CONFIDENCE_LIKELY;
    gos_verdict_say(verdict, "This was seen when the process ended, not when the call failed.");
}
