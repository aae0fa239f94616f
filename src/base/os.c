#include "os.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "syscall.h"

#define NS_PER_SECOND 1000000000u

static long call1(long number, long a)
{
    return gos_syscall(number, a, 0, 0, 0, 0, 0);
}

static long call3(long number, long a, long b, long c)
{
    return gos_syscall(number, a, b, c, 0, 0, 0);
}

static long call4(long number, long a, long b, long c, long d)
{
    return gos_syscall(number, a, b, c, d, 0, 0);
}

/*
 * A program that has closed its standard streams may still write to them, on
 * another thread: what it says to nobody must not end up in a file of ours.
 */
static int beyond_standard_streams(int fd, bool is_new_file)
{
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int moved = (int)call3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    call1(SYS_close, fd);
    if (moved < 0 || !is_new_file)
        return moved;
    call3(SYS_lseek, moved, 0, SEEK_SET); /* it may have said something just now */
    call3(SYS_ftruncate, moved, 0, 0);
    return moved;
}

/* Close-on-exec always: a file of ours must not live on in the host's children. */
static int open_raw(const char *path, int flags, unsigned mode)
{
    int fd = (int)call4(SYS_openat, AT_FDCWD, (long)path, flags | O_CLOEXEC, (long)mode);
    return beyond_standard_streams(fd, (flags & (O_EXCL | O_TRUNC)) != 0);
}

static ssize_t read_raw(int fd, void *buffer, size_t bytes)
{
    return call3(SYS_read, fd, (long)buffer, (long)bytes);
}

static ssize_t write_raw(int fd, const void *buffer, size_t bytes)
{
    return call3(SYS_write, fd, (long)buffer, (long)bytes);
}

static ssize_t read_at_raw(int fd, void *buffer, size_t bytes, uint64_t offset)
{
    return call4(SYS_pread64, fd, (long)buffer, (long)bytes, (long)offset);
}

static ssize_t write_at_raw(int fd, const void *buffer, size_t bytes, uint64_t offset)
{
    return call4(SYS_pwrite64, fd, (long)buffer, (long)bytes, (long)offset);
}

static int close_raw(int fd)
{
    return (int)call1(SYS_close, fd);
}

static int status_raw(int fd, struct gos_file_status *status)
{
    struct stat found = {0};
    int result = (int)call3(SYS_fstat, fd, (long)&found, 0);

    if (result == 0)
        *status = (struct gos_file_status){.is_regular = S_ISREG(found.st_mode),
                                           .user = found.st_uid,
                                           .link_count = (uint32_t)found.st_nlink,
                                           .bytes = (uint64_t)found.st_size,
                                           .inode = found.st_ino};
    return result;
}

static int resize_raw(int fd, uint64_t bytes)
{
    return (int)call3(SYS_ftruncate, fd, (long)bytes, 0);
}

static int allocate_raw(int fd, uint64_t offset, uint64_t bytes)
{
    return (int)call4(SYS_fallocate, fd, 0, (long)offset, (long)bytes);
}

static int sync_raw(int fd)
{
    return (int)call1(SYS_fsync, fd);
}

static int rename_raw(const char *from, const char *to)
{
    return (int)call4(SYS_renameat, AT_FDCWD, (long)from, AT_FDCWD, (long)to);
}

static int link_raw(const char *path, const char *name)
{
    return (int)gos_syscall(SYS_linkat, AT_FDCWD, (long)path, AT_FDCWD, (long)name, 0, 0);
}

static int unlink_raw(const char *path)
{
    return (int)call3(SYS_unlinkat, AT_FDCWD, (long)path, 0);
}

static ssize_t readlink_raw(const char *path, char *buffer, size_t bytes)
{
    return call4(SYS_readlinkat, AT_FDCWD, (long)path, (long)buffer, (long)bytes);
}

static ssize_t list_raw(int fd, void *buffer, size_t bytes)
{
    return call3(SYS_getdents64, fd, (long)buffer, (long)bytes);
}

static void *map_pages(size_t bytes, int flags, int fd)
{
    long result = gos_syscall(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE, flags, fd, 0);

    /* The kernel gives either an address or one of the last 4095 numbers, -errno. */
    return (unsigned long)result > -4096ul ? NULL : (void *)result;
}

