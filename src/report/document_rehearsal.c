/* What of this report was rehearsed: a smaller device, an injected failure. */
#include "document.h"

static bool is_limited(const struct gos_evidence *evidence)
{
    for (int i = 0; i < GOS_DEVICE_MAX; i++) {
        if (evidence->devices[i].limit_bytes != 0)
            return true;
    }
    return false;
}

bool gos_document_is_rehearsal(const struct gos_document *document)
{
    const struct gos_evidence *evidence = document->report->diagnosis->evidence;

    return evidence->injecting || evidence->request.refusal != GOS_REFUSAL_NONE ||
           is_limited(evidence);
}

uint64_t gos_document_limit(const struct gos_document *document)
{
    const struct gos_diagnosis *diagnosis = document->report->diagnosis;
    bool on_device = diagnosis->device >= 0 && diagnosis->device < GOS_DEVICE_MAX;

    return on_device ? diagnosis->evidence->devices[diagnosis->device].limit_bytes : 0;
}

static void put_counts(struct gos_emitter *emitter, const struct gos_rehearsed *count)
{
    gos_emitter_count(emitter, GOS_FIELD("limited_count", "calls that the limit refused"),
                      count->limited_count);
    gos_emitter_count(emitter, GOS_FIELD("candidate_count", "calls that pass the filters"),
                      count->candidate_count);
    gos_emitter_count(emitter, GOS_FIELD("injected_count", "of these made to fail"),
                      count->injected_count);
}

void gos_document_rehearsal(const struct gos_document *document, struct gos_emitter *emitter)
{
    const struct gos_evidence *evidence = document->report->diagnosis->evidence;
    enum gos_refusal refusal = evidence->request.refusal;
    uint64_t limit_bytes = gos_document_limit(document);

    if (!gos_document_is_rehearsal(document)) {
        gos_emitter_null(emitter, GOS_FIELD("rehearsal", NULL));
        return;
    }
    gos_emitter_heading(emitter, "REHEARSAL");
    gos_emitter_object(emitter, "rehearsal");
    gos_emitter_bytes_if(emitter, GOS_FIELD("limit_bytes", "GPUOOMSHIM_LIMIT for the device"),
                         limit_bytes != 0, limit_bytes);
    gos_emitter_bool(emitter, GOS_FIELD("limited", "refused by the limit"),
                     refusal == GOS_REFUSAL_LIMIT);
    gos_emitter_bool(emitter, GOS_FIELD("injecting", "GPUOOMSHIM_INJECT is set"),
                     evidence->injecting);
    gos_emitter_bool(emitter, GOS_FIELD("injected", "injected by GPUOOMSHIM_INJECT"),
                     refusal == GOS_REFUSAL_INJECTED);
    put_counts(emitter, &evidence->rehearsed);
    gos_emitter_end(emitter);
}
