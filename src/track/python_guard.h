/* Telling a code object from another one that later took its address. */
#ifndef GOS_TRACK_PYTHON_GUARD_H
#define GOS_TRACK_PYTHON_GUARD_H

#include <stdint.h>

#include "python_layout.h"

/*
 * A number that code objects with other names, files or first lines do not
 * share, as far as 32 bits can tell.  `code` is the address of a live one.  Only
 * for versions without code_version, which is exact and cheaper.
 * Hook context: yes; reads a few words.
 */
uint32_t gos_python_guard(const struct gos_python_layout *layout, uintptr_t code);

#endif
