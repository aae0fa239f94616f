#include "streams.h"

#include "../base/os.h"
#include "../base/thread.h"
#include "../track/pool.h"
#include "../track/stream_use.h"
#include "contexts.h"

/* A query takes about a microsecond; hundreds of streams on a busy driver may take more. */
#define QUERY_BUDGET_NS 5000000u

static struct gos_stream_evidence describe(const struct gos_pending *pending)
{
    return (struct gos_stream_evidence){
        .stream = pending->stream,
        .context = pending->context,
        .device = pending->device,
        .per_thread = pending->per_thread,
        .of_other_thread = pending->per_thread && pending->thread != gos_thread_index(),
        .freed_bytes = pending->bytes,
    };
}

static CUresult query_handle(const struct gos_stream_evidence *stream)
{
    CUstream handle = (CUstream)(uintptr_t)stream->stream;

    if (stream->per_thread)
        return gos_driver.cuStreamQuery_ptsz != NULL ? gos_driver.cuStreamQuery_ptsz(handle)
                                                     : CUDA_ERROR_NOT_FOUND;
    return gos_driver.cuStreamQuery != NULL ? gos_driver.cuStreamQuery(handle)
                                            : CUDA_ERROR_NOT_FOUND;
}

static CUresult query(const struct gos_stream_evidence *stream)
{
    int use = gos_stream_use_begin(stream->stream);
    CUresult result = use < 0 ? CUDA_ERROR_NOT_FOUND : query_handle(stream);

    if (use >= 0)
        gos_stream_use_end(use);
    return result;
}

/* Stream 0 is another stream in each context, hence the visit. */
static void ask_stream(struct gos_stream_evidence *stream)
{
    struct gos_contexts_visit visit;
    CUresult result;
    uint32_t device;

    if (stream->of_other_thread || !gos_context_device(stream->context, &device) ||
        !gos_contexts_enter(&visit, stream->context))
        return;
    result = query(stream);
    gos_contexts_leave(&visit);
    stream->asked = result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY;
    stream->running = result == CUDA_ERROR_NOT_READY;
}

static void ask_all(struct gos_evidence *evidence)
{
    uint64_t end_ns = gos_os.monotonic_ns() + QUERY_BUDGET_NS;

    for (size_t i = 0; i < evidence->stream_count && gos_os.monotonic_ns() < end_ns; i++)
        ask_stream(&evidence->streams[i]);
}

static void say_what_was_not_asked(struct gos_evidence *evidence)
{
    size_t silent = 0;

    for (size_t i = 0; i < evidence->stream_count; i++)
        silent += !evidence->streams[i].asked;
    if (silent > 0)
        gos_evidence_incomplete_format(evidence,
                                       "whether %zu streams with freed memory are still busy%s",
                                       silent, gos_capture_count() > 0 ? " (capturing)" : "");
}

static bool copy_list(struct gos_evidence *evidence)
{
    struct gos_pending *pending =
        gos_scratch_alloc(&evidence->scratch, GOS_STREAM_MAX * sizeof(*pending));
    size_t count = pending != NULL ? gos_pending_list(pending, GOS_STREAM_MAX) : 0;

    if (count > 0)
        evidence->streams =
            gos_scratch_alloc(&evidence->scratch, count * sizeof(*evidence->streams));
    for (size_t i = 0; evidence->streams != NULL && i < count; i++)
        if (pending[i].bytes > 0)
            evidence->streams[evidence->stream_count++] = describe(&pending[i]);
    return pending != NULL && (count == 0 || evidence->streams != NULL);
}

void gos_streams_observe(struct gos_evidence *evidence, bool ask)
{
    if (!copy_list(evidence))
        gos_evidence_incomplete(evidence, "streams with freed memory (no memory for the list)");
    if (ask && evidence->stream_count > 0 && gos_capture_count() == 0)
        ask_all(evidence);
    say_what_was_not_asked(evidence);
}
