#include "observe_fake_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "../../src/base/os.h"

#define FILES 64
#define FIRST_FD 1000

struct file {
    const char *path, *data, *link;
    const char *const *names;
    size_t bytes, at;
};

static struct gos_os real_os;
static struct file files[FILES];
static unsigned file_count, open_count, nth_call, call_count;
static size_t read_max;
static bool failed;
static long mapped;

static bool fails(void)
{
    bool now = nth_call != 0 && ++call_count == nth_call;

    failed = failed || now;
    return now;
}

static struct file *find(const char *path)
{
    for (unsigned i = 0; i < file_count; i++)
        if (strcmp(files[i].path, path) == 0)
            return &files[i];
    return NULL;
}

static int open_fake(const char *path, int flags, unsigned mode)
{
    struct file *file = find(path);

    (void)flags, (void)mode;
    if (fails())
        return -EMFILE;
    if (file == NULL || file->link != NULL)
        return -ENOENT;
    file->at = 0;
    open_count++;
    return FIRST_FD + (int)(file - files);
}

static ssize_t read_fake(int fd, void *buffer, size_t bytes)
{
    struct file *file = &files[fd - FIRST_FD];
    size_t left = file->bytes - file->at;

    if (fails())
        return -EIO;
    bytes = bytes < left ? bytes : left;
    if (read_max != 0 && bytes > read_max)
        bytes = read_max;
    memcpy(buffer, file->data + file->at, bytes);
    file->at += bytes;
    return (ssize_t)bytes;
}

static int close_fake(int fd)
{
    (void)fd;
    open_count--;
    return 0;
}

static ssize_t readlink_fake(const char *path, char *buffer, size_t bytes)
{
    struct file *file = find(path);
    size_t length;

    if (fails())
        return -EIO;
    if (file == NULL || file->link == NULL)
        return -EINVAL;
    length = strlen(file->link);
    length = length < bytes ? length : bytes;
    memcpy(buffer, file->link, length);
    return (ssize_t)length;
}

/* One entry a call, so that the loop around it is used. */
static ssize_t list_fake(int fd, void *buffer, size_t bytes)
{
    struct file *file = &files[fd - FIRST_FD];
    struct dirent64 *entry = buffer;
    size_t needed;

    if (fails())
        return -EIO;
    if (file->names == NULL)
        return -ENOTDIR;
    if (file->names[file->at] == NULL)
        return 0;
    needed = (offsetof(struct dirent64, d_name) + strlen(file->names[file->at]) + 8) & ~(size_t)7;
    if (needed > bytes)
        return -EINVAL;
    memset(buffer, 0, needed);
    strcpy(entry->d_name, file->names[file->at++]);
    entry->d_reclen = (unsigned short)needed;
    return (ssize_t)needed;
}

static void *map_fake(size_t bytes)
{
    void *memory = fails() ? NULL : real_os.map(bytes);

    mapped += memory != NULL ? (long)bytes : 0;
    return memory;
}

static void unmap_fake(void *memory, size_t bytes)
{
    mapped -= (long)bytes;
    real_os.unmap(memory, bytes);
}

static int limit_fake(int resource, uint64_t *soft, uint64_t *hard)
{
    return fails() ? -EPERM : real_os.limit(resource, soft, hard);
}

static int hostname_fake(char *buffer, size_t bytes)
{
    return fails() ? -EPERM : real_os.hostname(buffer, bytes);
}

void fake_files_install(void)
{
    real_os = gos_os;
    file_count = open_count = 0;
    read_max = 0;
    mapped = 0;
    fake_files_fail(0);
    gos_os.open = open_fake;
    gos_os.read = read_fake;
    gos_os.close = close_fake;
    gos_os.readlink = readlink_fake;
    gos_os.list = list_fake;
    gos_os.map = map_fake;
    gos_os.unmap = unmap_fake;
    gos_os.limit = limit_fake;
    gos_os.hostname = hostname_fake;
}

void fake_files_remove(void)
{
    gos_os = real_os;
}

void fake_file_bytes(const char *path, const char *data, size_t bytes)
{
    struct file *file = find(path);

    if (file == NULL)
        file = &files[file_count++];
    *file = (struct file){.path = path, .data = data, .bytes = bytes};
}

void fake_file(const char *path, const char *text)
{
    fake_file_bytes(path, text, strlen(text));
}

void fake_link(const char *path, const char *target)
{
    files[file_count++] = (struct file){.path = path, .link = target};
}

void fake_folder(const char *path, const char *const *names)
{
    files[file_count++] = (struct file){.path = path, .names = names};
}

void fake_files_read_at_most(size_t bytes)
{
    read_max = bytes;
}

void fake_files_fail(unsigned nth)
{
    nth_call = nth;
    call_count = 0;
    failed = false;
}

bool fake_files_failed(void)
{
    return failed;
}

unsigned fake_files_open_count(void)
{
    return open_count;
}

long fake_files_mapped_bytes(void)
{
    return mapped;
}
