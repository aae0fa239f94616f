/*
 * From a position in bytecode to a line, through the tables that CPython
 * compiles next to it.  Pure functions over bytes; a damaged table gives some
 * line, never a read outside.
 */
#ifndef GOS_TRACK_PYTHON_LINES_H
#define GOS_TRACK_PYTHON_LINES_H

#include <stddef.h>
#include <stdint.h>

enum gos_python_lines {
    GOS_PYTHON_LINES_LNOTAB,    /* up to 3.9 */
    GOS_PYTHON_LINES_RANGES,    /* 3.10: PEP 626 */
    GOS_PYTHON_LINES_LOCATIONS, /* from 3.11: PEP 657 */
};

/*
 * The line of the instruction at `offset` bytes of a code object that starts
 * at `firstline`; firstline itself where the table gives no line.
 */
int gos_python_line(enum gos_python_lines format, const uint8_t *table, size_t bytes, int firstline,
                    uint32_t offset);

#endif
