#include "emitter.h"

#include <string.h>

#include "../base/text.h"
#include "utf8.h"

#define TITLE_COLUMNS 28

static void put(struct gos_emitter *emitter, const char *string)
{
    gos_sink_put(emitter->sink, string, strlen(string));
}

static void put_spaces(struct gos_emitter *emitter, size_t count)
{
    static const char spaces[] = "                                ";
    while (count > 0) {
        size_t part = count < sizeof spaces - 1 ? count : sizeof spaces - 1;
        gos_sink_put(emitter->sink, spaces, part);
        count -= part;
    }
}

void gos_emitter_init(struct gos_emitter *emitter, enum gos_form form, struct gos_sink *sink)
{
    memset(emitter, 0, sizeof *emitter);
    emitter->form = form;
    emitter->sink = sink;
}

bool gos_emitter_is_text(const struct gos_emitter *emitter)
{
    return emitter->form == GOS_FORM_TEXT;
}

/* --- strings --- */

static void put_json_escape(struct gos_emitter *emitter, unsigned char c)
{
    static const char short_forms[] = "\b\f\n\r\t\"\\";
    static const char letters[] = "bfnrt\"\\";
    const char *found = memchr(short_forms, c, sizeof short_forms - 1);
    char buffer[8];
    struct gos_text text = gos_text_on(buffer, sizeof buffer);
    if (found)
        gos_text_format(&text, "\\%c", letters[found - short_forms]);
    else
        gos_text_format(&text, "\\u%04x", (unsigned)c);
    gos_sink_put(emitter->sink, buffer, text.length);
}

static bool is_control(unsigned char c)
{
    return c < 0x20 || c == 0x7f;
}

static bool is_plain(const struct gos_emitter *emitter, unsigned char c)
{
    if (is_control(c) || c >= 0x80)
        return false;
    return emitter->form == GOS_FORM_TEXT || (c != '"' && c != '\\');
}

static size_t put_special(struct gos_emitter *emitter, const char *s)
{
    char printable[5];
    size_t length = gos_utf8_length(s);
    size_t consumed = gos_utf8_printable(s, printable);
    if (gos_emitter_is_text(emitter) || length == 0)
        put(emitter, printable);
    else if (length == 1)
        put_json_escape(emitter, (unsigned char)*s);
    else
        gos_sink_put(emitter->sink, s, length);
    return consumed;
}

static void put_safe(struct gos_emitter *emitter, const char *s)
{
    while (*s) {
        size_t plain = 0;
        while (s[plain] && is_plain(emitter, (unsigned char)s[plain]))
            plain++;
        gos_sink_put(emitter->sink, s, plain);
        s += plain;
        if (*s)
            s += put_special(emitter, s);
    }
}

static void put_quoted(struct gos_emitter *emitter, const char *s)
{
    put(emitter, "\"");
    put_safe(emitter, s);
    put(emitter, "\"");
}

/* --- nesting --- */

static void put_line_break(struct gos_emitter *emitter)
{
    put(emitter, "\n");
    put_spaces(emitter, emitter->depth);
}

/* Comma, line break and key in front of a JSON value. */
static void lead_in(struct gos_emitter *emitter, const char *key)
{
    bool *has_items = &emitter->has_items[emitter->depth];
    if (*has_items)
        put(emitter, emitter->row_depth ? ", " : ",");
    if (!emitter->row_depth && emitter->depth > 0)
        put_line_break(emitter);
    *has_items = true;
    if (key) {
        put_quoted(emitter, key);
        put(emitter, ": ");
    }
}

static void nest(struct gos_emitter *emitter, const char *key, bool array)
{
    if (gos_emitter_is_text(emitter) || emitter->depth + 1 >= GOS_EMITTER_DEPTH_MAX)
        return;
    lead_in(emitter, key);
    put(emitter, array ? "[" : "{");
    emitter->depth++;
    emitter->is_array[emitter->depth] = array;
    emitter->has_items[emitter->depth] = false;
}

void gos_emitter_object(struct gos_emitter *emitter, const char *key)
{
    nest(emitter, key, false);
}

