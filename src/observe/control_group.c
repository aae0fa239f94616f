#include "control_group.h"

#include <string.h>

#include "../base/os.h"
#include "../base/text.h"
#include "procfs.h"

#define GROUPS_BYTES 4096
#define PATH_BYTES 1024
#define STAT_BYTES 4096
/* v1 says "no limit" with a number just below 2^63. */
#define UNLIMITED_BYTES ((uint64_t)1 << 62)

/* One of the two generations, where it is usually mounted and what its files are called. */
struct generation {
    const char *mount;
    const char *limit;
    const char *used;
    const char *droppable; /* the field of memory.stat; of the whole subtree */
};

static const struct generation version_1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                            "memory.usage_in_bytes", "total_inactive_file"};
static const struct generation version_2 = {"/sys/fs/cgroup", "memory.max", "memory.current",
                                            "inactive_file"};

struct tightest {
    uint64_t limit_bytes;
    uint64_t used_bytes;
};

static const char *make_path(char path[PATH_BYTES], const struct generation *generation,
                             const char *group, size_t group_length, const char *file)
{
    struct gos_text text = gos_text_on(path, PATH_BYTES);

    gos_text_format(&text, "%s%.*s/%s", generation->mount, (int)group_length, group, file);
    return text.truncated ? "" : path;
}

static uint64_t read_droppable(const struct generation *generation, const char *group,
                               size_t group_length)
{
    char path[PATH_BYTES], stat[STAT_BYTES];
    uint64_t bytes = 0;

    if (gos_os_read_file(make_path(path, generation, group, group_length, "memory.stat"), stat,
                         sizeof(stat)) > 0)
        gos_procfs_number(gos_procfs_field(stat, generation->droppable), &bytes);
    return bytes;
}

static uint64_t room(uint64_t limit_bytes, uint64_t used_bytes)
{
    return limit_bytes > used_bytes ? limit_bytes - used_bytes : 0;
}

static void look_at_group(const struct generation *generation, const char *group,
                          size_t group_length, struct tightest *tightest)
{
    char path[PATH_BYTES];
    uint64_t limit_bytes, used_bytes = 0, droppable_bytes;

    if (!gos_procfs_read_number(make_path(path, generation, group, group_length, generation->limit),
                                &limit_bytes) ||
        limit_bytes >= UNLIMITED_BYTES)
        return;
    gos_procfs_read_number(make_path(path, generation, group, group_length, generation->used),
                           &used_bytes);
    droppable_bytes = read_droppable(generation, group, group_length);
    used_bytes -= droppable_bytes < used_bytes ? droppable_bytes : used_bytes;
    if (tightest->limit_bytes != UINT64_MAX &&
        room(tightest->limit_bytes, tightest->used_bytes) <= room(limit_bytes, used_bytes))
        return;
    *tightest = (struct tightest){limit_bytes, used_bytes};
}

/*
 * From the group up to the mount.  In a container without a namespace of its
 * own the path names groups outside of what is mounted; those files are
 * missing, and the mount itself is the container's group.
 */
static void look_upwards(const struct generation *generation, const char *group, size_t length,
                         struct tightest *tightest)
{
    while (length > 0 && group[length - 1] == '/')
        length--;
    while (length > 0) {
        look_at_group(generation, group, length, tightest);
        while (length > 0 && group[length - 1] != '/')
            length--;
        while (length > 0 && group[length - 1] == '/')
            length--;
    }
    look_at_group(generation, "", 0, tightest);
}

/* Is "memory" one of the comma-separated words of [list, end)? */
static bool lists_memory(const char *list, const char *end)
{
    static const char memory[] = "memory";
    const size_t length = sizeof(memory) - 1;

    while (list < end) {
        const char *comma = memchr(list, ',', (size_t)(end - list));
        const char *word_end = comma != NULL ? comma : end;

        if ((size_t)(word_end - list) == length && memcmp(list, memory, length) == 0)
            return true;
        list = word_end + 1;
    }
    return false;
}

/* A line is "number:controllers:path"; v2 has number 0 and no controllers. */
static void look_at_line(const char *line, size_t length, struct tightest *tightest)
{
    const char *end = line + length;
    const char *controllers = memchr(line, ':', length);
    const char *path = controllers != NULL
                           ? memchr(controllers + 1, ':', (size_t)(end - (controllers + 1)))
                           : NULL;

    if (path == NULL)
        return;
    if (path == controllers + 1)
        look_upwards(&version_2, path + 1, (size_t)(end - (path + 1)), tightest);
    else if (lists_memory(controllers + 1, path))
        look_upwards(&version_1, path + 1, (size_t)(end - (path + 1)), tightest);
}

bool gos_control_group_memory(uint64_t *limit_bytes, uint64_t *used_bytes)
{
    char groups[GROUPS_BYTES];
    struct tightest tightest = {UINT64_MAX, 0};
    bool known = gos_os_read_file("/proc/self/cgroup", groups, sizeof(groups)) > 0;

    for (const char *line = groups; known && *line != '\0';) {
        size_t length = gos_procfs_line_length(line);

        look_at_line(line, length, &tightest);
        line += length + (line[length] != '\0');
    }
    *limit_bytes = tightest.limit_bytes;
    *used_bytes = tightest.used_bytes;
    return known;
}
