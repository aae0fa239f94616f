/*
 * One set of calls, two forms: text for people, JSON for programs.
 *
 * A field bears both of its names: `key` for JSON and `title` for text; where
 * one is NULL, that form leaves the field out.  So whoever walks a document
 * describes each value once, and the two forms cannot disagree.
 *
 *   in an object     JSON "key": value          text   title ....... value
 *   in a row         JSON {"key": value, …}     text   aligned cells of one line
 *
 * Strings are made safe on the way: what is not UTF-8 becomes U+FFFD; text has
 * '?' for control characters, so that a file name cannot drive a terminal.
 * Hook context: yes.
 */
#ifndef GOS_REPORT_EMITTER_H
#define GOS_REPORT_EMITTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sink.h"

enum gos_form { GOS_FORM_TEXT, GOS_FORM_JSON };

#define GOS_EMITTER_DEPTH_MAX 16

struct gos_emitter {
    enum gos_form form;
    struct gos_sink *sink;
    unsigned depth;
    unsigned row_depth; /* depth at which a one-line object began, 0 none */
    bool is_array[GOS_EMITTER_DEPTH_MAX];
    bool has_items[GOS_EMITTER_DEPTH_MAX];
};

/* width: columns in a row, negative for left-aligned, 0 for the last cell. */
struct gos_field {
    const char *key;
    const char *title;
    int width;
};

/* A field in place, where no table of fields needs it. */
#define GOS_FIELD(key, title) (&(const struct gos_field){(key), (title), 0})

void gos_emitter_init(struct gos_emitter *emitter, enum gos_form form, struct gos_sink *sink);
bool gos_emitter_is_text(const struct gos_emitter *emitter);

/* Nesting; text has none.  key is NULL inside an array and at the top. */
void gos_emitter_object(struct gos_emitter *emitter, const char *key);
void gos_emitter_array(struct gos_emitter *emitter, const char *key);
void gos_emitter_end(struct gos_emitter *emitter);

/* An object that stays on one line in both forms, with all that it contains. */
void gos_emitter_row(struct gos_emitter *emitter, const char *key);
void gos_emitter_row_end(struct gos_emitter *emitter);

/* Text only: an empty line and a heading; a line; the titles above rows. */
__attribute__((format(printf, 2, 3))) void gos_emitter_heading(struct gos_emitter *emitter,
                                                               const char *format, ...);
__attribute__((format(printf, 2, 3))) void gos_emitter_line(struct gos_emitter *emitter,
                                                            const char *format, ...);
void gos_emitter_titles(struct gos_emitter *emitter, const struct gos_field *fields, size_t count);

/* Values.  A NULL string is null; text has '-' for null. */
void gos_emitter_string(struct gos_emitter *emitter, const struct gos_field *field,
                        const char *value);
void gos_emitter_count(struct gos_emitter *emitter, const struct gos_field *field, uint64_t value);
void gos_emitter_signed(struct gos_emitter *emitter, const struct gos_field *field, int64_t value);
void gos_emitter_bool(struct gos_emitter *emitter, const struct gos_field *field, bool value);
void gos_emitter_null(struct gos_emitter *emitter, const struct gos_field *field);
/* A number that is a name (stream, pool): plain in JSON, hexadecimal in text. */
void gos_emitter_handle(struct gos_emitter *emitter, const struct gos_field *field,
                        uint64_t handle);
/* JSON has the plain integer; text has "4.00 GiB", and outside rows the exact value too. */
void gos_emitter_bytes(struct gos_emitter *emitter, const struct gos_field *field, uint64_t bytes);
/* null unless known. */
void gos_emitter_bytes_if(struct gos_emitter *emitter, const struct gos_field *field, bool known,
                          uint64_t bytes);
/* JSON has nanoseconds; text has "412 ms". */
void gos_emitter_duration(struct gos_emitter *emitter, const struct gos_field *field, uint64_t ns);
/* JSON has nanoseconds since 1970; text has "2026-11-30 03:12:44 UTC". */
void gos_emitter_time(struct gos_emitter *emitter, const struct gos_field *field, uint64_t wall_ns);

/* An element of an array of strings; text has a line of its own with a dash. */
void gos_emitter_item(struct gos_emitter *emitter, const char *value);
/* JSON only: an element of an array of whole numbers. */
void gos_emitter_number_item(struct gos_emitter *emitter, uint64_t value);

#endif
