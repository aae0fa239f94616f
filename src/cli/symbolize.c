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

/*
 * addr2line as a child: an address a line in; out comes the address, and for each
 * function that the place is in, the innermost inlined one first, its name and a
 * source line.  How many these are tells only the next address, so one that is
 * nowhere is asked for each time.
 */
#define NOWHERE "0xffffffffffffffff"

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
    execlp("addr2line", "addr2line", "-a", "-f", "-i", "-C", "-e", path, (char *)NULL);
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

static bool is_known(const char *answer)
{
    return strncmp(answer, "??", 2) != 0;
}

struct function {
    const char *name; /* with its source line; NULL: nothing is known */
    bool has_line;
};

#define CHAIN_MAX 16

static struct function read_function(const struct helper *helper, struct gos_scratch *scratch,
                                     const char *name)
{
    char place[LINE_BYTES];
    char both[2 * LINE_BYTES + 8];
    struct function function = {.name = NULL};
    if (!read_line(helper->out, place) || !is_known(name))
        return function;
    function.has_line = is_known(place);
    if (!function.has_line && !helper->names_all)
        return function;
    snprintf(both, sizeof both, "%s%s%s", name, function.has_line ? " at " : "",
             function.has_line ? place : "");
    function.name = gos_scratch_copy(scratch, both, strlen(both));
    return function;
}

/* The byte before the return address belongs to the call.  Innermost first; how many. */
static size_t ask(const struct helper *helper, struct gos_scratch *scratch, uint64_t offset,
                  struct function chain[CHAIN_MAX])
{
    char line[LINE_BYTES];
    size_t count = 0;
    fprintf(helper->in, "0x%llx\n" NOWHERE "\n", (unsigned long long)(offset - 1));
    fflush(helper->in);
    if (!read_line(helper->out, line))
        return 0;
    while (read_line(helper->out, line) && strcmp(line, NOWHERE) != 0) {
        struct function function = read_function(helper, scratch, line);
        if (function.name && count < CHAIN_MAX)
            chain[count++] = function;
    }
    if (read_line(helper->out, line))
        read_function(helper, scratch, line);
    return count;
}

/* An exported name is kept unless the source line is known. */
static void name_frame(struct gos_shown_frame *frame, const struct function *function)
{
    if (frame->symbol && !function->has_line)
        return;
    frame->symbol = function->name;
    frame->symbol_offset = 0;
}

static bool wants(const struct gos_shown_frame *frame, const struct gos_module *module)
{
    return frame->module == module && frame->offset > 1;
}

/* Functions that were inlined are frames of their own, without an offset. */
struct named {
    struct gos_shown_frame frames[4 * GOS_FRAME_MAX];
    uint32_t count;
};

static void add_frame(struct named *named, const struct gos_shown_frame *frame)
{
    if (named->count < sizeof named->frames / sizeof named->frames[0])
        named->frames[named->count++] = *frame;
}

static void add_named(struct named *named, struct gos_shown_frame frame,
                      const struct function *chain, size_t count)
{
    for (size_t i = 0; i + 1 < count; i++) {
        struct gos_shown_frame inlined = {.module = frame.module, .symbol = chain[i].name};
        add_frame(named, &inlined);
    }
    if (count > 0)
        name_frame(&frame, &chain[count - 1]);
    add_frame(named, &frame);
}

static bool name_stack(const struct helper *helper, struct gos_scratch *scratch,
                       const struct gos_module *module, struct gos_shown_stack *stack)
{
    static struct named named; /* too large for the stack */
    struct function chain[CHAIN_MAX];
    named.count = 0;
    for (uint32_t i = 0; i < stack->native_count; i++) {
        const struct gos_shown_frame *frame = &stack->native[i];
        size_t count = wants(frame, module) ? ask(helper, scratch, frame->offset, chain) : 0;
        add_named(&named, *frame, chain, count);
    }
    struct gos_shown_frame *frames =
        gos_scratch_alloc(scratch, named.count * sizeof named.frames[0]);
    if (!frames)
        return false;
    memcpy(frames, named.frames, named.count * sizeof named.frames[0]);
    stack->native = frames;
    stack->native_count = named.count;
    return true;
}

static bool is_wanted(const struct gos_shown_stack *stack, const struct gos_module *module)
{
    for (uint32_t i = 0; i < stack->native_count; i++) {
        if (wants(&stack->native[i], module))
            return true;
    }
    return false;
}

static bool any_wanted(const struct gos_loaded *loaded, const struct gos_module *module)
{
    const struct gos_stacks *stacks = &loaded->document.stacks;
    for (size_t i = 0; i < stacks->count; i++) {
        if (is_wanted(&stacks->stacks[i], module))
            return true;
    }
    return false;
}

static void name_frames(const struct helper *helper, struct gos_loaded *loaded,
                        const struct gos_module *module)
{
    struct gos_stacks *stacks = &loaded->document.stacks;
    for (size_t i = 0; i < stacks->count; i++) {
        if (is_wanted(&stacks->stacks[i], module) &&
            !name_stack(helper, &loaded->scratch, module, &stacks->stacks[i]))
            return;
    }
}

static void complain(const struct gos_module *module, int error)
{
    const char *path = module->path ? module->path : "(a module)";
    if (error == -ESTALE)
        gos_command_complain("%s is not the file that was loaded (another build id); its frames "
                             "stay as they are",
                             path);
    else
        gos_command_complain("%s cannot be opened (%s); its frames stay as they are", path,
                             strerror(-error));
}

static int name_module(struct gos_loaded *loaded, const struct gos_module *module)
{
    struct helper helper = {.pid = -1};
    if (!any_wanted(loaded, module))
        return 0;
    int error = gos_build_id_check(module);
    if (error != 0) {
        complain(module, error);
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
