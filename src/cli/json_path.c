#include "json_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "suggest.h"

#define STEP_BYTES 128
#define KEYS_MAX 256

static void complain_of_key(const json_t *object, const char *key)
{
    const char *keys[KEYS_MAX];
    size_t count = 0;
    for (void *i = json_object_iter((json_t *)(size_t)object); i && count < KEYS_MAX;
         i = json_object_iter_next((json_t *)(size_t)object, i))
        keys[count++] = json_object_iter_key(i);
    const char *meant = gos_suggest(key, keys, count);
    if (meant)
        gos_command_complain("the report has no '%s' there; did you mean '%s'?", key, meant);
    else
        gos_command_complain("the report has no '%s' there", key);
}

static const json_t *step_into(const json_t *value, const char *step)
{
    const json_t *part = NULL;
    char *end = NULL;
    if (json_is_object(value)) {
        part = json_object_get(value, step);
        if (!part)
            complain_of_key(value, step);
    } else if (json_is_array(value)) {
        unsigned long index = strtoul(step, &end, 10);
        part = *step && !*end ? json_array_get(value, index) : NULL;
        if (!part)
            gos_command_complain("'%s' is no number below %zu", step, json_array_size(value));
    } else {
        gos_command_complain("there is nothing inside the value before '%s'", step);
    }
    return part;
}

const json_t *gos_json_find(const json_t *root, const char *path)
{
    const json_t *value = root;
    while (*path && value) {
        char step[STEP_BYTES];
        size_t length = strcspn(path, ".");
        snprintf(step, sizeof step, "%.*s", (int)length, path);
        value = step_into(value, step);
        path += length + (path[length] == '.');
    }
    return value;
}
