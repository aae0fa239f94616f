/* A place in code in a few words: "model.py:41 forward", or "libfoo.so.1 function". */
#include <string.h>

#include "../base/cxx_name.h"
#include "../diagnose/code_place.h"
#include "screen_parts.h"

bool gos_screen_has_text(const char *string)
{
    return string && string[0];
}

static void put_native(struct gos_text *text, const struct gos_shown_frame *frame)
{
    gos_text_put(text, frame->module->name);
    if (frame->symbol) {
        gos_text_put(text, " ");
        gos_cxx_name_put(text, frame->symbol);
    } else
        gos_text_format(text, "+0x%llx", (unsigned long long)frame->offset);
}

/* These are on every stack and explain none; generated code has no name to show. */
static bool is_plumbing(const struct gos_shown_frame *frame)
{
    static const char *const names[] = {"libcudart", "libcuda.so", "libc.so", "libc-2",
                                        "libpthread"};
    if (!frame->module)
        return true;
    const char *name = frame->module->name;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strncmp(name, names[i], strlen(names[i])) == 0)
            return true;
    }
    return gos_frame_is_noise(frame);
}

static void put_native_lines(struct gos_text *text, const struct gos_shown_stack *stack,
                             unsigned limit)
{
    unsigned shown = 0;
    for (uint32_t i = 0; i < stack->native_count && shown < limit; i++) {
        if (is_plumbing(&stack->native[i]))
            continue;
        if (shown++ > 0)
            gos_text_put(text, " <- ");
        put_native(text, &stack->native[i]);
    }
}

void gos_screen_place(struct gos_text *text, const struct gos_document *document, uint32_t site,
                      unsigned limit)
{
    const struct gos_shown_stack *stack = gos_stacks_find(&document->stacks, site);
    if (!stack) {
        gos_text_put(text, "(no stack)");
        return;
    }
    size_t before = text->length;
    if (stack->python_count > 0)
        gos_code_put_python(text, stack->python, stack->python_count, limit);
    else
        put_native_lines(text, stack, limit);
    gos_code_put_tag(text, stack->tag);
    if (text->length == before)
        gos_text_put(text, "(no stack)");
}
