#include "screen.h"

#include <string.h>

#include "../cuda/cuda_types.h"
#include "../cuda/entrypoint.h"
#include "../diagnose/framework.h"
#include "../diagnose/saturate.h"
#include "screen_parts.h"

/* Importance: what a reader could spare goes first. */
enum { MUST = 10, ACT = 9, SAY = 8, HELP = 7, NEAR = 5, SPACE = 3 };

/* --- pieces --- */

static void put_bytes(struct gos_text *text, uint64_t bytes)
{
    gos_text_bytes(text, bytes);
}

void gos_screen_separate(struct gos_text *text, const char *separator)
{
    if (text->length > 0)
        gos_text_put(text, separator);
}

/* A piece that does not fit whole is left out, rather than cut. */
static void put_piece(struct gos_text *text, const char *piece)
{
    if (text->length + 2 + strlen(piece) > GOS_SCREEN_COLUMNS)
        return;
    gos_screen_separate(text, "  ");
    gos_text_put(text, piece);
}

static const struct gos_evidence *evidence_of(const struct gos_document *document)
{
    return document->report->diagnosis->evidence;
}

static bool is_failure(const struct gos_document *document)
{
    return evidence_of(document)->request.api != NULL;
}

/* The driver has said what is wrong: then it does not matter what holds memory. */
static bool is_other_error(const struct gos_document *document)
{
    int result = evidence_of(document)->request.result;
    return is_failure(document) && result != 0 && result != CUDA_ERROR_OUT_OF_MEMORY;
}

/* --- title --- */

static const char *title_words(const struct gos_report *report)
{
    if (report->kind == GOS_REPORT_SNAPSHOT)
        return "snapshot";
    if (report->kind == GOS_REPORT_EXIT)
        return "at exit";
    return report->outcome == GOS_OUTCOME_FAILED ? "post-mortem" : "near miss";
}

static void put_number_piece(struct gos_text *line, const char *format_name, int number, int of)
{
    char buffer[48];
    struct gos_text piece = gos_text_on(buffer, sizeof buffer);
    gos_text_format(&piece, "%s %d", format_name, number);
    if (of > 0)
        gos_text_format(&piece, " of %d", of);
    put_piece(line, buffer);
}

static void add_title(struct gos_screen *screen, const struct gos_document *document)
{
    const struct gos_evidence *evidence = evidence_of(document);
    char buffer[GOS_SCREEN_COLUMNS + 1];
    char when[32];
    struct gos_text line = gos_text_on(buffer, sizeof buffer);
    struct gos_text time = gos_text_on(when, sizeof when);
    gos_text_time(&time, evidence->wall_ns);
    gos_text_format(&line, "gpuoomshim %s", document->version);
    put_piece(&line, title_words(document->report));
    put_piece(&line, when);
    if (evidence->rank >= 0)
        put_number_piece(&line, "rank", evidence->rank, evidence->world);
    put_number_piece(&line, "pid", evidence->pid, 0);
    gos_screen_line(screen, MUST, buffer);
    gos_screen_standing(screen, document, MUST);
    gos_screen_gap(screen, SPACE + 1);
}

/* --- what failed --- */

static const char *outcome_label(enum gos_outcome outcome)
{
    switch (outcome) {
    case GOS_OUTCOME_RECOVERED:
        return "rescued";
    case GOS_OUTCOME_RECOVERED_BY_CALLER:
        return "survived";
    default:
        return "failed";
    }
}

static void put_device(struct gos_text *text, const struct gos_document *document, int ordinal)
{
    const struct gos_device_evidence *device = &evidence_of(document)->devices[ordinal];
    uint64_t total = 0;
    gos_text_format(text, "GPU %d", ordinal);
    if (!device->present)
        return;
    gos_text_format(text, ", %s", device->name);
    if (gos_document_total(document, ordinal, &total)) {
        gos_text_put(text, ", ");
        gos_text_gib(text, total);
        gos_text_put(text, " GiB");
    }
}

