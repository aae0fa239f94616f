#include "cxx_name.h"

#include <stdbool.h>
#include <string.h>

/*
 * A reader of the Itanium ABI's mangling that understands as much as is needed to
 * find where a name's parts begin and end.  Each read_ function takes one piece of
 * the grammar off the front; what is read while `muted` is only stepped over.
 */
struct reader {
    const char *at;
    struct gos_text *out;
    unsigned muted;
    unsigned depth;
    bool failed;
    const char *last; /* the newest source name: constructors are called so */
    size_t last_length;
};

#define DEPTH_MAX 24
#define NAME_BYTES 256

static void read_type(struct reader *reader);
static void read_name(struct reader *reader);

static void fail(struct reader *reader)
{
    reader->failed = true;
}

static bool accept(struct reader *reader, char c)
{
    if (*reader->at != c)
        return false;
    reader->at++;
    return true;
}

static bool accept_both(struct reader *reader, const char *two)
{
    if (strncmp(reader->at, two, 2) != 0)
        return false;
    reader->at += 2;
    return true;
}

static void skip_all(struct reader *reader, const char *characters)
{
    reader->at += strspn(reader->at, characters);
}

static void put(struct reader *reader, const char *words, size_t length)
{
    if (!reader->muted)
        gos_text_put_n(reader->out, words, length);
}

static void put_string(struct reader *reader, const char *words)
{
    put(reader, words, strlen(words));
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

/* A sequence ends with E; what is in it is read by `read`. */
static void read_until_end(struct reader *reader, void (*read)(struct reader *))
{
    while (!reader->failed && !accept(reader, 'E')) {
        const char *before = reader->at;
        read(reader);
        if (reader->at == before)
            fail(reader);
    }
}

static void read_source_name(struct reader *reader)
{
    size_t length = 0;
    while (is_digit(*reader->at) && length < NAME_BYTES)
        length = length * 10 + (size_t)(*reader->at++ - '0');
    if (length == 0 || strnlen(reader->at, length) < length) {
        fail(reader);
        return;
    }
    bool is_nameless = strncmp(reader->at, "_GLOBAL__N", 10) == 0;
    put(reader, is_nameless ? "(anonymous)" : reader->at, is_nameless ? 11 : length);
    if (!reader->muted) {
        reader->last = reader->at;
        reader->last_length = length;
    }
    reader->at += length;
}

/* --- template arguments --- */

/* L <type> <value> E; a function's address has another form. */
static void read_literal(struct reader *reader)
{
    if (accept(reader, '_')) {
        fail(reader);
        return;
    }
    read_type(reader);
    skip_all(reader, "n0123456789");
    if (!accept(reader, 'E'))
        fail(reader);
}

static void read_argument(struct reader *reader)
{
    if (++reader->depth > DEPTH_MAX)
        fail(reader);
    else if (accept(reader, 'L'))
        read_literal(reader);
    else if (accept(reader, 'J'))
        read_until_end(reader, read_argument);
    else
        read_type(reader);
    reader->depth--;
}

static void read_arguments(struct reader *reader)
{
    if (!accept(reader, 'I'))
        return;
    reader->muted++;
    read_until_end(reader, read_argument);
    reader->muted--;
}

/* --- names --- */

static void read_operator(struct reader *reader)
{
    static const char names[][2][10] = {
        {"cl", "()"}, {"ix", "[]"}, {"aS", "="},    {"eq", "=="},     {"ls", "<<"},
        {"pl", "+"},  {"ml", "*"},  {"nw", " new"}, {"na", " new[]"}, {"dl", " delete"},
    };
    put_string(reader, "operator");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (accept_both(reader, names[i][0])) {
            put_string(reader, names[i][1]);
            return;
        }
    }
    if (accept_both(reader, "cv")) {
        reader->muted++;
        read_type(reader);
        reader->muted--;
        return;
    }
    put_string(reader, " ");
    put(reader, reader->at, 2);
    reader->at += 2;
}

/* Ul <types> E [number] _, or Ut [number] _ */
static void read_unnamed(struct reader *reader)
{
    bool is_lambda = accept(reader, 'l');
    put_string(reader, is_lambda ? "{lambda}" : "{unnamed}");
    reader->muted++;
    if (is_lambda)
        read_until_end(reader, read_type);
    else if (!accept(reader, 't'))
        fail(reader);
    reader->muted--;
    skip_all(reader, "0123456789");
    if (!accept(reader, '_'))
        fail(reader);
}

static void read_constructor(struct reader *reader, const char *prefix)
{
    skip_all(reader, "I");
    if (!is_digit(*reader->at) || !reader->last) {
        fail(reader);
        return;
    }
    reader->at++;
    put_string(reader, prefix);
    put(reader, reader->last, reader->last_length);
}

