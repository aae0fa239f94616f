#include "options.h"

#include <errno.h>
#include <string.h>

#include "log.h"
#include "memory.h"
#include "spelling.h"
#include "text.h"

#define PREFIX "GPUOOMSHIM_"
#define PREFIX_LENGTH (sizeof(PREFIX) - 1)
#define NAME_MAX_LENGTH 32
#define VALUE_SHOWN 64

const struct gos_option_row gos_option_rows[] = {
#define OPTION(field, name, type, fallback, values, help)                                          \
    {#name, GOS_OPTION_##type, fallback, values, help, offsetof(struct gos_options, field)},
#include "options.def"
#undef OPTION
};

const size_t gos_option_row_count = sizeof(gos_option_rows) / sizeof(gos_option_rows[0]);

struct gos_options gos_options;

/* --- one value ---------------------------------------------------------------------------- */

static int parse_flag(const char *value, bool *flag)
{
    static const char *const words[][2] = {
        {"0", "1"}, {"no", "yes"}, {"off", "on"}, {"false", "true"}};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        for (size_t is_on = 0; is_on <= 1; is_on++) {
            if (gos_text_is_word(value, strlen(value), words[i][is_on])) {
                *flag = is_on;
                return 0;
            }
        }
    }
    return -EINVAL;
}

/* A row's values may be a range, "1 to 64"; "a number" is any. */
static bool is_in_range(uint64_t count, const char *values)
{
    static const char to[] = " to ";
    uint64_t low, high;
    int error;
    const char *rest = gos_text_parse_digits(values, &low, &error);

    if (!rest || strncmp(rest, to, sizeof(to) - 1) != 0)
        return true;
    if (!gos_text_parse_digits(rest + sizeof(to) - 1, &high, &error))
        return true;
    return count >= low && count <= high;
}

static int parse_count(const char *value, const char *values, uint64_t *count)
{
    uint64_t parsed;
    int error;
    const char *rest = gos_text_parse_digits(value, &parsed, &error);

    if (!rest)
        return error;
    if (*rest != '\0')
        return -EINVAL;
    if (!is_in_range(parsed, values))
        return -ERANGE;
    *count = parsed;
    return 0;
}

/* Number of the word in "a|b|c", or -EINVAL. */
static int find_word(const char *values, const char *word, size_t length)
{
    char known[NAME_MAX_LENGTH];

    for (int i = 0; *values; i++) {
        size_t known_length = strcspn(values, "|");
        struct gos_text text = gos_text_on(known, sizeof(known));

        gos_text_put_n(&text, values, known_length);
        if (gos_text_is_word(word, length, known))
            return i;
        values += known_length + (values[known_length] == '|');
    }
    return -EINVAL;
}

static int parse_choice(const char *value, const char *values, uint32_t *choice)
{
    int index = find_word(values, value, strlen(value));

    if (index < 0)
        return index;
    *choice = (uint32_t)index;
    return 0;
}

static bool is_none(const char *value)
{
    size_t length = strlen(value);

    return gos_text_is_word(value, length, "off") || gos_text_is_word(value, length, "none");
}

static int parse_size(const char *value, uint64_t *bytes)
{
    if (!is_none(value))
        return gos_text_parse_bytes(value, bytes);
    *bytes = 0;
    return 0;
}

static int parse_duration(const char *value, uint64_t *ns)
{
    if (!is_none(value))
        return gos_text_parse_duration(value, ns);
    *ns = 0;
    return 0;
}

static int parse_words(const char *value, const char *values, uint32_t *set)
{
    for (;;) {
        size_t length;
        int index;

        value += strspn(value, " ");
        length = strcspn(value, ",");
        index = find_word(values, value, length);
        if (index < 0)
            return index;
        *set |= 1u << index;
        if (value[length] == '\0')
            return 0;
        value += length + 1;
    }
}

static int parse_set(const char *value, const char *values, uint32_t *set)
{
    uint32_t parsed = 0;
    int error = is_none(value) ? 0 : parse_words(value, values, &parsed);

    if (error == 0)
        *set = parsed;
    return error;
}

/* A copy, because the host may change its environment. */
static int parse_path(const char *value, const char **path)
{
    *path = NULL;
    if (*value == '\0')
        return 0;
    *path = gos_arena_intern(value, strlen(value));
    return *path ? 0 : -ENOMEM;
}

/* Names between dots; each may be followed by "()". */
static bool is_attribute_path(const char *path, size_t length)
{
    while (length > 0) {
        const char *dot = memchr(path, '.', length);
        size_t name_length = dot ? (size_t)(dot - path) : length;

        if (dot && name_length + 1 == length) /* it ends in a dot */
            return false;
        if (name_length >= 2 && strncmp(path + name_length - 2, "()", 2) == 0)
            name_length -= 2;
        if (name_length == 0 || memchr(path, ':', name_length) || memchr(path, '(', name_length))
            return false;
        if (!dot)
            return true;
        length -= (size_t)(dot + 1 - path);
        path = dot + 1;
    }
    return false;
}

static bool is_function(const char *text, size_t length)
{
    const char *colon = memchr(text, ':', length);

    return colon && colon > text &&
           is_attribute_path(colon + 1, length - (size_t)(colon + 1 - text));
}

