#include "procfs.h"

#include <string.h>

#include "../base/os.h"

static const char *skip_blanks(const char *text)
{
    while (*text == ' ' || *text == '\t')
        text++;
    return text;
}

const char *gos_procfs_field(const char *text, const char *name)
{
    size_t length = strlen(name);

    while (text != NULL && strncmp(text, name, length) != 0) {
        text = strchr(text, '\n');
        text = text != NULL ? text + 1 : NULL;
    }
    return text != NULL ? skip_blanks(text + length) : NULL;
}

bool gos_procfs_number(const char *text, uint64_t *value)
{
    uint64_t number = 0;

    if (text == NULL || *text < '0' || *text > '9')
        return false;
    for (; *text >= '0' && *text <= '9'; text++)
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*text - '0'), &number)) {
            *value = UINT64_MAX;
            return true;
        }
    *value = number;
    return true;
}

bool gos_procfs_bytes(const char *text, const char *name, uint64_t *bytes)
{
    uint64_t kib;

    if (!gos_procfs_number(gos_procfs_field(text, name), &kib))
        return false;
    if (__builtin_mul_overflow(kib, 1024, bytes))
        *bytes = UINT64_MAX;
    return true;
}

bool gos_procfs_read_number(const char *path, uint64_t *value)
{
    char buffer[64];

    if (gos_os_read_file(path, buffer, sizeof(buffer)) <= 0)
        return false;
    if (strncmp(buffer, "max", 3) == 0) {
        *value = UINT64_MAX;
        return true;
    }
    return gos_procfs_number(buffer, value);
}

size_t gos_procfs_line_length(const char *text)
{
    return strcspn(text, "\n");
}
