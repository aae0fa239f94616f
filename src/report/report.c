#include "report.h"

#include <errno.h>
#include <string.h>

#include "../base/lock.h"
#include "../base/log.h"
#include "../base/options.h"
#include "../base/os.h"
#include "../base/stderr.h"
#include "../base/text.h"
#include "document.h"
#include "draft.h"
#include "files.h"
#include "outputs.h"
#include "screen.h"
#include "version.h"

/*
 * A symbol of a large library costs up to a millisecond to look up; a report
 * may take 50 ms in all.  Frames without a symbol have library and offset.
 */
#define SYMBOL_BUDGET_NS UINT64_C(8000000)
#define SCREEN_BYTES 4096

/*
 * Drafts are put down at failures that come by the thousand: no symbols, and the
 * stacks of so few sites.  What a slot cannot hold is tried without them.
 */
static const size_t draft_stacks[] = {6, 0};

/* Files whose report is a failure's. */
struct files {
    uint32_t number; /* 0: none */
    uint32_t serial;
    char text_path[GOS_PATH_BYTES];
    char json_path[GOS_PATH_BYTES];
};

/* Reports whose files went to others and that may still be rewritten: more than are ever kept. */
#define ROBBED_MAX 32

static struct {
    struct gos_lock lock;
    uint32_t last_number;
    uint32_t last_serial;
    uint64_t written_count; /* of failures */
    uint64_t asked_count;   /* snapshots, which leave failures and the report at exit their room */
    uint64_t exit_count;
    bool said_limit;
    bool said_elsewhere;
    bool showed_screen;
    /* The newest, and the newest whose caller survived: they make room for a later failure. */
    struct files newest;
    struct files survived;
    uint32_t robbed[ROBBED_MAX]; /* by serial */
    unsigned robbed_count;
    struct gos_scratch scratch; /* of drafts; kept, so that a draft costs no system call */
} state = {.lock = GOS_LOCK_INIT(GOS_RANK_REPORT)};

void gos_report_reset_after_fork(void)
{
    gos_lock_reset(&state.lock);
    gos_draft_reset_after_fork();
    memset((char *)&state + sizeof state.lock, 0, sizeof state - sizeof state.lock);
}

struct extent {
    size_t stack_max;
    uint64_t symbol_budget_ns;
};

static void open_document(struct gos_document *document, const struct gos_report *report,
                          struct gos_scratch *scratch, struct extent extent)
{
    memset(document, 0, sizeof *document);
    document->report = report;
    document->version = GOS_VERSION;
    for (unsigned i = 0; i < GOS_LOSS_COUNT; i++)
        document->health.losses[i] = gos_loss_get((enum gos_loss)i);
    document->health.fuse_reason = gos_fuse_reason();
    gos_stacks_resolve(&document->stacks, scratch, report->diagnosis, extent.stack_max,
                       extent.symbol_budget_ns);
}

static struct gos_file_name name_of(const struct gos_report *report)
{
    const struct gos_evidence *evidence = report->diagnosis->evidence;

    return (struct gos_file_name){.host = evidence->host.hostname,
                                  .rank = evidence->rank,
                                  .pid = evidence->pid ? evidence->pid : gos_os.pid()};
}

static bool has_files(const struct gos_report *report)
{
    return report->text_path[0] || report->json_path[0];
}

/* --- when no file can be had --- */

/* The only case in which more than a line goes to stderr: there is no other place for it. */
static void show_screen_once(const struct gos_document *document)
{
    char buffer[SCREEN_BYTES];
    struct gos_text text = gos_text_on(buffer, sizeof buffer);
    if (state.showed_screen)
        return;
    state.showed_screen = true;
    gos_screen_write(document, &text);
    int result = gos_stderr_write(text.data, text.length);
    if (result < 0)
        gos_loss_count(GOS_LOSS_REPORT);
}

/* A limit of the process itself is the same in each directory. */
static const char *advice(int error)
{
    bool is_own_limit = error == -EMFILE || error == -EFBIG || error == -ENOMEM;

    return is_own_limit ? "" : "; set GPUOOMSHIM_REPORT_DIR to a directory with room";
}

