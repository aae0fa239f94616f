#include "log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "options.h"
#include "stderr.h"
#include "text.h"

#define LINE_BYTES 1024
#define PREFIX "gpuoomshim: "

static _Atomic uint64_t lines;

/* One write(2) a line, so that lines of several threads and processes do not mix. */
static void put_line(struct gos_text *line)
{
    static const char dots[] = {'.', '.', '.'};

    if (line->truncated)
        memcpy(line->data + line->length - sizeof(dots), dots, sizeof(dots));
    line->data[line->length++] = '\n';
    (void)gos_stderr_write(line->data, line->length); /* there is nobody to tell */
}

static void put_last_line(void)
{
    static const char last[] = PREFIX "further lines are left out\n";

    (void)gos_stderr_write(last, sizeof(last) - 1);
}

void gos_log(enum gos_log_level level, const char *format, ...)
{
    char buffer[LINE_BYTES];
    struct gos_text line = gos_text_on(buffer, sizeof(buffer) - 1); /* room for the newline */
    uint64_t before;
    va_list args;

    if ((uint32_t)level > gos_options.log)
        return;
    before = atomic_fetch_add_explicit(&lines, 1, memory_order_relaxed);
    if (before == GOS_LOG_CAP)
        put_last_line();
    if (before >= GOS_LOG_CAP)
        return;
    gos_text_put(&line, PREFIX);
    va_start(args, format);
    gos_text_vformat(&line, format, args);
    va_end(args);
    put_line(&line);
}