static void *map_raw(size_t bytes)
{
    return map_pages(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static void *map_file_raw(int fd, size_t bytes)
{
    return map_pages(bytes, MAP_SHARED, fd);
}

static void unmap_raw(void *memory, size_t bytes)
{
    call3(SYS_munmap, (long)memory, (long)bytes, 0);
}

static uint64_t monotonic_raw(void)
{
    return gos_clock_read(CLOCK_MONOTONIC);
}

static uint64_t wall_raw(void)
{
    return gos_clock_read(CLOCK_REALTIME);
}

static struct timespec timespec_of(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_SECOND),
                             .tv_nsec = (long)(ns % NS_PER_SECOND)};
}

static void sleep_raw(uint64_t ns)
{
    struct timespec left = timespec_of(ns);

    while (call4(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, (long)&left, (long)&left) == -EINTR)
        continue;
}

static int pid_raw(void)
{
    return (int)call1(SYS_getpid, 0);
}

static int tid_raw(void)
{
    return (int)call1(SYS_gettid, 0);
}

static uint32_t user_raw(void)
{
    return (uint32_t)call1(SYS_geteuid, 0);
}

static int signal_mask_raw(uint64_t set, uint64_t *old)
{
    return (int)call4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&set, (long)old, sizeof(set));
}

static int limit_raw(int resource, uint64_t *soft, uint64_t *hard)
{
    /* The kernel's own "unlimited" for this call is ~0, the same as ours. */
    struct {
        uint64_t soft, hard;
    } limit = {0, 0};
    int result = (int)call4(SYS_prlimit64, 0, resource, 0, (long)&limit);

    if (result == 0) {
        *soft = limit.soft;
        *hard = limit.hard;
    }
    return result;
}

static int hostname_raw(char *buffer, size_t bytes)
{
    struct utsname names;
    int result;

    if (bytes == 0)
        return -EINVAL;
    result = (int)call1(SYS_uname, (long)&names);
    if (result == 0) {
        size_t length = strnlen(names.nodename, sizeof(names.nodename));

        length = length < bytes - 1 ? length : bytes - 1;
        memcpy(buffer, names.nodename, length);
        buffer[length] = '\0';
    }
    return result;
}

static int futex_wait_raw(uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    struct timespec timeout = timespec_of(timeout_ns);

    return (int)call4(SYS_futex, (long)word, FUTEX_WAIT_PRIVATE, (long)expected,
                      timeout_ns ? (long)&timeout : 0);
}

static void futex_wake_raw(uint32_t *word, int count)
{
    call3(SYS_futex, (long)word, FUTEX_WAKE_PRIVATE, count);
}

struct gos_os gos_os = {
    .open = open_raw,
    .read = read_raw,
    .write = write_raw,
    .read_at = read_at_raw,
    .write_at = write_at_raw,
    .close = close_raw,
    .status = status_raw,
    .resize = resize_raw,
    .allocate = allocate_raw,
    .sync = sync_raw,
    .rename = rename_raw,
    .link = link_raw,
    .unlink = unlink_raw,
    .readlink = readlink_raw,
    .list = list_raw,
    .map = map_raw,
    .map_file = map_file_raw,
    .unmap = unmap_raw,
    .monotonic_ns = monotonic_raw,
    .wall_ns = wall_raw,
    .sleep_ns = sleep_raw,
    .pid = pid_raw,
    .tid = tid_raw,
    .user = user_raw,
    .signal_mask = signal_mask_raw,
    .limit = limit_raw,
    .hostname = hostname_raw,
    .futex_wait = futex_wait_raw,
    .futex_wake = futex_wake_raw,
};

static ssize_t read_until_full(int fd, char *buffer, size_t bytes)
{
    size_t done = 0;

    while (done < bytes) {
        ssize_t got = gos_os.read(fd, buffer + done, bytes - done);

        if (got == -EINTR)
            continue;
        if (got < 0)
            return got;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

ssize_t gos_os_read_file(const char *path, char *buffer, size_t bytes)
{
    ssize_t got;
    int fd;

    if (bytes == 0)
        return -EINVAL;
    buffer[0] = '\0';
    fd = gos_os.open(path, O_RDONLY, 0);
    if (fd < 0)
        return fd;
    got = read_until_full(fd, buffer, bytes - 1);
    gos_os.close(fd);
    buffer[got > 0 ? got : 0] = '\0';
    return got;
}

int gos_os_write_all(int fd, const void *data, size_t bytes)
{
    const char *from = data;

    while (bytes > 0) {
        ssize_t put = gos_os.write(fd, from, bytes);

        if (put == -EINTR)
            continue;
        if (put < 0)
            return (int)put;
        if (put == 0)
            return -EIO;
        from += put;
        bytes -= (size_t)put;
    }
    return 0;
}
