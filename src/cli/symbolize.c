#include "symbolize.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "debug_info.h"
#include "demangle.h"

/* "function at file:line", or the function alone; NULL without memory. */
static const char *describe(struct gos_scratch *scratch, const struct gos_function *function)
{
    char *text = NULL;
    const char *name = gos_demangled(scratch, function->name);
    if (!function->file)
        return gos_scratch_copy(scratch, name, strlen(name));
    int length = asprintf(&text, "%s at %s:%d", name, function->file, function->line);
    if (length < 0)
        return NULL;
    const char *copy = gos_scratch_copy(scratch, text, (size_t)length);
    free(text);
    return copy;
}

/* An exported name is kept unless the source line is known. */
static void name_frame(struct gos_shown_frame *frame, struct gos_scratch *scratch,
                       const struct gos_function *function)
{
    if (frame->symbol && !function->file)
        return;
    frame->symbol = describe(scratch, function);
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

static void add_named(struct named *named, struct gos_scratch *scratch,
                      struct gos_shown_frame frame, const struct gos_function *functions,
                      size_t count)
{
    for (size_t i = 0; i + 1 < count; i++) {
        struct gos_shown_frame inlined = {.module = frame.module};
        name_frame(&inlined, scratch, &functions[i]);
        add_frame(named, &inlined);
    }
    if (count > 0)
        name_frame(&frame, scratch, &functions[count - 1]);
    add_frame(named, &frame);
}

/* The byte before the return address belongs to the call. */
static bool name_stack(const struct gos_debug_info *info, struct gos_scratch *scratch,
                       const struct gos_module *module, struct gos_shown_stack *stack)
{
    static struct named named; /* too large for the stack */
    struct gos_function functions[GOS_FUNCTIONS_MAX];
    named.count = 0;
    for (uint32_t i = 0; i < stack->native_count; i++) {
        const struct gos_shown_frame *frame = &stack->native[i];
        size_t count =
            wants(frame, module) ? gos_debug_info_ask(info, frame->offset - 1, functions) : 0;
        add_named(&named, scratch, *frame, functions, count);
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

static void name_frames(const struct gos_debug_info *info, struct gos_loaded *loaded,
                        const struct gos_module *module)
{
    struct gos_stacks *stacks = &loaded->document.stacks;
    for (size_t i = 0; i < stacks->count; i++) {
        if (is_wanted(&stacks->stacks[i], module) &&
            !name_stack(info, &loaded->scratch, module, &stacks->stacks[i]))
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

static void name_module(struct gos_loaded *loaded, const struct gos_module *module)
{
    struct gos_debug_info info;
    if (!any_wanted(loaded, module))
        return;
    int error = gos_debug_info_open(&info, module);
    if (error == 0)
        name_frames(&info, loaded, module);
    else
        complain(module, error);
    gos_debug_info_close(&info);
}

int gos_symbolize(struct gos_loaded *loaded)
{
    const char *reason = gos_debug_info_load();
    if (reason) {
        gos_command_complain("--symbolize needs libdw (Debian: libdw1): %s", reason);
        return -ENOENT;
    }
    for (size_t i = 0; i < loaded->module_count; i++)
        name_module(loaded, &loaded->modules[i]);
    return 0;
}