static void give_up(const struct gos_document *document, const char *directory, int error)
{
    unsigned draft = document->report->draft;

    if (draft) {
        gos_log(GOS_LOG_ERROR, "no report: cannot write to %s: %s (%d); `gpuoomshim show` reads %s",
                directory, gos_files_error(error), -error, gos_draft_path(draft));
        return;
    }
    gos_log(GOS_LOG_ERROR, "no report: cannot write to %s: %s (%d)%s", directory,
            gos_files_error(error), -error, advice(error));
    show_screen_once(document);
}

static void say_elsewhere(const char *directory, int error, const char *fallback)
{
    if (!state.said_elsewhere)
        gos_log(GOS_LOG_NOTICE, "cannot write reports to %s: %s; they go to %s", directory,
                gos_files_error(error), fallback);
    state.said_elsewhere = true;
}

/* --- writing --- */

static int write_files(struct gos_report *report, const struct gos_document *document,
                       struct gos_scratch *scratch, const char *directory)
{
    const struct gos_contents contents = {
        .forms = gos_options.report, .name = name_of(report), .document = document};

    return gos_outputs_write(report, &contents, scratch, directory);
}

static int write_elsewhere(struct gos_report *report, const struct gos_document *document,
                           struct gos_scratch *scratch, const char *directory, int error)
{
    char fallback[GOS_PATH_BYTES];
    gos_files_fallback(fallback, scratch);
    int result = write_files(report, document, scratch, fallback);
    if (result < 0)
        return error;
    say_elsewhere(directory, error, fallback);
    return 0;
}

/* Files that the program named itself: it gets the error, and nothing goes anywhere else. */
static int write_as_named(struct gos_report *report, const struct gos_document *document,
                          struct gos_scratch *scratch)
{
    return write_files(report, document, scratch, ".");
}

static int write_numbered(struct gos_report *report, const struct gos_document *document,
                          struct gos_scratch *scratch)
{
    char directory[GOS_PATH_BYTES];
    int result = gos_files_directory(directory);
    if (result == 0)
        result = write_files(report, document, scratch, directory);
    if (result < 0 && gos_files_try_elsewhere(result))
        result = write_elsewhere(report, document, scratch, directory, result);
    if (result < 0)
        give_up(document, directory, result);
    return result;
}

static int write_under_next_number(struct gos_report *report, const struct gos_document *document,
                                   struct gos_scratch *scratch)
{
    bool numbered = report->number != 0;
    if (!numbered)
        report->number = state.last_number + 1;
    int result = write_numbered(report, document, scratch);
    if (result < 0)
        report->number = numbered ? report->number : 0;
    else if (report->number > state.last_number)
        state.last_number = report->number;
    return result;
}

/* --- whose files are whose --- */

static bool is_survived(const struct gos_report *report)
{
    return report->outcome == GOS_OUTCOME_RECOVERED_BY_CALLER;
}

static bool is_numbered_failure(const struct gos_report *report)
{
    return report->kind == GOS_REPORT_FAILURE && !report->path_prefix;
}

static void note_files(struct files *files, const struct gos_report *report)
{
    files->number = report->number;
    files->serial = report->serial;
    memcpy(files->text_path, report->text_path, sizeof files->text_path);
    memcpy(files->json_path, report->json_path, sizeof files->json_path);
}

static void take_files(struct gos_report *report, const struct files *files)
{
    report->number = files->number;
    memcpy(report->text_path, files->text_path, sizeof report->text_path);
    memcpy(report->json_path, files->json_path, sizeof report->json_path);
}

static void forget_files(struct gos_report *report)
{
    take_files(report, &(struct files){.number = 0});
    report->serial = 0;
}

static void note_report(struct gos_report *report)
{
    if (!is_numbered_failure(report))
        return;
    if (report->serial == 0)
        report->serial = ++state.last_serial;
    if (report->number >= state.newest.number)
        note_files(&state.newest, report);
    if (is_survived(report))
        note_files(&state.survived, report);
    else if (report->serial == state.survived.serial)
        state.survived.number = 0;
}

static void rob(const struct files *files)
{
    state.robbed[state.robbed_count++ % ROBBED_MAX] = files->serial;
}

