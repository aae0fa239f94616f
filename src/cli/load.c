#include "load.h"

#include <errno.h>
#include <string.h>

#include "command.h"
#include "json_value.h"

/* --- small pieces --- */

void *gos_load_array(struct gos_loaded *loaded, const json_t *object, const char *key, size_t bytes,
                     size_t *count)
{
    *count = json_array_size(json_object_get(object, key));
    return *count ? gos_scratch_alloc(&loaded->scratch, *count * bytes) : NULL;
}

void gos_load_live(struct gos_total live[GOS_KIND_COUNT], const json_t *object)
{
    const json_t *rows = json_object_get(object, "live");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        unsigned kind = gos_value_word(row, "kind", gos_kind_code, GOS_KIND_COUNT, GOS_KIND_NONE);
        live[kind].live_bytes = gos_value_number(row, "live_bytes", 0);
        live[kind].live_count = gos_value_number(row, "live_count", 0);
    }
}

static size_t load_strings(const char **lines, size_t max, const json_t *array)
{
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(array) && count < max; i++) {
        const char *text = json_string_value(json_array_get(array, i));
        if (text)
            lines[count++] = text;
    }
    return count;
}

/* --- verdict, request, recovery --- */

static void load_verdict(struct gos_loaded *loaded, const json_t *from)
{
    struct gos_verdict *verdict = &loaded->diagnosis.verdict;
    verdict->code =
        gos_value_word(from, "code", gos_verdict_code, GOS_VERDICT_COUNT, GOS_VERDICT_UNEXPLAINED);
    verdict->confidence = gos_value_word(from, "confidence", gos_confidence_code,
                                         GOS_CONFIDENCE_POSSIBLE, GOS_CONFIDENCE_POSSIBLE);
    verdict->summary = gos_value_string(from, "summary");
    verdict->has_runner_up = gos_value_has(from, "runner_up");
    verdict->runner_up = gos_value_word(from, "runner_up", gos_verdict_code, GOS_VERDICT_COUNT,
                                        GOS_VERDICT_UNEXPLAINED);
    verdict->short_bytes = gos_value_number(from, "short_bytes", 0);
    verdict->holder = gos_value_string(from, "holder");
    verdict->holder_bytes = gos_value_number(from, "holder_bytes", 0);
    verdict->pending_bytes = gos_value_number(from, "pending_bytes", 0);
    verdict->idle_bytes = gos_value_number(from, "idle_bytes", 0);
    verdict->evidence_count =
        load_strings(verdict->evidence, GOS_LINES_MAX, json_object_get(from, "evidence"));
    verdict->advice_count =
        load_strings(verdict->advice, GOS_LINES_MAX, json_object_get(from, "advice"));
    loaded->diagnosis.device = (int)gos_value_signed(from, "device", -1);
}

/* Then the request is that framework's own word. */
static bool is_framework(const char *api)
{
    return api &&
           (strcmp(api, "torch") == 0 || strcmp(api, "cupy") == 0 || strcmp(api, "jax") == 0);
}

static void load_request(struct gos_request *request, const json_t *from)
{
    request->api = gos_value_string(from, "api");
    request->entry = gos_value_string(from, "entry");
    request->is_word = is_framework(request->api);
    request->kind = gos_value_word(from, "kind", gos_kind_code, GOS_KIND_COUNT, GOS_KIND_NONE);
    request->bytes_known = gos_value_has(from, "bytes");
    request->bytes = gos_value_number(from, "bytes", 0);
    request->device = (int)gos_value_signed(from, "device", -1);
    request->result = (int)gos_value_signed(from, "result", 0);
    request->stream = gos_value_number(from, "stream", 0);
    request->pool = gos_value_number(from, "pool", 0);
    request->capture = gos_value_word(from, "capture", gos_capture_code, 3, GOS_CAPTURE_NONE);
    request->tid = (int)gos_value_signed(from, "tid", 0);
    request->site = (uint32_t)gos_value_number(from, "site", 0);
    request->requester_module = UINT32_MAX;
    request->wall_ns = gos_value_number(from, "wall_ns", 0);
    request->attempts = (uint32_t)gos_value_number(from, "attempts", 0);
    request->trials = (uint32_t)gos_value_number(from, "trials", 0);
    request->is_word = gos_value_bool(from, "word");
    request->driver_bytes = gos_value_number(from, "driver_bytes", 0);
    request->caller_retries = gos_value_bool(from, "caller_retries");
}

