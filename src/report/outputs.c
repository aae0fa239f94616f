#include "outputs.h"

#include <errno.h>
#include <string.h>

#include "../base/options.h"
#include "../base/os.h"
#include "../base/text.h"

#define NUMBER_TRIES 10000
#define FORM_COUNT 2

struct output {
    enum gos_form form;
    const char *extension;
    char *path; /* the report's, GOS_PATH_BYTES */
    bool wanted;
    bool claimed; /* a file of ours bears the name */
    bool whole;   /* and it is the report */
    bool published;
    struct gos_draft draft;
};

struct outputs {
    struct output of[FORM_COUNT];
    struct gos_report *report;
    const char *directory;
};

static bool is_rewrite(const struct gos_report *report)
{
    return report->text_path[0] || report->json_path[0];
}

static void prepare(struct outputs *outputs, struct gos_report *report, const char *directory)
{
    bool rewrite = is_rewrite(report);
    uint32_t forms = gos_options.report;
    memset(outputs, 0, sizeof *outputs);
    outputs->report = report;
    outputs->directory = directory;
    outputs->of[0] = (struct output){.form = GOS_FORM_TEXT,
                                     .extension = "txt",
                                     .path = report->text_path,
                                     .wanted = forms & GOS_REPORT_TEXT,
                                     .draft = {.fd = -1}};
    outputs->of[1] = (struct output){.form = GOS_FORM_JSON,
                                     .extension = "json",
                                     .path = report->json_path,
                                     .wanted = forms & GOS_REPORT_JSON,
                                     .draft = {.fd = -1}};
    for (unsigned i = 0; rewrite && i < FORM_COUNT; i++) {
        if (!outputs->of[i].path[0])
            outputs->of[i].wanted = false;
    }
}

/* --- first: complete files under temporary names --- */

static int draft_directory(const struct outputs *outputs, const struct output *output,
                           char directory[GOS_PATH_BYTES])
{
    struct gos_text text = gos_text_on(directory, GOS_PATH_BYTES);
    if (output->path[0])
        gos_files_directory_of(directory, output->path);
    else if (outputs->report->path_prefix)
        gos_files_directory_of(directory, outputs->report->path_prefix);
    else
        gos_text_put(&text, outputs->directory);
    return text.truncated ? -ENAMETOOLONG : 0;
}

static int emit(const struct gos_document *document, struct output *output,
                struct gos_scratch *scratch)
{
    struct gos_sink sink;
    struct gos_emitter emitter;
    gos_sink_open(&sink, scratch, output->draft.fd, GOS_SINK_FILE_BYTES);
    gos_emitter_init(&emitter, output->form, &sink);
    gos_document_emit(document, &emitter);
    return gos_sink_finish(&sink);
}

static int write_draft(const struct outputs *outputs, struct output *output,
                       const struct gos_document *document, struct gos_scratch *scratch)
{
    char directory[GOS_PATH_BYTES];
    int result = draft_directory(outputs, output, directory);
    if (result == 0)
        result = gos_draft_open(&output->draft, directory);
    if (result < 0)
        return result;
    result = emit(document, output, scratch);
    return result < 0 ? result : gos_draft_seal(&output->draft);
}

/* --- then: a name --- */

static int name_output(const struct outputs *outputs, struct output *output, uint32_t number)
{
    const struct gos_report *report = outputs->report;
    const struct gos_evidence *evidence = report->diagnosis->evidence;
    const struct gos_file_name name = {.directory = outputs->directory,
                                       .host = evidence->host.hostname,
                                       .rank = evidence->rank,
                                       .pid = evidence->pid ? evidence->pid : gos_os.pid(),
                                       .number = number};
    struct gos_text text = gos_text_on(output->path, GOS_PATH_BYTES);
    if (!report->path_prefix)
        return gos_files_name(output->path, &name, output->extension);
    gos_text_format(&text, "%s.%s", report->path_prefix, output->extension);
    return text.truncated ? -ENAMETOOLONG : 0;
}

static void unclaim(struct outputs *outputs)
{
    for (unsigned i = 0; i < FORM_COUNT; i++) {
        struct output *output = &outputs->of[i];
        if (output->claimed)
            (void)gos_os.unlink(output->path);
        output->claimed = output->whole = false;
    }
}

static int claim_number(struct outputs *outputs, uint32_t number)
{
    int result = 0;
    for (unsigned i = 0; i < FORM_COUNT; i++) {
        struct output *output = &outputs->of[i];
        if (!output->wanted || result < 0)
            continue;
        result = name_output(outputs, output, number);
        if (result == 0 && !outputs->report->path_prefix) {
            result = gos_draft_name(&output->draft, output->path, &output->whole);
            output->claimed = result == 0;
        }
    }
    if (result < 0)
        unclaim(outputs);
    return result;
}

static int claim(struct outputs *outputs)
{
    struct gos_report *report = outputs->report;
    uint32_t first = report->number ? report->number : 1;
    int result = -EEXIST;
    for (uint32_t i = 0; i < NUMBER_TRIES && result == -EEXIST; i++) {
        report->number = first + i;
        result = claim_number(outputs, report->number);
    }
    return result;
}

/* The temporary name goes. */
static int publish_one(struct output *output)
{
    if (!output->whole)
        return gos_draft_publish(&output->draft, output->path);
    gos_draft_drop(&output->draft);
    return 0;
}

static int publish(struct outputs *outputs)
{
    for (unsigned i = 0; i < FORM_COUNT; i++) {
        struct output *output = &outputs->of[i];
        int result = output->wanted ? publish_one(output) : 0;
        if (result < 0)
            return result;
        output->claimed = false;
        output->published = output->wanted;
    }
    return 0;
}

/*
 * A signal handler of the host that ends the process in here would leave the
 * temporary name behind, and, where files have one name, an empty report.
 */
static int claim_and_publish(struct outputs *outputs)
{
    uint64_t host_mask;
    bool masked = gos_os.signal_mask(UINT64_MAX, &host_mask) == 0;
    int result = is_rewrite(outputs->report) ? 0 : claim(outputs);
    if (result == 0)
        result = publish(outputs);
    if (masked)
        (void)gos_os.signal_mask(host_mask, NULL);
    return result;
}

/* --- both --- */

static int write_all(struct outputs *outputs, const struct gos_document *document,
                     struct gos_scratch *scratch)
{
    int result = 0;
    for (unsigned i = 0; i < FORM_COUNT; i++) {
        struct output *output = &outputs->of[i];
        if (result == 0 && output->wanted)
            result = write_draft(outputs, output, document, scratch);
    }
    return result < 0 ? result : claim_and_publish(outputs);
}

/* A report that was on disk before stays; what was begun now goes, with its name. */
static void undo(struct outputs *outputs, bool rewrite)
{
    unclaim(outputs);
    for (unsigned i = 0; i < FORM_COUNT; i++) {
        struct output *output = &outputs->of[i];
        gos_draft_drop(&output->draft);
        if (!rewrite && !output->published)
            output->path[0] = '\0';
    }
}

int gos_outputs_write(struct gos_report *report, const struct gos_document *document,
                      struct gos_scratch *scratch, const char *directory)
{
    struct outputs outputs;
    bool rewrite = is_rewrite(report);
    prepare(&outputs, report, directory);
    int result = write_all(&outputs, document, scratch);
    if (result < 0)
        undo(&outputs, rewrite);
    return result;
}