/* A size that cannot be meant is read best as it was computed. */
static void put_size(struct gos_text *text, uint64_t bytes)
{
    if (bytes > INT64_MAX)
        gos_text_format(text, "0x%llx bytes", (unsigned long long)bytes);
    else
        put_bytes(text, bytes);
}

static bool is_ordinal(int device)
{
    return device >= 0 && device < GOS_DEVICE_MAX;
}

static void add_subject(struct gos_screen *screen, const struct gos_document *document)
{
    const struct gos_request *request = &evidence_of(document)->request;
    char buffer[GOS_SCREEN_WORDS];
    struct gos_text text = gos_text_on(buffer, sizeof buffer);
    gos_text_put_n(&text, request->api, gos_entrypoint_base_length(request->api));
    gos_text_put(&text, request->is_word ? " refused memory" : "");
    if (request->bytes_known) {
        gos_text_put(&text, request->is_word ? ": " : " of ");
        put_size(&text, request->bytes);
    }
    if (is_ordinal(request->device)) {
        gos_text_put(&text, " on ");
        put_device(&text, document, request->device);
    }
    gos_screen_add(screen, MUST, outcome_label(document->report->outcome), buffer, 2);
}

/* The driver's part in what a framework refused, and that it was not the first time. */
static void add_before(struct gos_screen *screen, const struct gos_document *document)
{
    const struct gos_request *request = &evidence_of(document)->request;
    char buffer[GOS_SCREEN_WORDS];
    struct gos_text text = gos_text_on(buffer, sizeof buffer);
    if (request->is_word && !request->entry) {
        gos_text_put(&text, "no call of CUDA failed");
    } else if (request->is_word) {
        gos_text_put_n(&text, request->entry, gos_entrypoint_base_length(request->entry));
        gos_text_put(&text, " of ");
        put_size(&text, request->driver_bytes);
        gos_text_put(&text, " was refused");
    }
    if (request->trials > 0) {
        gos_screen_separate(&text, "; ");
        gos_text_format(&text, "refused %u time%s there before", request->trials,
                        request->trials == 1 ? "" : "s");
    }
    gos_screen_add(screen, SAY, request->is_word ? "driver" : "before", buffer, 1);
}

static void add_why(struct gos_screen *screen, const struct gos_document *document)
{
    const struct gos_verdict *verdict = &document->report->diagnosis->verdict;
    const char *summary = verdict->summary ? verdict->summary : gos_verdict_words(verdict->code);
    char buffer[GOS_SCREEN_WORDS];
    struct gos_text text = gos_text_on(buffer, sizeof buffer);
    gos_text_format(&text, "%s (%s): %s", gos_verdict_code(verdict->code),
                    gos_confidence_code(verdict->confidence), summary);
    gos_screen_add(screen, MUST, "why", buffer, 3);
}

static void add_asked_by(struct gos_screen *screen, const struct gos_document *document)
{
    const struct gos_request *request = &evidence_of(document)->request;
    const struct gos_module *module = document->stacks.requester;
    const struct gos_shown_stack *stack = gos_stacks_find(&document->stacks, request->site);
    char buffer[GOS_SCREEN_WORDS];
    struct gos_text text = gos_text_on(buffer, sizeof buffer);
    const char *name = request->is_word ? request->api
                       : module         ? gos_library_name(module->path)
                                        : "";
    bool said_by_frame =
        module && stack && stack->python_count == 0 && strcmp(name, module->name) == 0;
    if (!said_by_frame)
        gos_text_put(&text, name);
    if (stack) {
        gos_screen_separate(&text, ": ");
        gos_screen_place(&text, document, request->site, 2);
    }
    gos_screen_add(screen, SAY, "asked by", buffer, 2);
}

/* --- how much --- */

static void add_need(struct gos_screen *screen, const struct gos_document *document)
{
    const char *words = document->report->diagnosis->need.words;
    if (gos_screen_has_text(words))
        gos_screen_add(screen, SAY, "it needed", words, 2);
}

