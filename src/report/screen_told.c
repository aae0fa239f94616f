/* That a failure was not told when it failed, and how it comes to be here. */
#include "screen_parts.h"

void gos_screen_told(struct gos_screen *screen, const struct gos_document *document,
                     uint8_t importance)
{
    const struct gos_evidence *evidence = document->report->diagnosis->evidence;
    char buffer[GOS_SCREEN_WORDS];
    struct gos_text text = gos_text_on(buffer, sizeof buffer);

    if (evidence->told_wall_ns == 0)
        return;
    gos_text_put(&text, "later, ");
    gos_text_time_of_day(&text, evidence->told_wall_ns);
    gos_text_put(&text, ", of a refusal at ");
    gos_text_time_of_day(&text, evidence->request.wall_ns);
    gos_text_put(&text, evidence->is_of_earlier ? "; memory as of an earlier one"
                                                : ": nothing answered it");
    gos_screen_add(screen, importance, "written", buffer, 2);
}

void gos_document_found_field(struct gos_text *text, uint64_t found_wall_ns)
{
    gos_text_format(text, "\"found_wall_ns\": %llu", (unsigned long long)found_wall_ns);
}

void gos_document_found_line(struct gos_text *text, uint64_t found_wall_ns)
{
    gos_text_put(text, "found      ");
    gos_text_time(text, found_wall_ns);
    gos_text_put(text, ", by a later start: its process had ended");
}

void gos_screen_standing(struct gos_screen *screen, const struct gos_document *document,
                         uint8_t importance)
{
    static const char *const words[] = {
        [GOS_STANDING_DRAFT] = "its process still runs, and may survive this yet",
        [GOS_STANDING_LEFT] = "its process ended before it could tell this",
        [GOS_STANDING_ELSEWHERE] = "whether its process still runs cannot be told from here",
    };
    char line[GOS_SCREEN_COLUMNS + 1];
    struct gos_text text = gos_text_on(line, sizeof line);

    if (document->found_wall_ns)
        gos_document_found_line(&text, document->found_wall_ns);
    else if (document->standing != GOS_STANDING_TOLD)
        gos_text_format(&text, GOS_DOCUMENT_DRAFT_LINE "%s", words[document->standing]);
    if (text.length > 0)
        gos_screen_line(screen, importance, line);
}
