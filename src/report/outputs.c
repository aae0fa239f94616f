#include "outputs.h"

#include <errno.h>
#include <string.h>

#include "../base/options.h"
#include "../base/os.h"
#include "../base/text.h"
#include "draft.h"

#define NUMBER_TRIES 10000

struct output {
    enum gos_form form;
    const char *extension;
    char *path; /* the report's, GOS_PATH_BYTES */
    bool wanted;
    bool claimed; /* a file of ours bears the name */
    bool whole;   /* and it is the report */
    bool published;
    struct gos_new_file file;
};

struct outputs {
    struct output of[GOS_OUTPUT_FORMS];
    struct gos_report *report;
    const struct gos_contents *contents;
    const char *directory;
};

static bool is_rewrite(const struct gos_report *report)
{
    return report->text_path[0] || report->json_path[0];
}

static void prepare(struct outputs *outputs, struct gos_report *report,
                    const struct gos_contents *contents, const char *directory)
{
    bool rewrite = is_rewrite(report);
    uint32_t forms = contents->forms;
    memset(outputs, 0, sizeof *outputs);
    outputs->report = report;
    outputs->contents = contents;
    outputs->directory = directory;
    outputs->of[0] = (struct output){.form = GOS_FORM_TEXT,
                                     .extension = "txt",
                                     .path = report->text_path,
                                     .wanted = forms & GOS_REPORT_TEXT,
                                     .file = {.fd = -1}};
    outputs->of[1] = (struct output){.form = GOS_FORM_JSON,
                                     .extension = "json",
                                     .path = report->json_path,
                                     .wanted = forms & GOS_REPORT_JSON,
                                     .file = {.fd = -1}};
    for (unsigned i = 0; rewrite && i < GOS_OUTPUT_FORMS; i++) {
        if (!outputs->of[i].path[0])
            outputs->of[i].wanted = false;
    }
}

/* --- first: complete files under temporary names --- */

static int directory_of(const struct outputs *outputs, const struct output *output,
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
    gos_sink_open(&sink, scratch, output->file.fd, GOS_SINK_FILE_BYTES);
    gos_emitter_init(&emitter, output->form, &sink);
    gos_document_emit(document, &emitter);
    return gos_sink_finish(&sink);
}

static int copy(const struct gos_contents *contents, struct output *output)
{
    unsigned form = output->form == GOS_FORM_JSON;
    if (contents->bytes[form] > gos_sink_file_limit())
        return -EFBIG;
    return gos_os_write_all(output->file.fd, contents->data[form], contents->bytes[form]);
}

static int write_file(const struct outputs *outputs, struct output *output,
                      struct gos_scratch *scratch)
{
    const struct gos_contents *contents = outputs->contents;
    char directory[GOS_PATH_BYTES];
    int result = directory_of(outputs, output, directory);
    if (result == 0)
        result = gos_new_file_open(&output->file, directory);
    if (result < 0)
        return result;
    result =
        contents->document ? emit(contents->document, output, scratch) : copy(contents, output);
    return result < 0 ? result : gos_new_file_seal(&output->file);
}

/* --- then: a name --- */

static int name_output(const struct outputs *outputs, struct output *output, uint32_t number)
{
    const struct gos_report *report = outputs->report;
    struct gos_file_name name = outputs->contents->name;
    name.directory = outputs->directory;
    name.number = number;
    struct gos_text text = gos_text_on(output->path, GOS_PATH_BYTES);
    if (!report->path_prefix)
        return gos_files_name(output->path, &name, output->extension);
    gos_text_format(&text, "%s.%s", report->path_prefix, output->extension);
    return text.truncated ? -ENAMETOOLONG : 0;
}

static void unclaim(struct outputs *outputs)
{
    for (unsigned i = 0; i < GOS_OUTPUT_FORMS; i++) {
        struct output *output = &outputs->of[i];
        if (output->claimed)
            (void)gos_os.unlink(output->path);
        output->claimed = output->whole = false;
    }
}

/* A kill while the files get their names is repaired by means of the draft. */
static void tell_draft(const struct outputs *outputs, uint32_t number)
{
    const uint64_t inodes[GOS_OUTPUT_FORMS] = {outputs->of[0].file.inode,
                                               outputs->of[1].file.inode};
    if (outputs->report->draft)
        gos_draft_publishing(outputs->report->draft, number, inodes);
}

static int claim_number(struct outputs *outputs, uint32_t number)
{
    int result = 0;
    tell_draft(outputs, number);
    for (unsigned i = 0; i < GOS_OUTPUT_FORMS; i++) {
        struct output *output = &outputs->of[i];
        if (!output->wanted || result < 0)
            continue;
        result = name_output(outputs, output, number);
        if (result == 0 && !outputs->report->path_prefix) {
            result = gos_new_file_name(&output->file, output->path, &output->whole);
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
        return gos_new_file_publish(&output->file, output->path);
    gos_new_file_drop(&output->file);
    return 0;
}

static int publish(struct outputs *outputs)
{
    for (unsigned i = 0; i < GOS_OUTPUT_FORMS; i++) {
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
    bool rewrite = is_rewrite(outputs->report);
    if (rewrite)
        tell_draft(outputs, outputs->report->number);
    int result = rewrite ? 0 : claim(outputs);
    if (result == 0)
        result = publish(outputs);
    if (masked)
        (void)gos_os.signal_mask(host_mask, NULL);
    return result;
}

/* --- both --- */

static int write_all(struct outputs *outputs, struct gos_scratch *scratch)
{
    int result = 0;
    for (unsigned i = 0; i < GOS_OUTPUT_FORMS; i++) {
        struct output *output = &outputs->of[i];
        if (result == 0 && output->wanted)
            result = write_file(outputs, output, scratch);
    }
    return result < 0 ? result : claim_and_publish(outputs);
}

/* A report that was on disk before stays; what was begun now goes, with its name. */
static void undo(struct outputs *outputs, bool rewrite)
{
    unclaim(outputs);
    for (unsigned i = 0; i < GOS_OUTPUT_FORMS; i++) {
        struct output *output = &outputs->of[i];
        gos_new_file_drop(&output->file);
        if (!rewrite && !output->published)
            output->path[0] = '\0';
    }
}

int gos_outputs_write(struct gos_report *report, const struct gos_contents *contents,
                      struct gos_scratch *scratch, const char *directory)
{
    struct outputs outputs;
    bool rewrite = is_rewrite(report);
    prepare(&outputs, report, contents, directory);
    int result = write_all(&outputs, scratch);
    if (result < 0)
        undo(&outputs, rewrite);
    return result;
}
