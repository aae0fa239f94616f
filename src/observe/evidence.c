#include "evidence.h"

#include <stdarg.h>
#include <string.h>

#include "../base/text.h"

#define LINE_BYTES 256

/* Its place, or the count. */
static size_t find(const struct gos_evidence *evidence, const char *line)
{
    size_t i = 0;

    while (i < evidence->incomplete_count && strcmp(evidence->incomplete[i], line) != 0)
        i++;
    return i;
}

void gos_evidence_incomplete(struct gos_evidence *evidence, const char *line)
{
    const size_t room = sizeof(evidence->incomplete) / sizeof(evidence->incomplete[0]);

    if (line != NULL && evidence->incomplete_count < room &&
        find(evidence, line) == evidence->incomplete_count)
        evidence->incomplete[evidence->incomplete_count++] = line;
}

void gos_evidence_complete(struct gos_evidence *evidence, const char *line)
{
    size_t at = find(evidence, line);

    if (at == evidence->incomplete_count)
        return;
    evidence->incomplete_count--;
    memmove(&evidence->incomplete[at], &evidence->incomplete[at + 1],
            (evidence->incomplete_count - at) * sizeof(evidence->incomplete[0]));
}

void gos_evidence_incomplete_format(struct gos_evidence *evidence, const char *format, ...)
{
    char buffer[LINE_BYTES];
    struct gos_text text = gos_text_on(buffer, sizeof(buffer));
    const char *copy;
    va_list args;

    va_start(args, format);
    gos_text_vformat(&text, format, args);
    va_end(args);
    copy = gos_scratch_copy(&evidence->scratch, text.data, text.length);
    gos_evidence_incomplete(evidence, copy != NULL ? copy : "more (no memory to say what)");
}

const struct gos_framework_evidence *gos_framework_find(const struct gos_evidence *evidence,
                                                        const char *name, uint32_t device)
{
    for (size_t i = 0; i < evidence->framework_count; i++)
        if (evidence->frameworks[i].device == device &&
            strcmp(evidence->frameworks[i].name, name) == 0)
            return &evidence->frameworks[i];
    return NULL;
}
