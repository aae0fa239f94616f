#include "wheel.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "../base/os.h"
#include "../base/text.h"

#define PATH_BYTES 1024
#define LIST_BYTES 8192
#define SUFFIX ".dist-info"

/* As getdents64 gives it. */
struct entry {
    uint64_t inode;
    int64_t offset;
    uint16_t bytes;
    uint8_t type;
    char name[];
};

/* "/x/site-packages/nvidia/…" gives "/x/site-packages"; 0 if it is in none. */
static size_t packages_length(const char *path)
{
    static const char *const folders[] = {"/site-packages/", "/dist-packages/"};

    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        const char *at = strstr(path, folders[i]);

        if (at != NULL)
            return (size_t)(at - path) + strlen(folders[i]) - 1;
    }
    return 0;
}

static bool is_name_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* "-2.11.0" or "_cu12-12.8.90" or "12_plugin-0.4". */
static bool may_follow_stem(const char *rest)
{
    return *rest == '-' || (*rest >= '0' && *rest <= '9') || strncmp(rest, "_cu", 3) == 0;
}

/* The version in a folder's name, NULL when it is another package's. */
static const char *version_in(const char *name, const char *stem, size_t *length)
{
    size_t stem_length = strlen(stem);
    const char *end = strstr(name, SUFFIX);
    const char *at;

    if (end == NULL || strncmp(name, stem, stem_length) != 0)
        return NULL;
    at = name + stem_length;
    if (!may_follow_stem(at))
        return NULL;
    while (is_name_character(*at))
        at++;
    if (*at != '-' || at + 1 >= end)
        return NULL;
    *length = (size_t)(end - (at + 1));
    return at + 1;
}

static size_t search_entries(const char *entries, size_t entries_bytes, const char *stem,
                             struct gos_text *version)
{
    const struct entry *entry;

    for (size_t at = 0; at + sizeof(*entry) < entries_bytes; at += entry->bytes) {
        const char *found;
        size_t length;

        entry = (const void *)(entries + at);
        if (entry->bytes == 0)
            break;
        found = version_in(entry->name, stem, &length);
        if (found == NULL)
            continue;
        gos_text_put_n(version, found, length);
        return version->length;
    }
    return 0;
}

static size_t search_folder(int fd, const char *stem, struct gos_text *version)
{
    _Alignas(struct entry) char entries[LIST_BYTES];
    ssize_t got;

    while ((got = gos_os.list(fd, entries, sizeof(entries))) > 0)
        if (search_entries(entries, (size_t)got, stem, version) > 0)
            break;
    return version->length;
}

size_t gos_wheel_version(const char *library_path, const char *stem, char *version, size_t bytes)
{
    struct gos_text text = gos_text_on(version, bytes);
    size_t length = packages_length(library_path);
    char folder[PATH_BYTES];
    int fd;

    if (length == 0 || length >= sizeof(folder))
        return 0;
    memcpy(folder, library_path, length);
    folder[length] = '\0';
    fd = gos_os.open(folder, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return 0;
    length = search_folder(fd, stem, &text);
    gos_os.close(fd);
    return length;
}