static int parse_functions(const char *value, const char **functions)
{
    static const char separators[] = ", ";
    const char *at = value + strspn(value, separators);

    if (*value && !*at)
        return -EINVAL;
    while (*at) {
        size_t length = strcspn(at, separators);

        if (!is_function(at, length))
            return -EINVAL;
        at += length;
        at += strspn(at, separators);
    }
    return parse_path(value, functions);
}

static int parse(const struct gos_option_row *row, const char *value, struct gos_options *options)
{
    void *field = (char *)options + row->offset;

    switch (row->type) {
    case GOS_OPTION_FLAG:
        return parse_flag(value, field);
    case GOS_OPTION_COUNT:
        return parse_count(value, row->values, field);
    case GOS_OPTION_SIZE:
        return parse_size(value, field);
    case GOS_OPTION_DURATION:
        return parse_duration(value, field);
    case GOS_OPTION_PATH:
        return parse_path(value, field);
    case GOS_OPTION_FUNCTIONS:
        return parse_functions(value, field);
    case GOS_OPTION_SET:
        return parse_set(value, row->values, field);
    case GOS_OPTION_CHOICE:
        return parse_choice(value, row->values, field);
    case GOS_OPTION_LIMIT:
        return gos_limit_option_parse(value, field);
    case GOS_OPTION_INJECT:
        return gos_inject_option_parse(value, field);
    }
    return -EINVAL;
}

/* --- what to say -------------------------------------------------------------------------- */

/* The value comes from outside: a line feed or an escape in it stays out of the terminal. */
static int shown_length(const char *value)
{
    int length = 0;

    while (length < VALUE_SHOWN && (unsigned char)value[length] >= ' ' && value[length] != 127)
        length++;
    return length;
}

static void complain_of_value(const struct gos_option_row *row, const char *value)
{
    gos_log(GOS_LOG_ERROR, PREFIX "%s=%.*s cannot be used (%s); %s is used", row->name,
            shown_length(value), value, row->values, row->fallback[0] ? row->fallback : "no value");
}

/* NULL when no name is near enough to be what was meant. */
static const char *nearest(const char *name, size_t length)
{
    size_t best = gos_spelling_limit(length);
    const char *found = NULL;

    for (size_t i = 0; i < gos_option_row_count; i++) {
        size_t distance = gos_spelling_distance(name, length, gos_option_rows[i].name);

        if (distance < best) {
            best = distance;
            found = gos_option_rows[i].name;
        }
    }
    return found;
}

static void complain_of_name(const char *name, size_t length)
{
    const char *meant = nearest(name, length);
    int shown = (int)(length < VALUE_SHOWN ? length : VALUE_SHOWN);

    if (meant)
        gos_log(GOS_LOG_ERROR, PREFIX "%.*s is not a setting; did you mean " PREFIX "%s?", shown,
                name, meant);
    else
        gos_log(GOS_LOG_ERROR, PREFIX "%.*s is not a setting; `gpuoomshim options` lists them",
                shown, name);
}

/* --- the environment ---------------------------------------------------------------------- */

/* The name behind our prefix and its length, or NULL for a variable of somebody else. */
static const char *name_in(const char *variable, size_t *length)
{
    if (strncmp(variable, PREFIX, PREFIX_LENGTH) != 0)
        return NULL;
    *length = strcspn(variable + PREFIX_LENGTH, "=");
    return variable + PREFIX_LENGTH;
}

static bool is_row(const struct gos_option_row *row, const char *name, size_t length)
{
    return strncmp(row->name, name, length) == 0 && row->name[length] == '\0';
}

/* The first of a name counts, as in getenv; an empty value is none. */
static const char *value_of(const struct gos_option_row *row, char *const *environment)
{
    for (; *environment; environment++) {
        size_t length;
        const char *name = name_in(*environment, &length);

        if (name && is_row(row, name, length) && name[length] == '=')
            return name[length + 1] ? name + length + 1 : NULL;
    }
    return NULL;
}

static int load_row(const struct gos_option_row *row, char *const *environment,
                    struct gos_options *options)
{
    const char *value = value_of(row, environment);
    int error = parse(row, row->fallback, options);

    if (value)
        error = parse(row, value, options);
    if (error == 0)
        return 0;
    complain_of_value(row, value ? value : row->fallback);
    return 1;
}

static bool is_known(const char *name, size_t length)
{
    for (size_t i = 0; i < gos_option_row_count; i++) {
        if (is_row(&gos_option_rows[i], name, length))
            return true;
    }
    return false;
}

static int check_names(char *const *environment)
{
    int complaints = 0;

    for (; *environment; environment++) {
        size_t length;
        const char *name = name_in(*environment, &length);

        if (name && !is_known(name, length)) {
            complain_of_name(name, length);
            complaints++;
        }
    }
    return complaints;
}

int gos_options_load(char *const *environment)
{
    static char *const empty[] = {NULL};
    struct gos_options options = {0};
    int complaints = 0;

    /* A host that cleared its environment has no block at all. */
    environment = environment ? environment : empty;
    for (size_t i = 0; i < gos_option_row_count; i++)
        complaints += load_row(&gos_option_rows[i], environment, &options);
    gos_options = options;
    return complaints + check_names(environment);
}
