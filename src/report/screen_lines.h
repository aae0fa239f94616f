/*
 * The lines of the first screen: at most fifteen of at most eighty columns.
 * Lines are added with an importance; when there are too many, the least
 * important go, so no part needs to know what the others say.
 */
#ifndef GOS_REPORT_SCREEN_LINES_H
#define GOS_REPORT_SCREEN_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "../base/text.h"

#define GOS_SCREEN_LINES 15
#define GOS_SCREEN_COLUMNS 80
#define GOS_SCREEN_LABEL 11 /* columns of the label on the left */

/* Kept small: the screen lives on the stack of the host's failing thread. */
#define GOS_SCREEN_ROOM 26
#define GOS_SCREEN_LINE_BYTES 164

struct gos_screen {
    struct gos_screen_line {
        uint8_t importance; /* 1 … 10 */
        bool continues;     /* goes on where the line above broke */
        uint8_t columns;
        uint8_t length;
        char data[GOS_SCREEN_LINE_BYTES];
    } lines[GOS_SCREEN_ROOM];
    unsigned count;
};

/* An empty line. */
void gos_screen_gap(struct gos_screen *screen, uint8_t importance);

/* A line without a label, cut where it is too long. */
void gos_screen_line(struct gos_screen *screen, uint8_t importance, const char *words);

/*
 * Words under a label, wrapped between words into at most max_lines lines, each
 * one a little less important than the one before; "..." marks a cut.
 */
void gos_screen_add(struct gos_screen *screen, uint8_t importance, const char *label,
                    const char *words, unsigned max_lines);

/* Drop what is too much and print. */
void gos_screen_print(struct gos_screen *screen, struct gos_text *text);

#endif
