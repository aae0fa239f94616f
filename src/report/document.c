#include "document.h"

#include "../base/text.h"
#include "../cuda/error.h"
#include "screen.h"

#define DOCUMENT_SCREEN_BYTES 4096

const char *gos_report_kind_code(enum gos_report_kind kind)
{
    static const char *const codes[] = {"failure", "snapshot", "exit"};
    return codes[kind];
}

const char *gos_outcome_code(enum gos_outcome outcome)
{
    static const char *const codes[] = {NULL, "failed", "recovered", "recovered-by-caller"};
    return codes[outcome];
}

const char *gos_capture_code(enum gos_capture_state state)
{
    static const char *const codes[] = {"none", "this-stream", "elsewhere"};
    return codes[state];
}

/* --- beginning --- */

static void emit_first_screen(const struct gos_document *document, struct gos_emitter *emitter)
{
    if (!gos_emitter_is_text(emitter))
        return;
    char buffer[DOCUMENT_SCREEN_BYTES];
    struct gos_text text = gos_text_on(buffer, sizeof buffer);
    gos_screen_write(document, &text);
    gos_sink_put(emitter->sink, text.data, text.length);
}

static void emit_identity(const struct gos_document *document, struct gos_emitter *emitter)
{
    const struct gos_report *report = document->report;
    const struct gos_evidence *evidence = report->diagnosis->evidence;
    gos_emitter_string(emitter, GOS_FIELD("schema", NULL), GOS_REPORT_SCHEMA);
    gos_emitter_string(emitter, GOS_FIELD("version", NULL), document->version);
    gos_emitter_string(emitter, GOS_FIELD("kind", NULL), gos_report_kind_code(report->kind));
    gos_emitter_string(emitter, GOS_FIELD("outcome", NULL), gos_outcome_code(report->outcome));
    gos_emitter_time(emitter, GOS_FIELD("wall_ns", NULL), evidence->wall_ns);
    if (document->found_wall_ns)
        gos_emitter_time(emitter, GOS_FIELD("found_wall_ns", NULL), document->found_wall_ns);
    else
        gos_emitter_null(emitter, GOS_FIELD("found_wall_ns", NULL));
}

static void emit_telling(const struct gos_document *document, struct gos_emitter *emitter)
{
    const struct gos_evidence *evidence = document->report->diagnosis->evidence;
    if (evidence->told_wall_ns == 0) {
        gos_emitter_null(emitter, GOS_FIELD("told_late", NULL));
        return;
    }
    gos_emitter_object(emitter, "told_late");
    gos_emitter_time(emitter, GOS_FIELD("wall_ns", NULL), evidence->told_wall_ns);
    gos_emitter_string(emitter, GOS_FIELD("memory_of", NULL),
                       evidence->is_of_earlier ? "earlier" : "failure");
    gos_emitter_end(emitter);
}

static void emit_process(const struct gos_document *document, struct gos_emitter *emitter)
{
    const struct gos_evidence *evidence = document->report->diagnosis->evidence;
    gos_emitter_heading(emitter, "PROCESS");
    gos_emitter_object(emitter, "process");
    gos_emitter_signed(emitter, GOS_FIELD("pid", "process"), evidence->pid);
    gos_emitter_bytes_if(emitter, GOS_FIELD("uid", NULL), evidence->uid_known, evidence->uid);
    gos_emitter_string(emitter, GOS_FIELD("command", "command"), evidence->command);
    gos_emitter_signed(emitter, GOS_FIELD("initialised_pid", "CUDA initialised by process"),
                       evidence->initialised_pid);
    gos_emitter_string(emitter, GOS_FIELD("initialised_by", "by its library"),
                       evidence->initialised_by);
    gos_emitter_signed(emitter, GOS_FIELD("rank", NULL), evidence->rank);
    gos_emitter_signed(emitter, GOS_FIELD("world", NULL), evidence->world);
    gos_emitter_time(emitter, GOS_FIELD("start_wall_ns", "tracking since"),
                     evidence->start_wall_ns);
    gos_emitter_duration(emitter, GOS_FIELD("collected_in_ns", "evidence taken in"),
                         evidence->collected_in_ns);
    gos_emitter_signed(emitter, GOS_FIELD("driver_version", NULL), evidence->driver_version);
    gos_emitter_signed(emitter, GOS_FIELD("first_sticky_error", NULL),
                       evidence->first_sticky_error);
    gos_emitter_count(emitter, GOS_FIELD("contexts", "contexts seen"), evidence->contexts);
    gos_emitter_end(emitter);
}

/* --- verdict --- */

static void emit_items(struct gos_emitter *emitter, const char *key, const char *heading,
                       const char *const *items, size_t count)
{
    if (count > 0)
        gos_emitter_heading(emitter, "%s", heading);
    gos_emitter_array(emitter, key);
    for (size_t i = 0; i < count; i++)
        gos_emitter_item(emitter, items[i]);
    gos_emitter_end(emitter);
}

