#include "notice.h"

#include "../base/log.h"
#include "../base/text.h"
#include "../cuda/entrypoint.h"

static const char *what_happened(const struct gos_report *report, bool is_substituted)
{
    const struct gos_request *request = &report->diagnosis->evidence->request;
    bool recovered = report->outcome == GOS_OUTCOME_RECOVERED;

    if (is_substituted)
        return "failed, then was given other memory, which is slower";
    if (request->bytes_known || request->result != CUDA_ERROR_OUT_OF_MEMORY)
        return recovered ? "failed, then succeeded" : "failed";
    return recovered ? "ran out of memory, then succeeded" : "ran out of memory";
}

static const char *path_of(const struct gos_report *report)
{
    return report->text_path[0] ? report->text_path : report->json_path;
}

void gos_notice_changed(const struct gos_report *report)
{
    const struct gos_verdict *verdict = &report->diagnosis->verdict;
    const char *path = path_of(report);

    gos_log(GOS_LOG_NOTICE, "%s was asked what it holds: %s (%s).%s%s", verdict->holder,
            gos_verdict_code(verdict->code), gos_confidence_code(verdict->confidence),
            path[0] ? " Report: " : "", path);
}

/* Nobody should take a rehearsal for the real thing. */
static const char *rehearsal_words(enum gos_refusal refusal)
{
    switch (refusal) {
    case GOS_REFUSAL_LIMIT:
        return " (under GPUOOMSHIM_LIMIT)";
    case GOS_REFUSAL_INJECTED:
        return " (by GPUOOMSHIM_INJECT)";
    default:
        return "";
    }
}

void gos_notice(const struct gos_report *report, bool is_substituted)
{
    const struct gos_request *request = &report->diagnosis->evidence->request;
    const struct gos_verdict *verdict = &report->diagnosis->verdict;
    char size[48] = "";
    struct gos_text text = gos_text_on(size, sizeof size);
    char when[32] = "";
    struct gos_text when_text = gos_text_on(when, sizeof when);
    const char *path = path_of(report);

    if (report->diagnosis->evidence->told_wall_ns) {
        gos_text_put(&when_text, " at ");
        gos_text_time_of_day(&when_text, request->wall_ns);
    }
    if (request->bytes_known && verdict->code == GOS_VERDICT_REQUEST_TOO_LARGE) {
        gos_text_format(&text, " of 0x%llx bytes", (unsigned long long)request->bytes);
    } else if (request->bytes_known) {
        gos_text_put(&text, " of ");
        gos_text_bytes(&text, request->bytes);
    }
    gos_log(GOS_LOG_NOTICE, "%.*s%s %s%s%s: %s (%s).%s%s",
            (int)gos_entrypoint_base_length(request->api), request->api, size,
            what_happened(report, is_substituted), when, rehearsal_words(request->refusal),
            gos_verdict_code(verdict->code), gos_confidence_code(verdict->confidence),
            path[0] ? " Report: " : "", path);
}
