#include "limit_option.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "text.h"

#define SIZE_WORD_BYTES 32

/* The parser of sizes wants a string of its own. */
static int parse_size(const char *item, size_t length, uint64_t *bytes)
{
    char word[SIZE_WORD_BYTES];
    int error;

    if (length >= sizeof(word))
        return -EINVAL;
    memcpy(word, item, length);
    word[length] = '\0';
    error = gos_text_parse_bytes(word, bytes);
    return error == 0 && *bytes == 0 ? -EINVAL : error;
}

static int parse_device(const char *item, size_t length, struct gos_limit_option *limit)
{
    uint64_t ordinal;
    int error;
    const char *rest = gos_text_parse_digits(item, &ordinal, &error);

    if (!rest)
        return error;
    if (*rest != ':')
        return -EINVAL;
    if (ordinal >= GOS_LIMIT_DEVICES)
        return -ERANGE;
    if (limit->bytes[ordinal] != 0)
        return -EINVAL;
    rest++;
    return parse_size(rest, length - (size_t)(rest - item), &limit->bytes[ordinal]);
}

static int parse_list(const char *value, struct gos_limit_option *limit)
{
    for (;;) {
        size_t length;
        int error;

        value += strspn(value, " ");
        length = strcspn(value, ",");
        error = parse_device(value, length, limit);
        if (error != 0 || value[length] == '\0')
            return error;
        value += length + 1;
    }
}

static int parse_all(const char *value, struct gos_limit_option *limit)
{
    uint64_t bytes;
    int error = parse_size(value, strlen(value), &bytes);

    for (size_t i = 0; error == 0 && i < GOS_LIMIT_DEVICES; i++)
        limit->bytes[i] = bytes;
    return error;
}

static bool is_none(const char *value)
{
    size_t length = strlen(value);

    return length == 0 || gos_text_is_word(value, length, "off") ||
           gos_text_is_word(value, length, "none");
}

int gos_limit_option_parse(const char *value, struct gos_limit_option *limit)
{
    struct gos_limit_option parsed = {{0}};
    int error = 0;

    if (!is_none(value))
        error = strchr(value, ':') ? parse_list(value, &parsed) : parse_all(value, &parsed);
    if (error == 0)
        *limit = parsed;
    return error;
}