static void load_need(struct gos_diagnosis *diagnosis, const json_t *from)
{
    diagnosis->need.words = gos_value_string(from, "need");
    diagnosis->need.bytes = gos_value_number(from, "need_bytes", 0);
}

static void load_steps(struct gos_report *report, const json_t *array)
{
    for (size_t i = 0; i < json_array_size(array) && i < GOS_STEP_MAX; i++) {
        const json_t *from = json_array_get(array, i);
        report->steps[report->step_count++] = (struct gos_step_record){
            .step = gos_value_text(from, "step"),
            .result = gos_value_text(from, "result"),
            .reason = gos_value_text(from, "reason"),
            .freed_bytes = gos_value_number(from, "freed_bytes", 0),
            .duration_ns = gos_value_number(from, "duration_ns", 0),
            .cuda_result = (int)gos_value_signed(from, "cuda_result", 0),
        };
    }
}

/* Only what was refused has a refusal; both are never true. */
static void load_rehearsal(struct gos_evidence *evidence, const json_t *from)
{
    struct gos_rehearsed *rehearsed = &evidence->rehearsed;

    evidence->injecting = gos_value_bool(from, "injecting");
    rehearsed->limited_count = gos_value_number(from, "limited_count", 0);
    rehearsed->candidate_count = gos_value_number(from, "candidate_count", 0);
    rehearsed->injected_count = gos_value_number(from, "injected_count", 0);
    if (gos_value_bool(from, "limited"))
        evidence->request.refusal = GOS_REFUSAL_LIMIT;
    if (gos_value_bool(from, "injected"))
        evidence->request.refusal = GOS_REFUSAL_INJECTED;
}

static void load_telling(struct gos_evidence *evidence, const json_t *from)
{
    const char *memory_of = gos_value_string(from, "memory_of");

    evidence->told_wall_ns = gos_value_number(from, "wall_ns", 0);
    evidence->is_of_earlier = memory_of && strcmp(memory_of, "earlier") == 0;
}

static void load_left_out(struct gos_document *document, const json_t *from)
{
    document->left_out.count = gos_value_number(from, "count", 0);
    document->left_out.live_bytes = gos_value_number(from, "live_bytes", 0);
}

/* --- process and tracking --- */

static void load_process(struct gos_evidence *evidence, const json_t *from)
{
    evidence->uid_known = gos_value_has(from, "uid");
    evidence->uid = (uint32_t)gos_value_number(from, "uid", 0);
    evidence->pid = (int)gos_value_signed(from, "pid", 0);
    evidence->initialised_pid = (int)gos_value_signed(from, "initialised_pid", 0);
    evidence->initialised_by = gos_value_string(from, "initialised_by");
    evidence->rank = (int)gos_value_signed(from, "rank", -1);
    evidence->world = (int)gos_value_signed(from, "world", -1);
    evidence->start_wall_ns = gos_value_number(from, "start_wall_ns", 0);
    evidence->collected_in_ns = gos_value_number(from, "collected_in_ns", 0);
    evidence->driver_version = (int)gos_value_signed(from, "driver_version", 0);
    evidence->first_sticky_error = (int)gos_value_signed(from, "first_sticky_error", 0);
    evidence->contexts = gos_value_number(from, "contexts", 0);
    gos_value_copy(from, "command", evidence->command, sizeof evidence->command);
}

static void load_tracking(struct gos_loaded *loaded, const json_t *from)
{
    struct gos_health *health = &loaded->document.health;
    const json_t *losses = json_object_get(from, "losses");
    loaded->evidence.allocated_count = gos_value_number(from, "allocated_count", 0);
    loaded->evidence.freed_count = gos_value_number(from, "freed_count", 0);
    loaded->evidence.metadata_bytes = gos_value_number(from, "metadata_bytes", 0);
    loaded->evidence.stack_sample_bytes = gos_value_number(from, "stack_sample_bytes", 0);
    loaded->evidence.unwinder = gos_value_string(from, "unwinder");
    loaded->evidence.python = gos_value_string(from, "python");
    health->fuse_reason = gos_value_string(from, "fuse");
    for (size_t i = 0; i < json_array_size(losses); i++) {
        const json_t *loss = json_array_get(losses, i);
        unsigned index =
            gos_value_word(loss, "what", gos_loss_name, GOS_LOSS_COUNT, GOS_LOSS_COUNT);
        if (index < GOS_LOSS_COUNT)
            health->losses[index] = gos_value_number(loss, "count", 0);
    }
}

