#include "draft_show.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../report/draft_file.h"
#include "command.h"
#include "json_file.h"

/* A pipe has no beginning to go back to. */
static int open_file(const char *path)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)))
        return fd;
    close(fd);
    return -1;
}

bool gos_draft_is_one(const char *path)
{
    char magic[sizeof GOS_DRAFT_MAGIC];
    int fd = open_file(path);
    if (fd < 0)
        return false;
    ssize_t bytes = pread(fd, magic, sizeof magic, 0);
    close(fd);
    return bytes == (ssize_t)sizeof magic && memcmp(magic, GOS_DRAFT_MAGIC, sizeof magic - 1) == 0;
}

/* The program that made it may have given way to another one in its process (exec). */
static bool is_mapped(int fd, int pid)
{
    struct stat status;
    char path[64];
    char *line = NULL;
    size_t size = 0;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *maps = fstat(fd, &status) == 0 ? fopen(path, "r") : NULL;
    if (!maps)
        return true; /* as far as can be seen */
    while (!found && getline(&line, &size, maps) >= 0) {
        unsigned long long inode = 0;
        found = sscanf(line, "%*s %*s %*s %*s %llu", &inode) == 1 && inode == status.st_ino;
    }
    free(line);
    fclose(maps);
    return found;
}

static enum gos_standing standing_of(int fd, const struct gos_owner *owner)
{
    switch (gos_owner_look(owner)) {
    case GOS_OWNER_RUNS:
        return is_mapped(fd, owner->pid) ? GOS_STANDING_DRAFT : GOS_STANDING_LEFT;
    case GOS_OWNER_ENDED:
        return GOS_STANDING_LEFT;
    default:
        return GOS_STANDING_ELSEWHERE;
    }
}

static void complain(const char *path, int error)
{
    if (error == -ENODATA)
        gos_command_complain("%s says nothing any more: it was told, or the program survived",
                             path);
    else if (error == -EINVAL)
        gos_command_complain("%s is damaged", path);
    else if (error == -EPROTO)
        gos_command_complain("%s is of another version of gpuoomshim", path);
    else if (error == -EAGAIN)
        gos_command_complain("%s changes faster than it can be read; try again", path);
    else
        gos_command_complain("cannot read %s: %s", path, strerror(-error));
}

json_t *gos_draft_json(const char *path, enum gos_standing *standing)
{
    struct gos_scratch scratch = {0};
    struct gos_draft draft;
    json_t *root = NULL;
    int fd = open_file(path);
    int result = fd >= 0 ? gos_draft_read(fd, &draft, &scratch) : -EIO;
    if (result < 0) {
        complain(path, result);
    } else {
        *standing = standing_of(fd, &draft.header.owner);
        root = gos_json_parse(path, draft.data[1], draft.slot->bytes[1]);
    }
    if (fd >= 0)
        close(fd);
    gos_scratch_release(&scratch);
    return root;
}