void gos_emitter_array(struct gos_emitter *emitter, const char *key)
{
    nest(emitter, key, true);
}

void gos_emitter_end(struct gos_emitter *emitter)
{
    if (gos_emitter_is_text(emitter) || emitter->depth == 0)
        return;
    bool array = emitter->is_array[emitter->depth];
    bool had_items = emitter->has_items[emitter->depth];
    emitter->depth--;
    if (had_items && !emitter->row_depth)
        put_line_break(emitter);
    put(emitter, array ? "]" : "}");
    if (emitter->depth == 0)
        put(emitter, "\n");
}

void gos_emitter_row(struct gos_emitter *emitter, const char *key)
{
    gos_emitter_object(emitter, key);
    if (emitter->row_depth == 0)
        emitter->row_depth = emitter->depth + 1;
}

/* A row inside a row (a frame of a stack) does not end the outer one's line. */
void gos_emitter_row_end(struct gos_emitter *emitter)
{
    if (gos_emitter_is_text(emitter))
        put(emitter, "\n");
    bool outermost = emitter->row_depth == emitter->depth + 1;
    gos_emitter_end(emitter);
    if (outermost)
        emitter->row_depth = 0;
}

/* --- text only --- */

static void put_formatted_line(struct gos_emitter *emitter, const char *format, va_list args)
{
    char buffer[512];
    struct gos_text text = gos_text_on(buffer, sizeof buffer);
    gos_text_vformat(&text, format, args);
    put_safe(emitter, buffer);
    put(emitter, "\n");
}

void gos_emitter_heading(struct gos_emitter *emitter, const char *format, ...)
{
    if (!gos_emitter_is_text(emitter))
        return;
    put(emitter, "\n");
    va_list args;
    va_start(args, format);
    put_formatted_line(emitter, format, args);
    va_end(args);
}

void gos_emitter_line(struct gos_emitter *emitter, const char *format, ...)
{
    if (!gos_emitter_is_text(emitter))
        return;
    va_list args;
    va_start(args, format);
    put_formatted_line(emitter, format, args);
    va_end(args);
}

static void put_cell(struct gos_emitter *emitter, const char *value, int width)
{
    size_t columns = gos_utf8_columns(value);
    size_t wanted = (size_t)(width < 0 ? -width : width);
    size_t padding = wanted > columns ? wanted - columns : 0;
    put(emitter, "  ");
    if (width > 0)
        put_spaces(emitter, padding);
    put_safe(emitter, value);
    if (width < 0)
        put_spaces(emitter, padding);
}

void gos_emitter_titles(struct gos_emitter *emitter, const struct gos_field *fields, size_t count)
{
    if (!gos_emitter_is_text(emitter))
        return;
    for (size_t i = 0; i < count; i++) {
        if (fields[i].title)
            put_cell(emitter, fields[i].title, fields[i].width);
    }
    put(emitter, "\n");
}

static void put_titled(struct gos_emitter *emitter, const char *title, const char *value)
{
    put_cell(emitter, title, -TITLE_COLUMNS);
    put(emitter, "  ");
    put_safe(emitter, value);
    put(emitter, "\n");
}

static void put_text_value(struct gos_emitter *emitter, const struct gos_field *field,
                           const char *value)
{
    if (!field->title)
        return;
    if (emitter->row_depth)
        put_cell(emitter, value, field->width);
    else
        put_titled(emitter, field->title, value);
}

/* --- values --- */

/* Numbers, null and booleans: JSON as written, text perhaps in other words. */
static void put_value(struct gos_emitter *emitter, const struct gos_field *field, const char *json,
                      const char *text)
{
    if (gos_emitter_is_text(emitter)) {
        put_text_value(emitter, field, text);
    } else if (field->key) {
        lead_in(emitter, field->key);
        put(emitter, json);
    }
}

void gos_emitter_string(struct gos_emitter *emitter, const struct gos_field *field,
                        const char *value)
{
    if (!value) {
        gos_emitter_null(emitter, field);
    } else if (gos_emitter_is_text(emitter)) {
        put_text_value(emitter, field, value);
    } else if (field->key) {
        lead_in(emitter, field->key);
        put_quoted(emitter, value);
    }
}