/* The newest is robbed by each failure that finds no room, so the last of those is not all. */
static bool was_robbed(const struct gos_report *report)
{
    if (report->serial && report->number && report->number == state.newest.number &&
        report->serial != state.newest.serial)
        return true;
    for (unsigned i = 0; report->serial && i < ROBBED_MAX; i++)
        if (state.robbed[i] == report->serial)
            return true;
    return false;
}

static uint64_t *count_for(const struct gos_report *report)
{
    switch (report->kind) {
    case GOS_REPORT_SNAPSHOT:
        return &state.asked_count;
    case GOS_REPORT_EXIT:
        return &state.exit_count;
    default:
        return &state.written_count;
    }
}

static bool has_room(const struct gos_report *report)
{
    return report->path_prefix || has_files(report) || *count_for(report) < gos_options.report_max;
}

static void say_limit(void)
{
    if (!state.said_limit && gos_options.report_max > 0)
        gos_log(GOS_LOG_NOTICE,
                "%llu reports written; later failures take the place of the newest "
                "(GPUOOMSHIM_REPORT_MAX)",
                (unsigned long long)state.written_count);
    state.said_limit = true;
}

/* --- drafts --- */

struct words {
    struct gos_sink sink;
    int error;
};

static void emit(struct words *words, const struct gos_document *document, enum gos_form form)
{
    struct gos_emitter emitter;

    gos_sink_open(&words->sink, &state.scratch, -1, GOS_DRAFT_SLOT_MAX_BYTES);
    gos_emitter_init(&emitter, form, &words->sink);
    gos_document_emit(document, &emitter);
    words->error = gos_sink_finish(&words->sink);
}

static int store_draft(struct gos_report *report, const struct words *text,
                       const struct words *json)
{
    char directory[GOS_PATH_BYTES];
    struct gos_draft_words words = {
        .data = {text->sink.data, json->sink.data},
        .bytes = {text->sink.used, json->sink.used},
        .forms = gos_options.report,
        .told_number = has_files(report) ? report->number : 0,
        .name = name_of(report),
    };

    if (has_files(report)) {
        gos_files_directory_of(directory,
                               report->text_path[0] ? report->text_path : report->json_path);
        words.name.directory = directory;
        words.forms = (report->text_path[0] ? GOS_REPORT_TEXT : 0) |
                      (report->json_path[0] ? GOS_REPORT_JSON : 0);
    }
    return gos_draft_store(&report->draft, &words);
}

static int put_draft_with(struct gos_report *report, size_t stack_max)
{
    struct gos_document document;
    struct words text, json;

    gos_scratch_rewind(&state.scratch);
    open_document(&document, report, &state.scratch, (struct extent){.stack_max = stack_max});
    document.standing = GOS_STANDING_DRAFT;
    document.is_brief = true;
    emit(&text, &document, GOS_FORM_TEXT);
    emit(&json, &document, GOS_FORM_JSON);
    if (text.error < 0 || json.error < 0)
        return text.error < 0 ? text.error : json.error;
    return store_draft(report, &text, &json);
}

static int put_draft(struct gos_report *report)
{
    int result = -EFBIG;

    for (size_t i = 0; i < sizeof draft_stacks / sizeof draft_stacks[0] && result == -EFBIG; i++)
        result = put_draft_with(report, draft_stacks[i]);
    return result;
}

/* --- the ways of writing one --- */

static int write_new(struct gos_report *report, const struct gos_document *document,
                     struct gos_scratch *scratch)
{
    int result = write_under_next_number(report, document, scratch);
    if (result == 0)
        ++*count_for(report);
    return result;
}

/* The old files go when the new ones are there. */
static int write_again_as_newest(struct gos_report *report, const struct gos_document *document,
                                 struct gos_scratch *scratch, const struct files *old)
{
    take_files(report, &(struct files){.number = 0});
    int result = write_under_next_number(report, document, scratch);
    if (result == 0)
        gos_files_remove(old->text_path, old->json_path);
    return result;
}

static int write_renumbered(struct gos_report *report, const struct gos_document *document,
                            struct gos_scratch *scratch)
{
    struct files old;
    note_files(&old, report);
    int result = write_again_as_newest(report, document, scratch, &old);
    if (result < 0)
        take_files(report, &old);
    return result;
}

