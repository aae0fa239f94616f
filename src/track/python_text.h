/* Text of a Python str, read from memory: compact ones, as UTF-8. */
#ifndef GOS_TRACK_PYTHON_TEXT_H
#define GOS_TRACK_PYTHON_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "python_layout.h"

/* The characters of a str where they lie; nothing of a str that is not compact. */
struct gos_python_span {
    const char *data;
    size_t length; /* in characters */
    unsigned kind; /* bytes per character: 1, 2, 4 */
};
struct gos_python_span gos_python_text_span(const struct gos_python_layout *layout,
                                            uintptr_t string);

/*
 * A permanent copy of the str at that address; overlong text is cut at a
 * character.  "?" where it is not a compact str or memory ran out; never NULL.
 * Hook context: yes.
 */
const char *gos_python_text(const struct gos_python_layout *layout, uintptr_t string);

#endif