static void add_short_by(struct gos_screen *screen, const struct gos_document *document)
{
    const struct gos_diagnosis *diagnosis = document->report->diagnosis;
    const struct gos_request *request = &diagnosis->evidence->request;
    uint64_t left = 0;
    char buffer[GOS_SCREEN_WORDS];
    struct gos_text text = gos_text_on(buffer, sizeof buffer);
    if (diagnosis->verdict.short_bytes == 0 || !(request->bytes_known || diagnosis->need.bytes))
        return;
    put_bytes(&text, diagnosis->verdict.short_bytes);
    gos_text_put(&text, ": ");
    put_bytes(&text, request->bytes_known ? request->bytes : diagnosis->need.bytes);
    gos_text_put(&text, request->bytes_known ? " asked" : " needed");
    if (!request->entry) {
        gos_text_put(&text, ", ");
        put_bytes(&text, gos_beyond(request->bytes, diagnosis->verdict.short_bytes));
        gos_text_format(&text, " left to %s", request->api);
    } else if (is_ordinal(diagnosis->device) &&
               gos_document_free(document, diagnosis->device, &left)) {
        gos_text_put(&text, ", ");
        put_bytes(&text, left);
        gos_text_put(&text, " free");
    }
    gos_screen_add(screen, SAY, "short by", buffer, 1);
}

/* --- who holds it --- */

/* What a framework says itself is more than what it holds on our books. */
static bool put_framework(struct gos_text *text, const struct gos_diagnosis *diagnosis,
                          const char *name)
{
    const struct gos_framework_evidence *framework =
        is_ordinal(diagnosis->device) && name
            ? gos_framework_find(diagnosis->evidence, name, (uint32_t)diagnosis->device)
            : NULL;
    if (!framework)
        return false;
    gos_text_format(text, "%s ", name);
    put_bytes(text, framework->reserved_bytes);
    gos_text_put(text, " reserved, ");
    put_bytes(text, framework->used_bytes);
    gos_text_put(text, " in use");
    return true;
}

/* Managed memory may be on the host, so it is no part of what fills the device. */
static void put_live(struct gos_text *text, uint64_t live_bytes, uint64_t managed_bytes)
{
    if (live_bytes > managed_bytes || managed_bytes == 0)
        put_bytes(text, live_bytes - managed_bytes);
    if (managed_bytes == 0)
        return;
    gos_text_put(text, live_bytes > managed_bytes ? " and " : "");
    put_bytes(text, managed_bytes);
    gos_text_put(text, " managed");
}

static void put_holders(struct gos_text *text, const struct gos_diagnosis *diagnosis)
{
    for (size_t i = 0; i < diagnosis->holder_count && i < 3; i++) {
        gos_screen_separate(text, ", ");
        if (put_framework(text, diagnosis, diagnosis->holders[i].name))
            continue;
        gos_text_format(text, "%s ",
                        gos_screen_has_text(diagnosis->holders[i].name) ? diagnosis->holders[i].name
                                                                        : "?");
        gos_text_put(text, diagnosis->evidence->stack_sample_bytes ? "about " : "");
        put_live(text, diagnosis->holders[i].live_bytes, diagnosis->holders[i].managed_bytes);
    }
}

static void put_process(struct gos_text *text, const struct gos_process_evidence *process)
{
    gos_screen_separate(text, ", ");
    gos_text_format(text, "%s (pid %u) ",
                    gos_screen_has_text(process->name) ? process->name : "process", process->pid);
    put_bytes(text, process->used_bytes);
}

static const struct gos_process_evidence *larger_process(const struct gos_evidence *evidence,
                                                         int device, uint64_t below)
{
    const struct gos_process_evidence *best = NULL;
    for (size_t i = 0; i < evidence->process_count; i++) {
        const struct gos_process_evidence *process = &evidence->processes[i];
        if (process->device != device || process->relation == GOS_PROCESS_SELF ||
            process->used_bytes >= below)
            continue;
        if (!best || process->used_bytes > best->used_bytes)
            best = process;
    }
    return best;
}

