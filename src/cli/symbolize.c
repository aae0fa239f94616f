#include "symbolize.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "build_id.h"
#include "command.h"
#include "symbol_table.h"

#define LINE_BYTES 4096
#define FAILED_EXEC 127

/* addr2line as a child: an address a line in, a function and a source line out. */
struct helper {
    pid_t pid;
    bool names_all; /* a stripped file gives the next exported function for any other, too */
    FILE *in;
    FILE *out;
};

static void become_helper(const char *path, const int to[2], const int from[2])
{
    dup2(to[0], STDIN_FILENO);
    dup2(from[1], STDOUT_FILENO);
    close(to[0]);
    close(to[1]);
    close(from[0]);
    close(from[1]);
    execlp("addr2line", "addr2line", "-f", "-C", "-e", path, (char *)NULL);
    _exit(FAILED_EXEC);
}

static bool start_helper(struct helper *helper, const char *path)
{
    int to[2] = {-1, -1};
    int from[2] = {-1, -1};
    if (pipe(to) != 0 || pipe(from) != 0)
        return false;
    helper->pid = fork();
    if (helper->pid == 0)
        become_helper(path, to, from);
    close(to[0]);
    close(from[1]);
    helper->in = fdopen(to[1], "w");
    helper->out = fdopen(from[0], "r");
    return helper->pid > 0 && helper->in && helper->out;
}

static int stop_helper(struct helper *helper)
{
    int status = 0;
    if (helper->in)
        fclose(helper->in);
    if (helper->out)
        fclose(helper->out);
    if (helper->pid > 0)
        waitpid(helper->pid, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == FAILED_EXEC ? -ENOENT : 0;
}

static bool read_line(FILE *stream, char line[LINE_BYTES])
{
    if (!fgets(line, LINE_BYTES, stream))
        return false;
    line[strcspn(line, "\n")] = '\0';
    return true;
}

/* The byte before the return address belongs to the call. */
static void name_frame(struct helper *helper, struct gos_scratch *scratch,
                       struct gos_shown_frame *frame)
{
    char function[LINE_BYTES];
    char place[LINE_BYTES];
    char both[2 * LINE_BYTES + 8];
    fprintf(helper->in, "0x%llx\n", (unsigned long long)(frame->offset - 1));
    fflush(helper->in);
    if (!read_line(helper->out, function) || !read_line(helper->out, place))
        return;
    bool known = strncmp(place, "??", 2) != 0;
    if (strcmp(function, "??") == 0 || (!known && !helper->names_all))
        return;
    snprintf(both, sizeof both, "%s%s%s", function, known ? " at " : "", known ? place : "");
    frame->symbol = gos_scratch_copy(scratch, both, strlen(both));
    frame->symbol_offset = 0;
}

static bool wants(const struct gos_shown_frame *frame, const struct gos_module *module)
{
    return frame->module == module && !frame->symbol && frame->offset > 0;
}

static bool any_wanted(const struct gos_loaded *loaded, const struct gos_module *module)
{
    const struct gos_stacks *stacks = &loaded->document.stacks;
    for (size_t i = 0; i < stacks->count; i++) {
        for (uint32_t k = 0; k < stacks->stacks[i].native_count; k++) {
            if (wants(&stacks->stacks[i].native[k], module))
                return true;
        }
    }
    return false;
}

static void name_frames(struct helper *helper, struct gos_loaded *loaded,
                        const struct gos_module *module)
{
    struct gos_stacks *stacks = &loaded->document.stacks;
    for (size_t i = 0; i < stacks->count; i++) {
        for (uint32_t k = 0; k < stacks->stacks[i].native_count; k++) {
            if (wants(&stacks->stacks[i].native[k], module))
                name_frame(helper, &loaded->scratch, &stacks->stacks[i].native[k]);
        }
    }
}

static int name_module(struct gos_loaded *loaded, const struct gos_module *module)
{
    struct helper helper = {.pid = -1};
    if (!any_wanted(loaded, module))
        return 0;
    if (!gos_build_id_matches(module)) {
        gos_command_complain("%s is not the file that was loaded; its frames stay as they are",
                             module->path ? module->path : "(a module)");
        return 0;
    }
    helper.names_all = gos_has_symbol_table(module->path);
    if (start_helper(&helper, module->path))
        name_frames(&helper, loaded, module);
    return stop_helper(&helper);
}

int gos_symbolize(struct gos_loaded *loaded)
{
    int result = 0;
    for (size_t i = 0; i < loaded->module_count && result == 0; i++)
        result = name_module(loaded, &loaded->modules[i]);
    if (result == -ENOENT)
        gos_command_complain("--symbolize needs addr2line (package binutils)");
    return result;
}