/* One that the caller survived is worth less than the newest; the newest keeps its number. */
static int write_in_place_of_another(struct gos_report *report, const struct gos_document *document,
                                     struct gos_scratch *scratch)
{
    bool is_newest = state.survived.number == 0 || state.survived.number == state.newest.number;
    struct files robbed = is_newest ? state.newest : state.survived;
    int result;

    if (robbed.number == 0 || is_survived(report))
        return -EDQUOT;
    if (is_newest) {
        take_files(report, &robbed);
        if (report->draft)
            (void)put_draft(report); /* whose files it replaces */
        result = write_numbered(report, document, scratch);
    } else {
        result = write_again_as_newest(report, document, scratch, &robbed);
    }
    if (result < 0) {
        forget_files(report);
        return result;
    }
    if (state.survived.serial == robbed.serial)
        state.survived.number = 0;
    rob(&robbed);
    return 0;
}

static bool is_told_anew(const struct gos_report *report)
{
    return report->newest && is_numbered_failure(report) && report->number < state.last_number;
}

static int write_document(struct gos_report *report, const struct gos_document *document,
                          struct gos_scratch *scratch)
{
    if (report->path_prefix)
        return write_as_named(report, document, scratch);
    if (has_files(report))
        return is_told_anew(report) ? write_renumbered(report, document, scratch)
                                    : write_numbered(report, document, scratch);
    if (has_room(report))
        return write_new(report, document, scratch);
    return write_in_place_of_another(report, document, scratch);
}

/* --- the whole --- */

static int write_report(struct gos_report *report)
{
    struct gos_scratch scratch = {0};
    struct gos_document document;

    if (report->draft)
        (void)put_draft(report); /* what lies there says the same, or at least nothing wrong */
    open_document(&document, report, &scratch, (struct extent){GOS_STACKS_MAX, SYMBOL_BUDGET_NS});
    int result = write_document(report, &document, &scratch);
    gos_scratch_release(&scratch);
    if (result == 0) {
        note_report(report);
        gos_draft_void(&report->draft);
        if (!is_survived(report))
            gos_draft_end(); /* the program may end any moment, and leave nothing void behind */
    }
    return result;
}

static int write_if_due(struct gos_report *report)
{
    if (was_robbed(report)) {
        if (!report->newest || is_survived(report)) {
            gos_draft_void(&report->draft);
            return 0;
        }
        forget_files(report);
    }
    if (!has_room(report)) {
        if (is_numbered_failure(report))
            say_limit();
        if (gos_options.report_max == 0 || !is_numbered_failure(report) || is_survived(report))
            return -EDQUOT;
    }
    return write_report(report);
}

int gos_report_write(struct gos_report *report)
{
    if ((gos_options.report & (GOS_REPORT_TEXT | GOS_REPORT_JSON)) == 0)
        return 0;
    gos_lock_acquire(&state.lock);
    int result = write_if_due(report);
    gos_lock_release(&state.lock);
    return result;
}

int gos_report_draft(struct gos_report *report)
{
    if ((gos_options.report & (GOS_REPORT_TEXT | GOS_REPORT_JSON)) == 0 ||
        gos_options.report_max == 0)
        return 0;
    if (!is_numbered_failure(report))
        return -EINVAL;
    gos_lock_acquire(&state.lock);
    if (was_robbed(report))
        forget_files(report);
    int result = put_draft(report);
    gos_lock_release(&state.lock);
    return result;
}

void gos_report_draft_void(struct gos_report *report)
{
    if (!report->draft)
        return;
    gos_lock_acquire(&state.lock);
    gos_draft_void(&report->draft);
    gos_lock_release(&state.lock);
}

void gos_report_drafts_end(void)
{
    gos_lock_acquire(&state.lock);
    gos_draft_end();
    gos_lock_release(&state.lock);
}

void gos_report_inherit(struct gos_report *report, struct gos_report *earlier)
{
    report->number = earlier->number;
    report->serial = earlier->serial;
    report->draft = earlier->draft;
    report->newest = true;
    earlier->draft = 0;
    memcpy(report->text_path, earlier->text_path, sizeof report->text_path);
    memcpy(report->json_path, earlier->json_path, sizeof report->json_path);
}

void gos_report_disown(struct gos_report *report)
{
    report->number = report->serial = 0;
    report->newest = false;
    report->text_path[0] = report->json_path[0] = '\0';
}
