/*
 * The first screen of a report: what happened, why, who, what was done, what
 * to do, in at most fifteen lines of eighty columns, fit for pasting into an
 * issue.  Lines that would say nothing are left out.
 */
#ifndef GOS_REPORT_SCREEN_H
#define GOS_REPORT_SCREEN_H

#include "../base/text.h"
#include "document.h"

/* Pure; needs about 3 KiB of room. */
void gos_screen_write(const struct gos_document *document, struct gos_text *text);

#endif
