/* That a failure was told only when the process ended, and when it failed. */
#include "screen_parts.h"

void gos_screen_told(struct gos_screen *screen, const struct gos_document *document,
                     uint8_t importance)
{
    const struct gos_evidence *evidence = document->report->diagnosis->evidence;
    char buffer[GOS_SCREEN_WORDS];
    struct gos_text text = gos_text_on(buffer, sizeof buffer);

    if (evidence->told_wall_ns == 0)
        return;
    gos_text_put(&text, "at exit, ");
    gos_text_time_of_day(&text, evidence->told_wall_ns);
    gos_text_put(&text, ", for a failure at ");
    gos_text_time_of_day(&text, evidence->request.wall_ns);
    gos_text_put(&text,
                 evidence->is_of_telling ? "; memory as of the exit" : ": nothing answered it");
    gos_screen_add(screen, importance, "written", buffer, 2);
}
