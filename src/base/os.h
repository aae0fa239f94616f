/*
 * The OS seam: every call that leaves the process, in one table, so that a
 * test can make each of them fail.
 *
 * Rules of the table: results are 0 or more on success and -errno on failure;
 * errno itself is never read or written by callers.  The defaults are raw
 * system calls, not libc's wrappers, because a host or another preload library
 * may have replaced those, and because wrappers may be cancellation points.
 *
 * Hook context: every member is allowed in a hook; none allocates.
 */
#ifndef GOS_BASE_OS_H
#define GOS_BASE_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Of an open file. */
struct gos_file_status {
    bool is_regular;
    uint32_t user;
    uint32_t link_count;
    uint64_t bytes;
    uint64_t inode;
};

struct gos_os {
    int (*open)(const char *path, int flags, unsigned mode); /* close-on-exec; 3 or more */
    ssize_t (*read)(int fd, void *buffer, size_t bytes);
    ssize_t (*write)(int fd, const void *buffer, size_t bytes);
    ssize_t (*read_at)(int fd, void *buffer, size_t bytes, uint64_t offset);
    ssize_t (*write_at)(int fd, const void *buffer, size_t bytes, uint64_t offset);
    int (*close)(int fd);
    int (*status)(int fd, struct gos_file_status *status);
    /* Beyond RLIMIT_FSIZE it is a signal. */
    int (*resize)(int fd, uint64_t bytes);
    /* Room on the disk for a part of the file; -EOPNOTSUPP where the file system knows no such
     * thing. */
    int (*allocate)(int fd, uint64_t offset, uint64_t bytes);
    int (*sync)(int fd);
    int (*rename)(const char *from, const char *to);
    /* A second name for a file; -EEXIST when anything has that name. */
    int (*link)(const char *path, const char *name);
    int (*unlink)(const char *path);
    /* The link's text, not terminated; bytes written. */
    ssize_t (*readlink)(const char *path, char *buffer, size_t bytes);
    /* Directory entries as getdents64 gives them. */
    ssize_t (*list)(int fd, void *buffer, size_t bytes);
    /* Zeroed anonymous memory, NULL on failure. */
    void *(*map)(size_t bytes);
    /* The file itself, to be read and written; NULL on failure. */
    void *(*map_file)(int fd, size_t bytes);
    void (*unmap)(void *memory, size_t bytes);
    uint64_t (*monotonic_ns)(void); /* CLOCK_MONOTONIC */
    uint64_t (*wall_ns)(void);      /* CLOCK_REALTIME, since 1970 */
    void (*sleep_ns)(uint64_t ns);
    int (*pid)(void);
    int (*tid)(void);
    uint32_t (*user)(void); /* the effective one */
    /* Block exactly the signals of the set (bit 0 is signal 1); old, what was blocked, may be NULL.
     */
    int (*signal_mask)(uint64_t set, uint64_t *old);
    /* Resource limit RLIMIT_*; UINT64_MAX is "unlimited". */
    int (*limit)(int resource, uint64_t *soft, uint64_t *hard);
    int (*hostname)(char *buffer, size_t bytes);
    /* Wait while *word == expected, at most timeout_ns (0: for ever). */
    int (*futex_wait)(uint32_t *word, uint32_t expected, uint64_t timeout_ns);
    void (*futex_wake)(uint32_t *word, int count);
};

/* The table in use; const in the product, replaced member by member in tests. */
extern struct gos_os gos_os;

/*
 * Read a whole small file (a /proc entry) into buffer and terminate it.
 * Returns the number of bytes, or -errno; a longer file is cut silently.
 */
ssize_t gos_os_read_file(const char *path, char *buffer, size_t bytes);

/* Write everything, through short writes and EINTR.  0 or -errno. */
__attribute__((warn_unused_result)) int gos_os_write_all(int fd, const void *data, size_t bytes);

#endif
