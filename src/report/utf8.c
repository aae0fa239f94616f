#include "utf8.h"

#include <stdbool.h>
#include <string.h>

static bool continues(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

/* The second byte is where overlong forms, surrogates and too large values show. */
static bool second_byte_fits(unsigned char first, unsigned char second)
{
    switch (first) {
    case 0xe0:
        return second >= 0xa0;
    case 0xed:
        return second < 0xa0;
    case 0xf0:
        return second >= 0x90;
    case 0xf4:
        return second < 0x90;
    default:
        return true;
    }
}

static size_t length_by_first(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first >= 0xc2 && first <= 0xdf)
        return 2;
    if (first >= 0xe0 && first <= 0xef)
        return 3;
    if (first >= 0xf0 && first <= 0xf4)
        return 4;
    return 0;
}

size_t gos_utf8_length(const char *s)
{
    const unsigned char *bytes = (const unsigned char *)s;
    size_t length = length_by_first(bytes[0]);
    for (size_t i = 1; i < length; i++) {
        if (!continues(bytes[i]))
            return 0;
    }
    if (length > 2 && !second_byte_fits(bytes[0], bytes[1]))
        return 0;
    return length;
}

/* C1 controls (U+0080 to U+009F) are well-formed UTF-8 that terminals obey. */
static bool is_control(const unsigned char *s, size_t length)
{
    if (length == 1)
        return s[0] < 0x20 || s[0] == 0x7f;
    return length == 2 && s[0] == 0xc2 && s[1] < 0xa0;
}

size_t gos_utf8_printable(const char *s, char out[5])
{
    size_t length = gos_utf8_length(s);
    if (length == 0) {
        memcpy(out, "\xef\xbf\xbd", 4);
        return 1;
    }
    if (is_control((const unsigned char *)s, length)) {
        memcpy(out, "?", 2);
        return length;
    }
    memcpy(out, s, length);
    out[length] = '\0';
    return length;
}

size_t gos_utf8_columns(const char *s)
{
    size_t columns = 0;
    while (*s) {
        size_t length = gos_utf8_length(s);
        s += length ? length : 1;
        columns++;
    }
    return columns;
}