/* Largest first; two of exactly the same size count as one here, and the table has both. */
static void put_processes(struct gos_text *text, const struct gos_evidence *evidence, int device)
{
    uint64_t below = UINT64_MAX;
    for (int i = 0; i < 3; i++) {
        const struct gos_process_evidence *process = larger_process(evidence, device, below);
        if (!process)
            return;
        put_process(text, process);
        below = process->used_bytes;
    }
}

/* What this process or a small neighbour holds is no answer to who holds what nobody shows. */
static void put_hidden(struct gos_text *text, const struct gos_diagnosis *diagnosis)
{
    if (!is_ordinal(diagnosis->device))
        return;
    const struct gos_ledger *ledger = &diagnosis->ledgers[diagnosis->device];
    int64_t seen =
        ledger->lines[GOS_LEDGER_CHILDREN].bytes + ledger->lines[GOS_LEDGER_OTHERS].bytes;
    if (ledger->lines[GOS_LEDGER_HIDDEN].bytes <= seen)
        return;
    gos_screen_separate(text, ", ");
    gos_text_put(text, "nobody visible ");
    put_bytes(text, (uint64_t)ledger->lines[GOS_LEDGER_HIDDEN].bytes);
}

static void add_holders(struct gos_screen *screen, const struct gos_document *document)
{
    const struct gos_diagnosis *diagnosis = document->report->diagnosis;
    bool others = diagnosis->verdict.code == GOS_VERDICT_EXHAUSTED_BY_OTHERS;
    char buffer[GOS_SCREEN_WORDS];
    struct gos_text text = gos_text_on(buffer, sizeof buffer);
    bool on_host = is_failure(document) && !is_ordinal(diagnosis->device);
    if (others) {
        put_processes(&text, diagnosis->evidence, diagnosis->device);
        put_hidden(&text, diagnosis);
    }
    if (text.length == 0 && !on_host)
        put_holders(&text, diagnosis);
    if (text.length == 0 && diagnosis->evidence->request.is_word)
        put_framework(&text, diagnosis, diagnosis->evidence->request.api);
    gos_screen_add(screen, HELP, "held by", buffer, 1);
}

/* --- what was done, what to do --- */

static bool was_skipped(const struct gos_step_record *step)
{
    return step->result && strcmp(step->result, "skipped") == 0;
}

static void put_step(struct gos_text *text, const struct gos_step_record *step)
{
    gos_screen_separate(text, "; ");
    gos_text_format(text, "%s: %s", step->step, step->result);
    if (step->freed_bytes > 0) {
        gos_text_put(text, ", ");
        put_bytes(text, step->freed_bytes);
        gos_text_put(text, " given back");
    }
    if (step->duration_ns >= 1000000) {
        gos_text_put(text, " in ");
        gos_text_duration(text, step->duration_ns);
    }
    if (gos_screen_has_text(step->reason))
        gos_text_format(text, " (%s)", step->reason);
}

/* Why nothing was tried is for the recovery table; that nothing was is worth a short line. */
static void add_nothing_done(struct gos_screen *screen, const struct gos_report *report)
{
    char buffer[GOS_SCREEN_WORDS];
    struct gos_text text = gos_text_on(buffer, sizeof buffer);
    if (strcmp(report->steps[0].step, "recovery") == 0) {
        gos_text_format(&text, "nothing: %s", report->steps[0].reason);
    } else {
        gos_text_put(&text, "nothing that could have helped: skipped ");
        for (uint32_t i = 0; i < report->step_count; i++)
            gos_text_format(&text, "%s%s", i > 0 ? ", " : "", report->steps[i].step);
    }
    gos_screen_add(screen, NEAR, "done", buffer, 1);
}

