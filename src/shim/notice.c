#include "notice.h"

#include "../base/log.h"
#include "../base/text.h"
#include "../cuda/cuda_types.h"
#include "../cuda/entrypoint.h"
#include "../diagnose/code_place.h"

static const struct gos_request *request_of(const struct gos_report *report)
{
    return &report->diagnosis->evidence->request;
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

/* A rehearsal must not be taken for the real thing. */
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

/* True whether or not the program goes on, which nothing shows yet. */
static const char *what_happened(const struct gos_report *report, bool is_substituted)
{
    bool recovered = report->outcome == GOS_OUTCOME_RECOVERED;

    if (is_substituted)
        return "was refused, then given other memory, which is slower";
    if (!recovered && request_of(report)->result != CUDA_ERROR_OUT_OF_MEMORY)
        return "failed";
    if (!recovered)
        return request_of(report)->bytes_known ? "was refused" : "found no memory";
    return request_of(report)->bytes_known ? "was refused, then succeeded"
                                           : "found no memory, then succeeded";
}

/* What cannot be meant is read best as it was computed. */
static void put_size(struct gos_text *text, const struct gos_report *report)
{
    if (request_of(report)->bytes > INT64_MAX)
        gos_text_format(text, "0x%llx bytes", (unsigned long long)request_of(report)->bytes);
    else
        gos_text_bytes(text, request_of(report)->bytes);
}

/* "torch refused 8.00 GiB", "cuMemAlloc of 31.0 MiB was refused" */
static void put_subject(struct gos_text *text, const struct gos_report *report, bool is_substituted)
{
    const struct gos_request *request = request_of(report);

    gos_text_put_n(text, request->api, gos_entrypoint_base_length(request->api));
    if (request->is_word) {
        gos_text_put(text, " refused ");
        if (request->bytes_known)
            put_size(text, report);
        else
            gos_text_put(text, "a request");
        return;
    }
    if (request->bytes_known) {
        gos_text_put(text, " of ");
        put_size(text, report);
    }
    gos_text_format(text, " %s", what_happened(report, is_substituted));
}

static void put_line(struct gos_text *text, const struct gos_request *request)
{
    const struct gos_site *site = gos_site_get(request->site);

    if (!site || site->python_count == 0)
        return;
    gos_text_put(text, " at ");
    gos_code_put_python(text, site->python, site->python_count, 1);
}

void gos_notice(const struct gos_report *report, bool is_substituted)
{
    const struct gos_request *request = request_of(report);
    const struct gos_verdict *verdict = &report->diagnosis->verdict;
    char line[320];
    struct gos_text text = gos_text_on(line, sizeof line);
    const char *path = path_of(report);

    put_subject(&text, report, is_substituted);
    put_line(&text, request);
    if (report->diagnosis->evidence->told_wall_ns) {
        gos_text_put(&text, " at ");
        gos_text_time_of_day(&text, request->wall_ns);
    }
    gos_log(GOS_LOG_NOTICE, "%s%s: %s (%s).%s%s", line, rehearsal_words(request->refusal),
            gos_verdict_code(verdict->code), gos_confidence_code(verdict->confidence),
            path[0] ? " Report: " : "", path);
}
