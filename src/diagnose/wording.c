#include "wording.h"

#include <stdarg.h>

#include "../base/text.h"

static const char *keep(struct gos_evidence *evidence, const struct gos_text *text)
{
    const char *copy = gos_scratch_copy(&evidence->scratch, text->data, text->length);
    return copy ? copy : "";
}

const char *gos_wording(struct gos_evidence *evidence, const char *format, ...)
{
    char buffer[GOS_WORDING_MAX];
    struct gos_text text = gos_text_on(buffer, sizeof(buffer));
    va_list args;
    va_start(args, format);
    gos_text_vformat(&text, format, args);
    va_end(args);
    return keep(evidence, &text);
}

const char *gos_wording_bytes(struct gos_evidence *evidence, uint64_t bytes)
{
    char buffer[32];
    struct gos_text text = gos_text_on(buffer, sizeof(buffer));
    gos_text_bytes(&text, bytes);
    return keep(evidence, &text);
}

const char *gos_wording_count(struct gos_evidence *evidence, uint64_t count, const char *noun)
{
    return gos_wording(evidence, "%llu %s%s", (unsigned long long)count, noun,
                       count == 1 ? "" : "s");
}