static void emit_verdict_facts(const struct gos_verdict *verdict, int device,
                               struct gos_emitter *emitter)
{
    const char *runner_up = verdict->has_runner_up ? gos_verdict_code(verdict->runner_up) : NULL;
    gos_emitter_string(emitter, GOS_FIELD("code", "verdict"), gos_verdict_code(verdict->code));
    gos_emitter_string(emitter, GOS_FIELD("confidence", "confidence"),
                       gos_confidence_code(verdict->confidence));
    gos_emitter_string(emitter, GOS_FIELD("runner_up", runner_up ? "next best" : NULL), runner_up);
    gos_emitter_string(emitter, GOS_FIELD("summary", verdict->summary ? "in short" : NULL),
                       verdict->summary);
    gos_emitter_signed(emitter, GOS_FIELD("device", NULL), device);
    gos_emitter_bytes(emitter, GOS_FIELD("short_bytes", "short by"), verdict->short_bytes);
    gos_emitter_string(emitter, GOS_FIELD("holder", NULL), verdict->holder);
    gos_emitter_bytes(emitter, GOS_FIELD("holder_bytes", NULL), verdict->holder_bytes);
    gos_emitter_bytes(emitter, GOS_FIELD("pending_bytes", NULL), verdict->pending_bytes);
    gos_emitter_bytes(emitter, GOS_FIELD("idle_bytes", NULL), verdict->idle_bytes);
}

static void emit_verdict(const struct gos_document *document, struct gos_emitter *emitter)
{
    const struct gos_diagnosis *diagnosis = document->report->diagnosis;
    const struct gos_verdict *verdict = &diagnosis->verdict;
    if (!diagnosis->evidence->request.api) {
        gos_emitter_null(emitter, GOS_FIELD("verdict", NULL));
        return;
    }
    gos_emitter_heading(emitter, "VERDICT");
    gos_emitter_object(emitter, "verdict");
    emit_verdict_facts(verdict, diagnosis->device, emitter);
    emit_items(emitter, "evidence", "EVIDENCE", verdict->evidence, verdict->evidence_count);
    emit_items(emitter, "advice", "WHAT TO DO, best first", verdict->advice, verdict->advice_count);
    gos_emitter_end(emitter);
}

/* --- request --- */

/* Sizes near 2^64 are small negative numbers gone wrong, which only the other notations show. */
static void emit_request_size(const struct gos_request *request, struct gos_emitter *emitter)
{
    char hex[24];
    struct gos_text text = gos_text_on(hex, sizeof hex);
    gos_text_format(&text, "0x%llx", (unsigned long long)request->bytes);
    gos_emitter_bytes_if(emitter, GOS_FIELD("bytes", "bytes"), request->bytes_known,
                         request->bytes);
    gos_emitter_string(emitter, GOS_FIELD("bytes_hex", "in hex"),
                       request->bytes_known ? hex : NULL);
    if (request->bytes_known && request->bytes > INT64_MAX)
        gos_emitter_signed(emitter, GOS_FIELD("bytes_signed", "read as signed"),
                           (int64_t)request->bytes);
    else
        gos_emitter_null(emitter, GOS_FIELD("bytes_signed", NULL));
}

/* A framework may refuse without any call of CUDA. */
static void emit_request_result(const struct gos_request *request, struct gos_emitter *emitter)
{
    if (!request->entry) {
        gos_emitter_null(emitter, GOS_FIELD("result", NULL));
        gos_emitter_null(emitter, GOS_FIELD("result_name", NULL));
        return;
    }
    gos_emitter_signed(emitter, GOS_FIELD("result", "result"), request->result);
    gos_emitter_string(emitter, GOS_FIELD("result_name", "result by name"),
                       gos_cuda_error_name(request->result));
}

static void emit_request_call(const struct gos_request *request, struct gos_emitter *emitter)
{
    const bool was_called = request->entry != NULL;
    gos_emitter_string(emitter, GOS_FIELD("api", was_called ? "call" : "refused by"), request->api);
    gos_emitter_string(emitter, GOS_FIELD("entry", was_called ? "driver function" : NULL),
                       request->entry);
    gos_emitter_string(emitter, GOS_FIELD("kind", "kind"), gos_kind_code(request->kind));
    emit_request_size(request, emitter);
    gos_emitter_signed(emitter, GOS_FIELD("device", "device"), request->device);
    emit_request_result(request, emitter);
    gos_emitter_bool(emitter, GOS_FIELD("word", NULL), request->is_word);
    gos_emitter_bytes_if(emitter, GOS_FIELD("driver_bytes", "asked the driver for"),
                         request->driver_bytes > 0, request->driver_bytes);
}

