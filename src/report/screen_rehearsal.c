/* The line that keeps a rehearsal from being taken for the real thing. */
#include "screen_parts.h"

static bool is_of_failure(const struct gos_document *document)
{
    return document->report->kind == GOS_REPORT_FAILURE;
}

/* A snapshot, or the report at exit, is of no call: what was made to fail so far is what counts. */
static void put_injection(struct gos_text *text, const struct gos_document *document)
{
    const struct gos_evidence *evidence = document->report->diagnosis->evidence;

    if (evidence->request.refusal == GOS_REFUSAL_INJECTED)
        gos_text_put(text, "this failure was injected by GPUOOMSHIM_INJECT");
    else if (evidence->injecting && is_of_failure(document))
        gos_text_put(text, "GPUOOMSHIM_INJECT is set, but this failure is not of its making");
    else if (evidence->injecting)
        gos_text_format(text, "%llu of %llu calls were made to fail so far (GPUOOMSHIM_INJECT)",
                        (unsigned long long)evidence->rehearsed.injected_count,
                        (unsigned long long)evidence->rehearsed.candidate_count);
}

static void put_limit(struct gos_text *text, const struct gos_document *document)
{
    uint64_t limit_bytes = gos_document_limit(document);
    const struct gos_evidence *evidence = document->report->diagnosis->evidence;

    if (limit_bytes == 0)
        return;
    gos_screen_separate(text, "; ");
    gos_text_format(text, "GPU %d acts as one of ", document->report->diagnosis->device);
    gos_text_bytes(text, limit_bytes);
    gos_text_put(text, " (GPUOOMSHIM_LIMIT)");
    if (evidence->request.refusal == GOS_REFUSAL_LIMIT)
        gos_text_put(text, ", which refused this");
    else if (!is_of_failure(document))
        gos_text_format(text, ", calls refused so far: %llu",
                        (unsigned long long)evidence->rehearsed.limited_count);
}

void gos_screen_rehearsal(struct gos_screen *screen, const struct gos_document *document,
                          uint8_t importance)
{
    char buffer[GOS_SCREEN_WORDS];
    struct gos_text text = gos_text_on(buffer, sizeof buffer);

    if (!gos_document_is_rehearsal(document))
        return;
    put_injection(&text, document);
    put_limit(&text, document);
    if (text.length == 0)
        gos_text_put(&text, "another GPU is limited by GPUOOMSHIM_LIMIT");
    gos_screen_add(screen, importance, "rehearsal", buffer, 2);
}
