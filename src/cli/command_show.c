/* `gpuoomshim show`: a report from its JSON, or a draft of one, for people or in parts. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "demangle.h"
#include "draft_show.h"
#include "json_file.h"
#include "json_path.h"
#include "load.h"
#include "suggest.h"
#include "symbolize.h"

struct show {
    const char *file;
    const char *path; /* of --json, NULL without */
    bool all;
    bool symbolize;
};

/* The functions that read an argument return how many they used up, 0 after a complaint. */

static int complain_of_option(const char *option)
{
    static const char *const options[] = {"--json", "--all", "--symbolize"};
    const char *meant = gos_suggest(option, options, sizeof options / sizeof options[0]);
    if (meant)
        gos_command_complain("show has no option '%s'; did you mean '%s'?", option, meant);
    else
        gos_command_complain("show has no option '%s'; it has --json PATH, --all, --symbolize",
                             option);
    return 0;
}

static int set_file(struct show *show, const char *file)
{
    if (show->file) {
        gos_command_complain("show takes one file, but got %s and %s", show->file, file);
        return 0;
    }
    show->file = file;
    return 1;
}

static int read_argument(struct show *show, int left, char **argv)
{
    if (strcmp(argv[0], "--json") == 0) {
        show->path = left > 1 ? argv[1] : "";
        return left > 1 ? 2 : 1;
    }
    if (strncmp(argv[0], "--json=", 7) == 0)
        show->path = argv[0] + 7;
    else if (strcmp(argv[0], "--all") == 0)
        show->all = true;
    else if (strcmp(argv[0], "--symbolize") == 0)
        show->symbolize = true;
    else if (strncmp(argv[0], "--", 2) == 0)
        return complain_of_option(argv[0]);
    else
        return set_file(show, argv[0]);
    return 1;
}

static bool read_arguments(struct show *show, int argc, char **argv)
{
    for (int i = 1; i < argc;) {
        int used = read_argument(show, argc - i, argv + i);
        if (used == 0)
            return false;
        i += used;
    }
    if (!show->file)
        gos_command_complain("show needs a file: gpuoomshim show gpuoomshim.HOST.PID.1.json");
    return show->file != NULL;
}

static int print_part(const json_t *root, const char *path)
{
    const json_t *part = gos_json_find(root, path);
    if (!part)
        return GOS_STATUS_USAGE;
    return gos_json_print(part) == 0 ? GOS_STATUS_OK : GOS_STATUS_FAILED;
}

static int print_document(struct gos_loaded *loaded)
{
    struct gos_sink sink;
    struct gos_emitter emitter;
    gos_sink_open(&sink, &loaded->scratch, STDOUT_FILENO, GOS_SINK_FILE_BYTES);
    gos_emitter_init(&emitter, GOS_FORM_TEXT, &sink);
    gos_document_emit(&loaded->document, &emitter);
    int result = gos_sink_finish(&sink);
    if (result == 0)
        return GOS_STATUS_OK;
    gos_command_complain("cannot write: %s", strerror(-result));
    return GOS_STATUS_FAILED;
}

static int print_report(const json_t *root, const struct show *show, enum gos_standing standing)
{
    static struct gos_loaded loaded; /* too large for the stack */
    if (gos_load(&loaded, root) < 0)
        return GOS_STATUS_USAGE;
    if (show->symbolize && gos_symbolize(&loaded) < 0)
        return GOS_STATUS_FAILED;
    gos_demangle(&loaded);
    loaded.document.complete = show->all;
    loaded.document.standing = standing;
    int status = print_document(&loaded);
    gos_scratch_release(&loaded.scratch);
    return status;
}

int gos_command_show(int argc, char **argv)
{
    struct show show = {0};
    if (!read_arguments(&show, argc, argv))
        return GOS_STATUS_USAGE;
    enum gos_standing standing = GOS_STANDING_TOLD;
    json_t *root = gos_draft_is_one(show.file) ? gos_draft_json(show.file, &standing)
                                               : gos_json_read(show.file);
    if (!root)
        return GOS_STATUS_USAGE;
    int status = show.path ? print_part(root, show.path) : print_report(root, &show, standing);
    json_decref(root);
    return status;
}
