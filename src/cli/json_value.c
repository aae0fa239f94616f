#include "json_value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_file.h"

static bool is_marked(const json_t *value)
{
    const char *text = json_string_value(value);
    return text && text[0] == GOS_JSON_BIG[0];
}

bool gos_value_has(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return value && !json_is_null(value);
}

uint64_t gos_value_number(const json_t *object, const char *key, uint64_t fallback)
{
    const json_t *value = json_object_get(object, key);
    if (is_marked(value))
        return strtoull(json_string_value(value) + 1, NULL, 10);
    return json_is_integer(value) ? (uint64_t)json_integer_value(value) : fallback;
}

int64_t gos_value_signed(const json_t *object, const char *key, int64_t fallback)
{
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) ? json_integer_value(value) : fallback;
}

bool gos_value_bool(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

const char *gos_value_string(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

const char *gos_value_text(const json_t *object, const char *key)
{
    const char *text = gos_value_string(object, key);
    return text ? text : "";
}

void gos_value_copy(const json_t *object, const char *key, char *buffer, size_t bytes)
{
    snprintf(buffer, bytes, "%s", gos_value_text(object, key));
}

unsigned gos_value_word(const json_t *object, const char *key, const char *(*name)(unsigned),
                        unsigned count, unsigned fallback)
{
    const char *text = gos_value_string(object, key);
    for (unsigned i = 0; text && i < count; i++) {
        const char *candidate = name(i);
        if (candidate && strcmp(candidate, text) == 0)
            return i;
    }
    return fallback;
}
