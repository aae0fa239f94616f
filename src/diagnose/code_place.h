/*
 * Places in Python code as the reader of a script would name them: by his own
 * lines, since these he can change; a line of an installed package comes
 * behind, in brackets.
 *
 *     train.py:88 step <- train.py:140 main (torch: linear.py:116)
 */
#ifndef GOS_DIAGNOSE_CODE_PLACE_H
#define GOS_DIAGNOSE_CODE_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "../base/text.h"
#include "../track/site.h"

/* Frames of one stack are shown until no other one reads the same, but not more than these. */
#define GOS_CODE_LINES_MAX 3

/* Installed packages, the standard library, what is frozen or was generated. */
bool gos_code_is_installed(const struct gos_python_frame *frame);

/* Up to `limit` lines, newest first; of installed code only if there is nothing else. */
void gos_code_put_python(struct gos_text *text, const struct gos_python_frame *frames,
                         uint32_t count, unsigned limit);

/*
 * Do both have their newest `limit` lines in common, of what is not installed
 * (or, with fewer, all that they have)?  Not without any.
 */
bool gos_code_same_lines(const struct gos_site *one, const struct gos_site *other, unsigned limit);

/* "[kv-cache]", after a space where something is there already; nothing for NULL. */
void gos_code_put_tag(struct gos_text *text, const char *tag);

#endif