static void load_holders(struct gos_diagnosis *diagnosis, const json_t *array)
{
    const size_t max = sizeof diagnosis->holders / sizeof diagnosis->holders[0];
    for (size_t i = 0; i < json_array_size(array) && i < max; i++) {
        const json_t *from = json_array_get(array, i);
        diagnosis->holders[i].name = gos_value_string(from, "name");
        diagnosis->holders[i].live_bytes = gos_value_number(from, "live_bytes", 0);
        diagnosis->holders[i].live_count = gos_value_number(from, "live_count", 0);
        diagnosis->holders[i].managed_bytes = gos_value_number(from, "managed_bytes", 0);
        diagnosis->holder_count++;
    }
}

/* --- the whole --- */

/* Without these there is nothing to show; what else is missing is left out. */
static int check_parts(const json_t *root)
{
    static const char *const parts[] = {"kind", "outcome", "verdict", "request", "devices"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (json_object_get(root, parts[i]))
            continue;
        gos_command_complain("this report is not whole: it has no '%s'", parts[i]);
        return -EINVAL;
    }
    return 0;
}

static int check_schema(const json_t *root)
{
    const char *schema = gos_value_string(root, "schema");
    if (schema && strcmp(schema, GOS_REPORT_SCHEMA) == 0)
        return check_parts(root);
    gos_command_complain("this is no report: its schema is '%s', not '" GOS_REPORT_SCHEMA "'",
                         schema ? schema : "");
    return -EINVAL;
}

static void load_mismatches(struct gos_diagnosis *diagnosis, const json_t *array)
{
    const char *lines[GOS_MISMATCH_MAX];
    diagnosis->mismatch_count = load_strings(lines, GOS_MISMATCH_MAX, array);
    for (size_t i = 0; i < diagnosis->mismatch_count; i++)
        diagnosis->mismatches[i].line = lines[i];
}

static void load_facts(struct gos_loaded *loaded, const json_t *root)
{
    struct gos_evidence *evidence = &loaded->evidence;
    struct gos_report *report = &loaded->report;
    report->kind = gos_value_word(root, "kind", gos_report_kind_code, 3, GOS_REPORT_FAILURE);
    report->outcome = gos_value_word(root, "outcome", gos_outcome_code, 4, GOS_OUTCOME_NONE);
    report->diagnosis = &loaded->diagnosis;
    loaded->diagnosis.evidence = evidence;
    loaded->document.report = report;
    loaded->document.version = gos_value_text(root, "version");
    evidence->wall_ns = gos_value_number(root, "wall_ns", 0);
    loaded->document.found_wall_ns = gos_value_number(root, "found_wall_ns", 0);
    evidence->device_count = (uint32_t)gos_value_number(root, "device_count", 0);
    evidence->incomplete_count = load_strings(
        evidence->incomplete, sizeof evidence->incomplete / sizeof evidence->incomplete[0],
        json_object_get(root, "incomplete"));
    load_mismatches(&loaded->diagnosis, json_object_get(root, "mismatches"));
    load_verdict(loaded, json_object_get(root, "verdict"));
    load_request(&evidence->request, json_object_get(root, "request"));
    load_need(&loaded->diagnosis, json_object_get(root, "request"));
    load_rehearsal(evidence, json_object_get(root, "rehearsal"));
    load_telling(evidence, json_object_get(root, "told_late"));
    load_steps(report, json_object_get(root, "recovery"));
    load_left_out(&loaded->document, json_object_get(root, "sites_left_out"));
    load_process(evidence, json_object_get(root, "process"));
    load_tracking(loaded, json_object_get(root, "tracking"));
}

int gos_load(struct gos_loaded *loaded, const json_t *root)
{
    int result = check_schema(root);
    if (result < 0)
        return result;
    load_facts(loaded, root);
    load_holders(&loaded->diagnosis, json_object_get(root, "holders"));
    result = gos_load_devices(loaded, root);
    if (result == 0)
        result = gos_load_frameworks(loaded, root);
    if (result == 0)
        result = gos_load_sites(loaded, root);
    if (result == 0)
        result = gos_load_growth(loaded, root);
    return result == 0 ? gos_load_place(loaded, root) : result;
}
