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

static struct {
    struct gos_lock lock;
    uint32_t last_number;
    uint64_t written_count; /* of failures */
    uint64_t asked_count;   /* snapshots, which leave failures and the report at exit their room */
    uint64_t exit_count;
    bool said_limit;
    bool said_elsewhere;
    bool showed_screen;
    /* The newest whose caller survived: its files serve a failure for which there is no room. */
    struct spare {
        uint32_t number; /* 0: none */
        char text_path[512];
        char json_path[512];
    } spare;
} state = {.lock = GOS_LOCK_INIT(GOS_RANK_REPORT)};

void gos_report_reset_after_fork(void)
{
    gos_lock_reset(&state.lock);
    state.last_number = 0;
    state.written_count = 0;
    state.asked_count = 0;
    state.exit_count = 0;
    state.said_limit = false;
    state.said_elsewhere = false;
    state.showed_screen = false;
    state.spare.number = 0; /* files of the parent */
}

static void open_document(struct gos_document *document, const struct gos_report *report,
                          struct gos_scratch *scratch)
{
    memset(document, 0, sizeof *document);
    document->report = report;
    document->version = GOS_VERSION;
    for (unsigned i = 0; i < GOS_LOSS_COUNT; i++)
        document->health.losses[i] = gos_loss_get((enum gos_loss)i);
    document->health.fuse_reason = gos_fuse_reason();
    gos_stacks_resolve(&document->stacks, scratch, report->diagnosis, SYMBOL_BUDGET_NS);
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

static int write_elsewhere(struct gos_report *report, const struct gos_document *document,
                           struct gos_scratch *scratch, const char *directory, int error)
{
    char fallback[GOS_PATH_BYTES];
    gos_files_fallback(fallback, scratch);
    int result = gos_outputs_write(report, document, scratch, fallback);
    if (result < 0)
        return error;
    say_elsewhere(directory, error, fallback);
    return 0;
}

/* Files that the program named itself: it gets the error, and nothing goes anywhere else. */
static int write_as_named(struct gos_report *report, const struct gos_document *document,
                          struct gos_scratch *scratch)
{
    return gos_outputs_write(report, document, scratch, ".");
}

static int write_numbered(struct gos_report *report, const struct gos_document *document,
                          struct gos_scratch *scratch)
{
    char directory[GOS_PATH_BYTES];
    int result = gos_files_directory(directory);
    if (result == 0)
        result = gos_outputs_write(report, document, scratch, directory);
    if (result < 0 && gos_files_try_elsewhere(result))
        result = write_elsewhere(report, document, scratch, directory, result);
    if (result < 0)
        give_up(document, directory, result);
    return result;
}

static bool is_survived(const struct gos_report *report)
{
    return report->outcome == GOS_OUTCOME_RECOVERED_BY_CALLER;
}

static void offer_files(const struct gos_report *report)
{
    if (!is_survived(report) || report->path_prefix)
        return;
    state.spare.number = report->number;
    memcpy(state.spare.text_path, report->text_path, sizeof state.spare.text_path);
    memcpy(state.spare.json_path, report->json_path, sizeof state.spare.json_path);
}

static bool take_over_files(struct gos_report *report)
{
    if (state.spare.number == 0 || is_survived(report))
        return false;
    report->number = state.spare.number;
    memcpy(report->text_path, state.spare.text_path, sizeof report->text_path);
    memcpy(report->json_path, state.spare.json_path, sizeof report->json_path);
    state.spare.number = 0;
    return true;
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

/* 0, or -EDQUOT when this process has written enough.  A rewrite is no new report. */
static int check_limit(struct gos_report *report)
{
    if (report->path_prefix || report->text_path[0] || report->json_path[0])
        return 0;
    if (*count_for(report) < gos_options.report_max)
        return 0;
    if (report->kind != GOS_REPORT_FAILURE)
        return -EDQUOT;
    if (take_over_files(report))
        return 0;
    if (!state.said_limit && gos_options.report_max > 0)
        gos_log(GOS_LOG_NOTICE,
                "%llu reports written; later failures are only counted (GPUOOMSHIM_REPORT_MAX)",
                (unsigned long long)state.written_count);
    state.said_limit = true;
    return -EDQUOT;
}

static int write_new(struct gos_report *report, const struct gos_document *document,
                     struct gos_scratch *scratch)
{
    bool numbered = report->number != 0;
    if (!numbered)
        report->number = state.last_number + 1;
    int result = write_numbered(report, document, scratch);
    if (result < 0) {
        report->number = numbered ? report->number : 0;
        return result;
    }
    if (report->number > state.last_number)
        state.last_number = report->number;
    ++*count_for(report);
    return 0;
}

static int write_report(struct gos_report *report)
{
    struct gos_scratch scratch = {0};
    struct gos_document document;
    bool rewrite = report->text_path[0] || report->json_path[0];
    int result;
    open_document(&document, report, &scratch);
    if (report->path_prefix)
        result = write_as_named(report, &document, &scratch);
    else if (rewrite)
        result = write_numbered(report, &document, &scratch);
    else
        result = write_new(report, &document, &scratch);
    if (result == 0)
        offer_files(report);
    gos_scratch_release(&scratch);
    return result;
}

int gos_report_write(struct gos_report *report)
{
    if ((gos_options.report & (GOS_REPORT_TEXT | GOS_REPORT_JSON)) == 0)
        return 0;
    gos_lock_acquire(&state.lock);
    int result = check_limit(report);
    if (result == 0)
        result = write_report(report);
    gos_lock_release(&state.lock);
    return result;
}

int gos_report_draft(struct gos_report *report)
{
    report->draft = 1;
    return 0;
}
void gos_report_draft_void(struct gos_report *report)
{
    report->draft = 0;
}
void gos_report_drafts_end(void)
{
}

void gos_report_inherit(struct gos_report *report, const struct gos_report *earlier)
{
    report->number = earlier->number;
    report->draft = earlier->draft;
    report->newest = true;
    memcpy(report->text_path, earlier->text_path, sizeof report->text_path);
    memcpy(report->json_path, earlier->json_path, sizeof report->json_path);
}
