/* The last rule: no other one applied, so everything that was seen is said. */
#include "rule.h"
#include "wording.h"

static void say_device(const struct gos_situation *s, struct gos_verdict *verdict)
{
    if (!s->device) {
        gos_verdict_say(verdict, "The device could not be read.");
        return;
    }
    gos_verdict_say(verdict, gos_wording(s->evidence, "The device has %s free of %s.",
                                         gos_situation_amount(s, s->free_bytes),
                                         gos_situation_amount(s, gos_situation_total_bytes(s))));
    gos_verdict_say(verdict,
                    gos_wording(s->evidence, "This process holds %s; visible neighbours %s.",
                                gos_situation_amount(s, s->ledger->own_bytes),
                                gos_situation_amount(s, s->neighbours_bytes)));
}

static void say_host(const struct gos_situation *s, struct gos_verdict *verdict)
{
    const struct gos_host_evidence *host = &s->evidence->host;
    if (host->memory_total_bytes)
        gos_verdict_say(verdict, gos_wording(s->evidence, "The host has %s available of %s.",
                                             gos_situation_amount(s, host->memory_available_bytes),
                                             gos_situation_amount(s, host->memory_total_bytes)));
    if (host->map_count_limit)
        gos_verdict_say(verdict, gos_wording(s->evidence, "Memory mappings: %llu of %llu.",
                                             (unsigned long long)host->map_count,
                                             (unsigned long long)host->map_count_limit));
}

static const char *summary_of(const struct gos_situation *s)
{
    if (s->evidence->is_of_earlier && s->asked_bytes)
        return gos_wording(s->evidence,
                           "%s failed for %s; what was free then is not known, for the device was "
                           "looked at only at an earlier refusal.",
                           s->request->api, gos_situation_amount(s, s->asked_bytes));
    if (s->on_device && s->missing_bytes == 0 && s->asked_bytes)
        return gos_wording(s->evidence,
                           "%s failed for %s although %s are free now: it may have come back "
                           "since, or something other than memory was short.",
                           s->request->api, gos_situation_amount(s, s->asked_bytes),
                           gos_situation_amount(s, s->free_bytes));
    if (s->asked_bytes)
        return gos_wording(s->evidence, "%s failed for %s, and nothing that was visible says why.",
                           s->request->api, gos_situation_amount(s, s->asked_bytes));
    return gos_wording(s->evidence, "%s failed, and nothing that was visible says why.",
                       s->request->api);
}

bool gos_rule_unexplained(const struct gos_situation *s, struct gos_verdict *verdict)
{
    verdict->code = GOS_VERDICT_UNEXPLAINED;
    verdict->confidence = GOS_CONFIDENCE_POSSIBLE;
    verdict->summary = summary_of(s);
    say_device(s, verdict);
    say_host(s, verdict);
    if (s->diagnosis->mismatch_count > 0)
        gos_verdict_advise(verdict, s->diagnosis->mismatches[0].advice);
    if (s->evidence->is_of_earlier)
        gos_verdict_advise(verdict, "Take a snapshot where memory is used most "
                                    "(gpuoomshim_snapshot): refusals came too fast to look at "
                                    "each.");
    else
        gos_verdict_advise(verdict, "Run the same again: memory that other processes gave back in "
                                    "the meantime leaves no trace.");
    gos_verdict_advise(verdict, "Keep the JSON report: it has every number that was seen.");
    return true;
}