static void add_done(struct gos_screen *screen, const struct gos_report *report)
{
    char buffer[GOS_SCREEN_WORDS];
    struct gos_text text = gos_text_on(buffer, sizeof buffer);
    for (uint32_t i = 0; i < report->step_count; i++) {
        if (!was_skipped(&report->steps[i]))
            put_step(&text, &report->steps[i]);
    }
    if (text.length == 0 && report->step_count > 0)
        add_nothing_done(screen, report);
    else
        gos_screen_add(screen, SAY, "done", buffer, 2);
}

static void add_advice(struct gos_screen *screen, const struct gos_verdict *verdict)
{
    if (verdict->advice_count > 0)
        gos_screen_add(screen, ACT, "to do", verdict->advice[0], 2);
    if (verdict->advice_count > 1)
        gos_screen_add(screen, NEAR, "", verdict->advice[1], 2);
}

static void add_not_seen(struct gos_screen *screen, const struct gos_evidence *evidence)
{
    char buffer[GOS_SCREEN_WORDS];
    struct gos_text text = gos_text_on(buffer, sizeof buffer);
    if (evidence->incomplete_count > 1)
        gos_text_format(&text, "(1 of %zu) ", evidence->incomplete_count);
    if (evidence->incomplete_count > 0)
        gos_text_put(&text, evidence->incomplete[0]);
    gos_screen_add(screen, NEAR, "not seen", buffer, 1);
}

static bool shows_ledger(const struct gos_document *document, int ordinal)
{
    const struct gos_diagnosis *diagnosis = document->report->diagnosis;
    bool known = diagnosis->evidence->devices[ordinal].present && diagnosis->ledgers[ordinal].known;
    return known && (!is_failure(document) || ordinal == diagnosis->device);
}

static void add_ledgers(struct gos_screen *screen, const struct gos_document *document)
{
    unsigned shown = 0;
    for (int i = 0; i < GOS_DEVICE_MAX; i++) {
        if (!shows_ledger(document, i))
            continue;
        if (shown++ == 0)
            gos_screen_gap(screen, SPACE);
        gos_screen_ledger(screen, document, i, is_failure(document) ? HELP : NEAR);
    }
}

/* --- nothing failed --- */

static struct gos_total live_on_devices(const struct gos_evidence *evidence)
{
    struct gos_total sum = {0};
    for (size_t i = 0; i < evidence->use_count; i++) {
        if (evidence->uses[i].device == GOS_DEVICE_HOST)
            continue;
        sum.live_bytes += evidence->uses[i].live_bytes;
        sum.live_count += evidence->uses[i].live_count;
    }
    return sum;
}

static void add_live(struct gos_screen *screen, const struct gos_document *document)
{
    struct gos_total live = live_on_devices(evidence_of(document));
    char buffer[GOS_SCREEN_WORDS];
    struct gos_text text = gos_text_on(buffer, sizeof buffer);
    if (live.live_count > 0) {
        put_bytes(&text, live.live_bytes);
        gos_text_format(&text, " in %llu %s", (unsigned long long)live.live_count,
                        live.live_count == 1 ? "allocation" : "allocations");
    } else {
        gos_text_put(&text, "no device memory is allocated");
    }
    gos_screen_add(screen, MUST, "live", buffer, 1);
}

void gos_screen_write(const struct gos_document *document, struct gos_text *text)
{
    struct gos_screen screen = {.count = 0};
    add_title(&screen, document);
    gos_screen_rehearsal(&screen, document, MUST);
    gos_screen_told(&screen, document, SAY);
    if (is_failure(document)) {
        add_subject(&screen, document);
        add_before(&screen, document);
        add_why(&screen, document);
        add_asked_by(&screen, document);
        add_need(&screen, document);
        add_short_by(&screen, document);
    } else {
        add_live(&screen, document);
    }
    if (!is_other_error(document)) {
        add_holders(&screen, document);
        gos_screen_sites(&screen, document);
    }
    if (is_failure(document)) {
        add_done(&screen, document->report);
        add_advice(&screen, &document->report->diagnosis->verdict);
    }
    add_not_seen(&screen, evidence_of(document));
    add_ledgers(&screen, document);
    gos_screen_print(&screen, text);
}