static void read_unqualified(struct reader *reader)
{
    skip_all(reader, "L"); /* not exported */
    if (is_digit(*reader->at))
        read_source_name(reader);
    else if (accept(reader, 'C'))
        read_constructor(reader, "");
    else if (accept(reader, 'D'))
        read_constructor(reader, "~");
    else if (accept(reader, 'U'))
        read_unnamed(reader);
    else if (is_lower(reader->at[0]) && reader->at[1])
        read_operator(reader);
    else
        fail(reader);
    while (!reader->failed && accept(reader, 'B')) { /* a tag: [abi:cxx11] */
        reader->muted++;
        read_source_name(reader);
        reader->muted--;
    }
}

/* S_, S0_ …: something that was named before, and stays unnamed here; Ss …: of std. */
static void read_substitution(struct reader *reader)
{
    static const char of_std[][2][18] = {
        {"t", "std"},          {"a", "std::allocator"}, {"b", "std::basic_string"},
        {"s", "std::string"},  {"i", "std::istream"},   {"o", "std::ostream"},
        {"d", "std::iostream"}};
    for (size_t i = 0; i < sizeof of_std / sizeof of_std[0]; i++) {
        if (accept(reader, of_std[i][0][0])) {
            put_string(reader, of_std[i][1]);
            return;
        }
    }
    skip_all(reader, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    if (!accept(reader, '_') || !reader->muted)
        fail(reader);
}

static void read_part(struct reader *reader)
{
    if (accept(reader, 'S'))
        read_substitution(reader);
    else if (accept(reader, 'T')) {
        skip_all(reader, "0123456789");
        if (!accept(reader, '_'))
            fail(reader);
    } else
        read_unqualified(reader);
    read_arguments(reader);
}

/* N [qualifiers] part… E */
static void read_nested(struct reader *reader)
{
    skip_all(reader, "rVK");
    skip_all(reader, "RO");
    for (bool is_first = true; !reader->failed && !accept(reader, 'E'); is_first = false) {
        put_string(reader, is_first ? "" : "::");
        read_part(reader);
    }
}

/* Z <function with its types> E <what is inside it> */
static void read_local(struct reader *reader)
{
    read_name(reader);
    reader->muted++;
    read_until_end(reader, read_type);
    reader->muted--;
    if (accept(reader, 's'))
        return; /* a string */
    if (accept(reader, 'd')) {
        skip_all(reader, "0123456789");
        if (!accept(reader, '_'))
            fail(reader);
    }
    put_string(reader, "::");
    read_name(reader);
}

static void read_name_within(struct reader *reader)
{
    if (accept(reader, 'N'))
        read_nested(reader);
    else if (accept(reader, 'Z'))
        read_local(reader);
    else if (accept_both(reader, "St")) {
        put_string(reader, "std::");
        read_unqualified(reader);
        read_arguments(reader);
    } else
        read_part(reader);
}

static void read_name(struct reader *reader)
{
    if (++reader->depth > DEPTH_MAX)
        fail(reader);
    if (!reader->failed)
        read_name_within(reader);
    reader->depth--;
}

/* --- types, which are only stepped over --- */

/* D…: types of two letters, and packs; those with expressions are not known. */
static void read_special_type(struct reader *reader)
{
    if (accept(reader, 'p'))
        read_type(reader);
    else if (*reader->at && strchr("acdefhinsu", *reader->at))
        reader->at++;
    else if (accept(reader, 'o'))
        read_type(reader);
    else
        fail(reader);
}

static void read_array(struct reader *reader)
{
    skip_all(reader, "0123456789");
    if (!accept(reader, '_'))
        fail(reader);
    read_type(reader);
}

static void read_type_within(struct reader *reader)
{
    skip_all(reader, "rVKPROCG");
    if (is_lower(*reader->at) && *reader->at != 'u')
        reader->at++;
    else if (accept(reader, 'D'))
        read_special_type(reader);
    else if (accept(reader, 'F')) {
        skip_all(reader, "Y");
        read_until_end(reader, read_type);
    } else if (accept(reader, 'A'))
        read_array(reader);
    else if (accept(reader, 'M')) {
        read_type(reader);
        read_type(reader);
    } else if (*reader->at == 'X' || *reader->at == 'U' || *reader->at == 'u')
        fail(reader);
    else
        read_name(reader);
}

static void read_type(struct reader *reader)
{
    if (++reader->depth > DEPTH_MAX)
        fail(reader);
    if (!reader->failed)
        read_type_within(reader);
    reader->depth--;
}

void gos_cxx_name_put(struct gos_text *text, const char *symbol)
{
    char buffer[NAME_BYTES];
    struct gos_text name = gos_text_on(buffer, sizeof buffer);
    struct reader reader = {.at = symbol, .out = &name};
    if (accept_both(&reader, "_Z"))
        read_name(&reader);
    else
        fail(&reader);
    gos_text_put(text, reader.failed || name.truncated ? symbol : buffer);
}
