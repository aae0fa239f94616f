#include "code_place.h"

#include <string.h>

#define PACKAGES "-packages/" /* site-packages, dist-packages */

static const char *file_of(const struct gos_python_frame *frame)
{
    return frame->file && frame->file[0] ? frame->file : "?";
}

/* Files that a compiler of Python programs wrote: torch's Inductor, Triton. */
static bool is_generated(const char *file)
{
    return strstr(file, "/torchinductor_") || strstr(file, "/.triton/");
}

bool gos_code_is_installed(const struct gos_python_frame *frame)
{
    const char *file = file_of(frame);
    return file[0] == '<' || strstr(file, PACKAGES) || strstr(file, "/lib/python3") ||
           is_generated(file);
}

static void put_frame(struct gos_text *text, const struct gos_python_frame *frame)
{
    gos_text_format(text, "%s:%d %s", gos_text_base_name(file_of(frame)), frame->line,
                    frame->function && frame->function[0] ? frame->function : "?");
}

static unsigned put_lines(struct gos_text *text, const struct gos_python_frame *frames,
                          uint32_t count, unsigned limit, bool installed)
{
    unsigned shown = 0;
    for (uint32_t i = 0; i < count && shown < limit; i++) {
        if (gos_code_is_installed(&frames[i]) != installed)
            continue;
        gos_text_put(text, shown++ > 0 ? " <- " : "");
        put_frame(text, &frames[i]);
    }
    return shown;
}

/* "torch: linear.py:116": the package is the folder, or the file, right below site-packages. */
static void put_package_line(struct gos_text *text, const struct gos_python_frame *frame)
{
    const char *package = strstr(file_of(frame), PACKAGES) + sizeof PACKAGES - 1;
    gos_text_format(text, " (%.*s: %s:%d)", (int)strcspn(package, "/."), package,
                    gos_text_base_name(package), frame->line);
}

/* The line of a package that the user's newest line led to. */
static void put_package(struct gos_text *text, const struct gos_python_frame *frames,
                        uint32_t count)
{
    for (uint32_t i = 0; i < count && gos_code_is_installed(&frames[i]); i++) {
        if (strstr(file_of(&frames[i]), PACKAGES)) {
            put_package_line(text, &frames[i]);
            return;
        }
    }
}

void gos_code_put_python(struct gos_text *text, const struct gos_python_frame *frames,
                         uint32_t count, unsigned limit)
{
    if (put_lines(text, frames, count, limit, false) > 0)
        put_package(text, frames, count);
    else
        put_lines(text, frames, count, limit, true);
}

static const struct gos_python_frame *next_own_line(const struct gos_site *site, uint32_t *at)
{
    while (*at < site->python_count && gos_code_is_installed(&site->python[*at]))
        ++*at;
    return *at < site->python_count ? &site->python[(*at)++] : NULL;
}

static bool is_same_line(const struct gos_python_frame *one, const struct gos_python_frame *other)
{
    return one->line == other->line && strcmp(file_of(one), file_of(other)) == 0;
}

bool gos_code_same_lines(const struct gos_site *one, const struct gos_site *other, unsigned limit)
{
    uint32_t at = 0;
    uint32_t other_at = 0;
    unsigned same = 0;
    while (same < limit) {
        const struct gos_python_frame *line = next_own_line(one, &at);
        const struct gos_python_frame *other_line = next_own_line(other, &other_at);
        if (!line && !other_line)
            break;
        if (!line || !other_line || !is_same_line(line, other_line))
            return false;
        same++;
    }
    return same > 0;
}

void gos_code_put_tag(struct gos_text *text, const char *tag)
{
    if (tag)
        gos_text_format(text, "%s[%s]", text->length > 0 ? " " : "", tag);
}
