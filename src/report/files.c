#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "../base/options.h"
#include "../base/os.h"
#include "../base/text.h"

#define ENVIRON_BYTES (128u * 1024u)
#define NEW_FILE_TRIES 100

/* --- errors --- */

const char *gos_files_error(int error)
{
    switch (-error) {
    case ENOSPC:
        return "no space left on the device";
    case EDQUOT:
        return "disk quota exceeded";
    case EFBIG:
        return "file size limit reached";
    case EACCES:
    case EPERM:
        return "permission denied";
    case ENOENT:
        return "no such directory";
    case ENOTDIR:
        return "not a directory";
    case EROFS:
        return "read-only file system";
    case ENAMETOOLONG:
        return "path too long";
    case EMFILE:
    case ENFILE:
        return "too many open files";
    case EIO:
        return "input/output error";
    default:
        return "error";
    }
}

/* A full disk is left to people: quietly filling the next one would not help them. */
bool gos_files_try_elsewhere(int error)
{
    switch (-error) {
    case EACCES:
    case EPERM:
    case ENOENT:
    case ENOTDIR:
    case EROFS:
    case ENAMETOOLONG:
    case ELOOP:
    case EINVAL:
    case ENODEV:
    case ESTALE:
        return true;
    default:
        return false;
    }
}

/* --- directories --- */

static void put_working_directory(struct gos_text *text)
{
    char path[GOS_PATH_BYTES];
    ssize_t length = gos_os.readlink("/proc/self/cwd", path, sizeof path);
    if (length > 0 && (size_t)length < sizeof path)
        gos_text_put_n(text, path, (size_t)length);
    else
        gos_text_put(text, ".");
}

int gos_files_directory(char directory[GOS_PATH_BYTES])
{
    struct gos_text text = gos_text_on(directory, GOS_PATH_BYTES);
    const char *wanted = gos_options.report_dir;
    if (!wanted || !wanted[0]) {
        put_working_directory(&text);
    } else if (wanted[0] == '/') {
        gos_text_put(&text, wanted);
    } else {
        put_working_directory(&text);
        gos_text_format(&text, "/%s", wanted);
    }
    return text.truncated ? -ENAMETOOLONG : 0;
}

/* NAME=value entries, each with its NUL; the value, or NULL. */
static const char *find_variable(const char *block, size_t bytes, const char *prefix)
{
    size_t prefix_length = strlen(prefix);
    for (const char *entry = block; entry < block + bytes; entry += strlen(entry) + 1) {
        if (strncmp(entry, prefix, prefix_length) == 0)
            return entry + prefix_length;
    }
    return NULL;
}

/*
 * From /proc, not from environ: the host may be changing its environment on
 * another thread right now.
 */
void gos_files_fallback(char directory[GOS_PATH_BYTES], struct gos_scratch *scratch)
{
    struct gos_text text = gos_text_on(directory, GOS_PATH_BYTES);
    char *block = gos_scratch_alloc(scratch, ENVIRON_BYTES);
    ssize_t bytes = block ? gos_os_read_file("/proc/self/environ", block, ENVIRON_BYTES) : -ENOMEM;
    const char *value = bytes > 0 ? find_variable(block, (size_t)bytes, "TMPDIR=") : NULL;
    bool usable = value && value[0] == '/' && strlen(value) < GOS_PATH_BYTES;
    gos_text_put(&text, usable ? value : "/tmp");
}

void gos_files_directory_of(char directory[GOS_PATH_BYTES], const char *path)
{
    struct gos_text text = gos_text_on(directory, GOS_PATH_BYTES);
    const char *slash = strrchr(path, '/');
    if (!slash)
        gos_text_put(&text, ".");
    else
        gos_text_put_n(&text, path, slash == path ? 1 : (size_t)(slash - path));
}

/* --- names --- */

static bool belongs_into_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
}

static void put_host(struct gos_text *text, const char *host)
{
    if (!host[0])
        gos_text_put(text, "localhost");
    for (; *host; host++)
        gos_text_char(text, belongs_into_name(*host) ? *host : '_');
}

int gos_files_name(char path[GOS_PATH_BYTES], const struct gos_file_name *name,
                   const char *extension)
{
    struct gos_text text = gos_text_on(path, GOS_PATH_BYTES);
    gos_text_format(&text, "%s/gpuoomshim.", name->directory);
    put_host(&text, name->host);
    if (name->rank >= 0)
        gos_text_format(&text, ".r%d", name->rank);
    gos_text_format(&text, ".%d.%u.%s", name->pid, name->number, extension);
    return text.truncated ? -ENAMETOOLONG : 0;
}

/* --- new files --- */

static int create(const char *path)
{
    return gos_os.open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
}

/* One that a killed process left behind, or a foreign file, only costs the next number. */
int gos_new_file_open(struct gos_new_file *file, const char *directory)
{
    struct gos_file_status status;

    file->inode = 0;
    file->fd = -EEXIST;
    for (int i = 0; i < NEW_FILE_TRIES && file->fd == -EEXIST; i++) {
        struct gos_text text = gos_text_on(file->path, sizeof file->path);
        gos_text_format(&text, "%s/.gpuoomshim.%d.%d.tmp", directory, gos_os.pid(), i);
        file->fd = text.truncated ? -ENAMETOOLONG : create(file->path);
    }
    if (file->fd >= 0) {
        file->inode = gos_os.status(file->fd, &status) == 0 ? status.inode : 0;
        return 0;
    }
    int result = file->fd;
    file->fd = -1;
    file->path[0] = '\0';
    return result;
}

void gos_new_file_drop(struct gos_new_file *file)
{
    if (file->fd >= 0)
        (void)gos_os.close(file->fd);
    if (file->path[0])
        (void)gos_os.unlink(file->path);
    file->fd = -1;
    file->path[0] = '\0';
}

/* Some file systems cannot sync at all and say so; that is no reason to have no report. */
static bool is_real_sync_failure(int result)
{
    return result < 0 && result != -EINVAL && result != -ENOSYS && result != -ENOTSUP;
}

int gos_new_file_seal(struct gos_new_file *file)
{
    int synced = gos_os.sync(file->fd);
    int closed = gos_os.close(file->fd);
    int result = is_real_sync_failure(synced) ? synced : closed;
    file->fd = -1;
    if (result < 0)
        gos_new_file_drop(file);
    return result < 0 ? result : 0;
}

int gos_new_file_publish(struct gos_new_file *file, const char *path)
{
    int result = gos_os.rename(file->path, path);
    if (result < 0)
        gos_new_file_drop(file);
    file->path[0] = '\0';
    return result < 0 ? result : 0;
}

static int claim(const char *path)
{
    int fd = create(path);
    if (fd < 0)
        return fd;
    (void)gos_os.close(fd);
    return 0;
}

/* FAT, some network and user-space file systems, and filters of system calls. */
static bool knows_no_links(int result)
{
    return result == -EPERM || result == -ENOSYS || result == -ENOTSUP || result == -EMLINK;
}

int gos_new_file_name(const struct gos_new_file *file, const char *path, bool *whole)
{
    int result = gos_os.link(file->path, path);
    *whole = result == 0;
    return knows_no_links(result) ? claim(path) : result;
}

void gos_files_remove(const char *text_path, const char *json_path)
{
    if (text_path[0])
        (void)gos_os.unlink(text_path);
    if (json_path[0])
        (void)gos_os.unlink(json_path);
}