void gos_emitter_count(struct gos_emitter *emitter, const struct gos_field *field, uint64_t value)
{
    char buffer[24];
    struct gos_text text = gos_text_on(buffer, sizeof buffer);
    gos_text_format(&text, "%llu", (unsigned long long)value);
    put_value(emitter, field, buffer, buffer);
}

void gos_emitter_handle(struct gos_emitter *emitter, const struct gos_field *field, uint64_t handle)
{
    char json[24];
    char words[24];
    struct gos_text number = gos_text_on(json, sizeof json);
    struct gos_text text = gos_text_on(words, sizeof words);
    gos_text_format(&number, "%llu", (unsigned long long)handle);
    gos_text_format(&text, "0x%llx", (unsigned long long)handle);
    put_value(emitter, field, json, words);
}

void gos_emitter_signed(struct gos_emitter *emitter, const struct gos_field *field, int64_t value)
{
    char buffer[24];
    struct gos_text text = gos_text_on(buffer, sizeof buffer);
    gos_text_format(&text, "%lld", (long long)value);
    put_value(emitter, field, buffer, buffer);
}

void gos_emitter_bool(struct gos_emitter *emitter, const struct gos_field *field, bool value)
{
    put_value(emitter, field, value ? "true" : "false", value ? "yes" : "no");
}

void gos_emitter_null(struct gos_emitter *emitter, const struct gos_field *field)
{
    put_value(emitter, field, "null", "-");
}

void gos_emitter_bytes(struct gos_emitter *emitter, const struct gos_field *field, uint64_t bytes)
{
    char json[24];
    char words[64];
    struct gos_text number = gos_text_on(json, sizeof json);
    struct gos_text text = gos_text_on(words, sizeof words);
    gos_text_format(&number, "%llu", (unsigned long long)bytes);
    gos_text_bytes(&text, bytes);
    if (!emitter->row_depth && bytes >= 1024)
        gos_text_format(&text, " (%llu)", (unsigned long long)bytes);
    put_value(emitter, field, json, words);
}

void gos_emitter_bytes_if(struct gos_emitter *emitter, const struct gos_field *field, bool known,
                          uint64_t bytes)
{
    if (known)
        gos_emitter_bytes(emitter, field, bytes);
    else
        gos_emitter_null(emitter, field);
}

void gos_emitter_duration(struct gos_emitter *emitter, const struct gos_field *field, uint64_t ns)
{
    char json[24];
    char words[32];
    struct gos_text number = gos_text_on(json, sizeof json);
    struct gos_text text = gos_text_on(words, sizeof words);
    gos_text_format(&number, "%llu", (unsigned long long)ns);
    gos_text_duration(&text, ns);
    put_value(emitter, field, json, words);
}

void gos_emitter_time(struct gos_emitter *emitter, const struct gos_field *field, uint64_t wall_ns)
{
    char json[24];
    char words[32];
    struct gos_text number = gos_text_on(json, sizeof json);
    struct gos_text text = gos_text_on(words, sizeof words);
    gos_text_format(&number, "%llu", (unsigned long long)wall_ns);
    gos_text_time(&text, wall_ns);
    put_value(emitter, field, json, words);
}

void gos_emitter_item(struct gos_emitter *emitter, const char *value)
{
    if (gos_emitter_is_text(emitter)) {
        put(emitter, "  - ");
        put_safe(emitter, value);
        put(emitter, "\n");
    } else {
        lead_in(emitter, NULL);
        put_quoted(emitter, value);
    }
}

void gos_emitter_number_item(struct gos_emitter *emitter, uint64_t value)
{
    char buffer[24];
    struct gos_text text = gos_text_on(buffer, sizeof buffer);
    if (gos_emitter_is_text(emitter))
        return;
    gos_text_format(&text, "%llu", (unsigned long long)value);
    lead_in(emitter, NULL);
    put(emitter, buffer);
}
