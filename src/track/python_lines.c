#include "python_lines.h"

#include <limits.h>

/* Pairs of (bytes of code, change of line); the change comes after the bytes. */
static int64_t line_by_lnotab(const uint8_t *table, size_t bytes, int firstline, uint32_t offset)
{
    uint32_t address = 0;
    int64_t line = firstline;
    for (size_t i = 0; i + 1 < bytes; i += 2) {
        address += table[i];
        if (address > offset)
            break;
        line += (int8_t)table[i + 1];
    }
    return line;
}

/* Pairs of (bytes of code, change of line); the change comes before; -128 means no line. */
static int64_t line_by_ranges(const uint8_t *table, size_t bytes, int firstline, uint32_t offset)
{
    const int8_t no_line = -128;
    uint32_t end = 0;
    int64_t line = firstline;
    for (size_t i = 0; i + 1 < bytes; i += 2) {
        int8_t change = (int8_t)table[i + 1];
        end += table[i];
        if (change != no_line)
            line += change;
        if (offset < end)
            return change == no_line ? firstline : line;
    }
    return line;
}

/*
 * Each entry of a location table starts with a byte that has the top bit set:
 * four bits of kind, three of (code units - 1).  What follows depends on the
 * kind; the bytes that follow have the top bit clear.
 */
enum location_kind {
    LOCATION_SHORT_LAST = 9, /* up to here: same line, columns packed */
    LOCATION_LINE_0 = 10,    /* 0, 1 or 2 lines further */
    LOCATION_LINE_2 = 12,
    LOCATION_NO_COLUMNS = 13,
    LOCATION_LONG = 14,
    LOCATION_NONE = 15,
};

#define BYTES_PER_UNIT 2

/* Signed number in groups of six bits, lowest first; bit 6 says that more follow. */
static int signed_number(const uint8_t *table, size_t bytes, size_t at)
{
    uint32_t value = 0;
    for (unsigned shift = 0; at < bytes && shift < 30; at++, shift += 6) {
        value |= (uint32_t)(table[at] & 0x3f) << shift;
        if (!(table[at] & 0x40))
            break;
    }
    int magnitude = (int)(value >> 1);
    return value & 1 ? -magnitude : magnitude;
}

static int line_change(unsigned kind, const uint8_t *table, size_t bytes, size_t after)
{
    if (kind == LOCATION_NO_COLUMNS || kind == LOCATION_LONG)
        return signed_number(table, bytes, after);
    if (kind >= LOCATION_LINE_0 && kind <= LOCATION_LINE_2)
        return (int)kind - LOCATION_LINE_0;
    return 0;
}

static size_t next_entry(const uint8_t *table, size_t bytes, size_t at)
{
    do
        at++;
    while (at < bytes && !(table[at] & 0x80));
    return at;
}

static int64_t line_by_locations(const uint8_t *table, size_t bytes, int firstline, uint32_t offset)
{
    uint32_t end = 0;
    int64_t line = firstline;
    for (size_t at = 0; at < bytes; at = next_entry(table, bytes, at)) {
        unsigned kind = table[at] >> 3 & 15;
        end += ((table[at] & 7u) + 1) * BYTES_PER_UNIT;
        line += line_change(kind, table, bytes, at + 1);
        if (offset < end)
            return kind == LOCATION_NONE ? firstline : line;
    }
    return line;
}

static int64_t find_line(enum gos_python_lines format, const uint8_t *table, size_t bytes,
                         int firstline, uint32_t offset)
{
    switch (format) {
    case GOS_PYTHON_LINES_LNOTAB:
        return line_by_lnotab(table, bytes, firstline, offset);
    case GOS_PYTHON_LINES_RANGES:
        return line_by_ranges(table, bytes, firstline, offset);
    case GOS_PYTHON_LINES_LOCATIONS:
        return line_by_locations(table, bytes, firstline, offset);
    }
    return firstline;
}

int gos_python_line(enum gos_python_lines format, const uint8_t *table, size_t bytes, int firstline,
                    uint32_t offset)
{
    int64_t line = find_line(format, table, bytes, firstline, offset);
    return line < 0 || line > INT_MAX ? firstline : (int)line;
}
