#include "owner.h"

#include <errno.h>
#include <string.h>

#include "../base/os.h"
#include "../base/text.h"
#include "../observe/procfs.h"

#define STAT_BYTES 1024
/* Fields of /proc/PID/stat, counted from the one that follows the name. */
#define FIELD_STATE 0
#define FIELD_THREADS 17
#define FIELD_START 19

struct life {
    bool has_ended; /* and was not waited for yet */
    uint64_t start_ticks;
};

static const char *field(const char *stat, unsigned index)
{
    const char *found = strrchr(stat, ')'); /* the name may hold anything */

    for (found = found ? found + 1 : ""; *found && index > 0; index--) {
        found = strchr(found + 1, ' ');
        found = found ? found : "";
    }
    return *found ? found + 1 : "";
}

/* 0 or -errno.  The first thread may have ended before the others. */
static int read_life(int pid, struct life *life)
{
    char path[32];
    char stat[STAT_BYTES];
    uint64_t thread_count = 0;
    struct gos_text text = gos_text_on(path, sizeof path);

    gos_text_format(&text, "/proc/%d/stat", pid);
    ssize_t bytes = gos_os_read_file(path, stat, sizeof stat);
    if (bytes <= 0)
        return bytes < 0 ? (int)bytes : -ESRCH;
    char state = field(stat, FIELD_STATE)[0];
    if (!gos_procfs_number(field(stat, FIELD_THREADS), &thread_count) ||
        !gos_procfs_number(field(stat, FIELD_START), &life->start_ticks))
        return -EINVAL;
    life->has_ended = (state == 'Z' || state == 'X') && thread_count <= 1;
    return 0;
}

static void read_place(struct gos_owner *owner)
{
    char link[64] = "";
    ssize_t length = gos_os.readlink("/proc/self/ns/pid", link, sizeof link - 1);
    const char *digits = length > 0 ? strchr(link, '[') : NULL;

    if (digits)
        (void)gos_procfs_number(digits + 1, &owner->pid_namespace);
    if (gos_os_read_file("/proc/sys/kernel/random/boot_id", owner->boot_id,
                         sizeof owner->boot_id) <= 0)
        owner->boot_id[0] = '\0';
}

void gos_owner_of_self(struct gos_owner *owner)
{
    struct life life = {.start_ticks = 0};

    *owner = (struct gos_owner){.pid = gos_os.pid()};
    if (read_life(owner->pid, &life) == 0)
        owner->start_ticks = life.start_ticks;
    read_place(owner);
}

static bool is_of_here(const struct gos_owner *owner)
{
    struct gos_owner here = {.pid = 0};

    read_place(&here);
    return here.pid_namespace != 0 && here.pid_namespace == owner->pid_namespace &&
           here.boot_id[0] && strcmp(here.boot_id, owner->boot_id) == 0;
}

/* A namespace's inode is given out again, but only when all of its processes have ended. */
enum gos_owner_state gos_owner_look(const struct gos_owner *owner)
{
    struct life life;

    if (owner->pid <= 0 || owner->start_ticks == 0 || !is_of_here(owner))
        return GOS_OWNER_UNKNOWN;
    int result = read_life(owner->pid, &life);
    if (result == -ENOENT || result == -ESRCH)
        return GOS_OWNER_ENDED;
    if (result < 0)
        return GOS_OWNER_UNKNOWN;
    return life.start_ticks != owner->start_ticks || life.has_ended ? GOS_OWNER_ENDED
                                                                    : GOS_OWNER_RUNS;
}

bool gos_owner_pid_runs(int pid)
{
    struct life life;
    int result = read_life(pid, &life);

    return result == 0 ? !life.has_ended : result != -ENOENT && result != -ESRCH;
}