static void emit_request_place(const struct gos_request *request, const struct gos_module *module,
                               struct gos_emitter *emitter)
{
    gos_emitter_string(emitter, GOS_FIELD("requester", "asked by"), module ? module->name : NULL);
    gos_emitter_string(emitter, GOS_FIELD("requester_path", "loaded from"),
                       module ? module->path : NULL);
    gos_emitter_count(emitter, GOS_FIELD("stream", NULL), request->stream);
    gos_emitter_count(emitter, GOS_FIELD("pool", NULL), request->pool);
    gos_emitter_string(emitter, GOS_FIELD("capture", "graph capture"),
                       gos_capture_code(request->capture));
    gos_emitter_signed(emitter, GOS_FIELD("tid", "thread"), request->tid);
    gos_emitter_time(emitter, GOS_FIELD("wall_ns", "first failed at"), request->wall_ns);
    gos_emitter_count(emitter, GOS_FIELD("attempts", "attempts"), request->attempts);
    gos_emitter_count(emitter, GOS_FIELD("trials", "refused there before"), request->trials);
    gos_emitter_bool(emitter, GOS_FIELD("caller_retries", "caller retries by itself"),
                     request->caller_retries);
    gos_emitter_count(emitter, GOS_FIELD("site", NULL), request->site);
}

static void emit_need(const struct gos_diagnosis *diagnosis, struct gos_emitter *emitter)
{
    gos_emitter_string(emitter, GOS_FIELD("need", "it needed"), diagnosis->need.words);
    gos_emitter_bytes_if(emitter, GOS_FIELD("need_bytes", "needed bytes"),
                         diagnosis->need.bytes > 0, diagnosis->need.bytes);
}

static void emit_request(const struct gos_document *document, struct gos_emitter *emitter)
{
    const struct gos_request *request = &document->report->diagnosis->evidence->request;
    if (!request->api) {
        gos_emitter_null(emitter, GOS_FIELD("request", NULL));
        return;
    }
    gos_emitter_heading(emitter, "REQUEST");
    gos_emitter_object(emitter, "request");
    emit_request_call(request, emitter);
    emit_need(document->report->diagnosis, emitter);
    emit_request_place(request, document->stacks.requester, emitter);
    gos_document_stack(document, emitter, request->site);
    gos_emitter_end(emitter);
}

/* --- recovery --- */

static void emit_step(const struct gos_step_record *step, const struct gos_field *fields,
                      struct gos_emitter *emitter)
{
    gos_emitter_row(emitter, NULL);
    gos_emitter_string(emitter, fields++, step->step);
    gos_emitter_string(emitter, fields++, step->result);
    gos_emitter_bytes(emitter, fields++, step->freed_bytes);
    gos_emitter_duration(emitter, fields++, step->duration_ns);
    gos_emitter_signed(emitter, fields++, step->cuda_result);
    gos_emitter_string(emitter, fields++, step->reason ? step->reason : "");
    gos_emitter_row_end(emitter);
}

static void emit_recovery(const struct gos_document *document, struct gos_emitter *emitter)
{
    static const struct gos_field fields[] = {
        {"step", "step", -8},       {"result", "result", -10},  {"freed_bytes", "given back", 11},
        {"duration_ns", "took", 8}, {"cuda_result", "code", 5}, {"reason", "reason", 0},
    };
    const struct gos_report *report = document->report;
    if (report->step_count > 0) {
        gos_emitter_heading(emitter, "RECOVERY");
        gos_emitter_titles(emitter, fields, sizeof fields / sizeof fields[0]);
    }
    gos_emitter_array(emitter, "recovery");
    for (uint32_t i = 0; i < report->step_count; i++)
        emit_step(&report->steps[i], fields, emitter);
    gos_emitter_end(emitter);
}

/* --- the walk --- */

static void emit_devices(const struct gos_document *document, struct gos_emitter *emitter)
{
    const struct gos_evidence *evidence = document->report->diagnosis->evidence;
    gos_emitter_array(emitter, "devices");
    for (int i = 0; i < GOS_DEVICE_MAX; i++) {
        if (evidence->devices[i].present)
            gos_document_device(document, emitter, i);
    }
    gos_emitter_end(emitter);
    gos_emitter_count(emitter, GOS_FIELD("device_count", NULL), evidence->device_count);
}

void gos_document_emit(const struct gos_document *document, struct gos_emitter *emitter)
{
    emit_first_screen(document, emitter);
    gos_emitter_object(emitter, NULL);
    emit_identity(document, emitter);
    emit_telling(document, emitter);
    gos_document_rehearsal(document, emitter);
    emit_verdict(document, emitter);
    emit_request(document, emitter);
    emit_recovery(document, emitter);
    emit_devices(document, emitter);
    gos_document_frameworks(document, emitter);
    gos_document_sites(document, emitter);
    gos_document_growth(document, emitter);
    gos_document_place(document, emitter);
    emit_process(document, emitter);
    gos_emitter_end(emitter);
}
