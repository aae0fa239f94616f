#include "python_text.h"

#include <stddef.h>
#include <string.h>

#include "../base/memory.h"

/*
 * The state begins with whether the str is interned, in two bits, or in a byte
 * without the GIL from 3.14 on; that is at most 3.  Then come the bytes per
 * character, never 0, in three bits, and two flags.
 */
#define STATE_REST(state) ((state)&0xfc ? (state) >> 2 : (state) >> 8)
#define REST_KIND(rest) ((rest)&7)
#define REST_COMPACT (1u << 3)
#define REST_ASCII (1u << 4)

/* Longest name that is kept, in bytes of UTF-8. */
#define TEXT_MAX 1024
#define UTF8_MAX 4
#define REPLACEMENT 0xfffdu

static uint32_t character_at(const char *data, unsigned kind, size_t index)
{
    uint16_t two;
    uint32_t four;
    switch (kind) {
    case 1:
        return (uint8_t)data[index];
    case 2:
        memcpy(&two, data + index * 2, sizeof two);
        return two;
    default:
        memcpy(&four, data + index * 4, sizeof four);
        return four;
    }
}

/* Lone surrogates stand for undecodable bytes of a path; they have no UTF-8 of their own. */
static uint32_t presentable(uint32_t c)
{
    return c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff) ? REPLACEMENT : c;
}

static size_t put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t tail = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const uint8_t lead[] = {0, 0xc0, 0xe0, 0xf0};
    out[0] = (char)(lead[tail] | c >> (6 * tail));
    for (size_t i = 1; i <= tail; i++)
        out[i] = (char)(0x80 | (c >> (6 * (tail - i)) & 0x3f));
    return tail + 1;
}

static const char *convert(const char *data, unsigned kind, size_t length)
{
    char buffer[TEXT_MAX];
    size_t used = 0;
    for (size_t i = 0; i < length && used + UTF8_MAX <= sizeof buffer; i++)
        used += put_utf8(buffer + used, presentable(character_at(data, kind, i)));
    return gos_arena_intern(buffer, used);
}

struct gos_python_span gos_python_text_span(const struct gos_python_layout *layout,
                                            uintptr_t string)
{
    struct gos_python_span span = {.data = "", .kind = 1};
    uint64_t length;
    uint32_t state;
    memcpy(&length, (const char *)string + layout->text_length, sizeof length);
    memcpy(&state, (const char *)string + layout->text_state, sizeof state);
    uint32_t rest = STATE_REST(state);
    unsigned kind = REST_KIND(rest);
    if (!(rest & REST_COMPACT) || (kind != 1 && kind != 2 && kind != 4))
        return span;
    uint16_t start = rest & REST_ASCII ? layout->text_ascii : layout->text_compact;
    span.data = (const char *)string + start;
    span.length = length;
    span.kind = kind;
    return span;
}

const char *gos_python_text(const struct gos_python_layout *layout, uintptr_t string)
{
    struct gos_python_span span = {.length = 0};
    if (string)
        span = gos_python_text_span(layout, string);
    const char *text = span.length ? convert(span.data, span.kind, span.length) : NULL;
    return text ? text : "?";
}
