/* Parts of the first screen that have a file of their own. */
#ifndef GOS_REPORT_SCREEN_PARTS_H
#define GOS_REPORT_SCREEN_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "../base/text.h"
#include "document.h"
#include "screen_lines.h"

#define GOS_SCREEN_WORDS 400 /* bytes of one entry before it is wrapped */

/* Not NULL and not empty. */
bool gos_screen_has_text(const char *string);

/* Nothing in front of the first piece. */
void gos_screen_separate(struct gos_text *text, const char *separator);

/*
 * Up to `limit` lines of code of a site, newest first: the user's own Python,
 * else any Python, else native frames, else "(no stack)"; then its tag.
 */
void gos_screen_place(struct gos_text *text, const struct gos_document *document, uint32_t site,
                      unsigned limit);

/*
 * The largest sites, or those that pin device blocks, at most three; with as many
 * lines of code as tell them apart.
 */
void gos_screen_sites(struct gos_screen *screen, const struct gos_document *document);

/* What was rehearsed; nothing when it was the real thing. */
void gos_screen_rehearsal(struct gos_screen *screen, const struct gos_document *document,
                          uint8_t importance);

/* That it is a draft, or was one: the line below the title. */
void gos_screen_standing(struct gos_screen *screen, const struct gos_document *document,
                         uint8_t importance);

/* When it was told, where that was not at once. */
void gos_screen_told(struct gos_screen *screen, const struct gos_document *document,
                     uint8_t importance);

/* One device's ledger; nothing when it is not known. */
void gos_screen_ledger(struct gos_screen *screen, const struct gos_document *document, int ordinal,
                       uint8_t importance);

#endif
