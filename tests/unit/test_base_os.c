#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../src/base/os.h"

static struct gos_os original;
static char directory[] = "/tmp/gos-os-XXXXXX";
static char path[64], other[64];

static int make_directory(void **state)
{
    (void)state;
    original = gos_os;
    if (!mkdtemp(directory))
        return -1;
    snprintf(path, sizeof(path), "%s/one", directory);
    snprintf(other, sizeof(other), "%s/two", directory);
    return 0;
}

static int remove_directory(void **state)
{
    (void)state;
    unlink(path);
    unlink(other);
    return rmdir(directory);
}

static int restore_table(void **state)
{
    (void)state;
    gos_os = original;
    return 0;
}

static void files_are_written_renamed_read_and_removed(void **state)
{
    char buffer[64];
    int fd = gos_os.open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);

    (void)state;
    assert_true(fd >= 0);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(gos_os_write_all(fd, "hello", 5), 0);
    assert_int_equal(gos_os.sync(fd), 0);
    assert_int_equal(gos_os.close(fd), 0);
    assert_int_equal(gos_os.link(path, other), 0);
    assert_int_equal(gos_os.link(path, other), -EEXIST);
    assert_int_equal(gos_os.unlink(other), 0);
    assert_int_equal(gos_os.rename(path, other), 0);
    assert_int_equal(gos_os_read_file(path, buffer, sizeof(buffer)), -ENOENT);
    assert_int_equal(gos_os_read_file(other, buffer, sizeof(buffer)), 5);
    assert_string_equal(buffer, "hello");
    assert_int_equal(gos_os.unlink(other), 0);
    assert_int_equal(gos_os.unlink(other), -ENOENT);
}

static void closed_standard_stream_is_no_place_for_a_file(void **state)
{
    (void)state;
    int kept = dup(STDIN_FILENO);
    close(STDIN_FILENO);
    int fd = gos_os.open("/proc/self/stat", O_RDONLY, 0);
    bool is_still_closed = fcntl(STDIN_FILENO, F_GETFD) < 0;
    if (kept >= 0)
        dup2(kept, STDIN_FILENO);
    assert_true(fd > STDERR_FILENO);
    assert_true(is_still_closed);
    assert_int_not_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    char first;
    assert_int_equal(gos_os.read(fd, &first, 1), 1);
    gos_os.close(fd);
    close(kept);
}

static void failures_are_negative_errno_and_leave_errno_alone(void **state)
{
    char buffer[8];
    uint64_t soft, hard;

    (void)state;
    errno = 4711;
    assert_int_equal(gos_os.open("/nonexistent/file", O_RDONLY, 0), -ENOENT);
    assert_int_equal(gos_os.read(-1, buffer, 1), -EBADF);
    assert_int_equal(gos_os.write(-1, buffer, 1), -EBADF);
    assert_int_equal(gos_os.close(-1), -EBADF);
    assert_int_equal(gos_os.sync(-1), -EBADF);
    assert_int_equal(gos_os.rename("/nonexistent/a", "/nonexistent/b"), -ENOENT);
    assert_int_equal(gos_os.link("/nonexistent/a", "/nonexistent/b"), -ENOENT);
    assert_int_equal(gos_os.readlink("/nonexistent", buffer, sizeof(buffer)), -ENOENT);
    assert_int_equal(gos_os.list(-1, buffer, sizeof(buffer)), -EBADF);
    assert_int_equal(gos_os.limit(-1, &soft, &hard), -EINVAL);
    assert_null(gos_os.map(SIZE_MAX / 2));
    assert_int_equal(errno, 4711);
}

static void links_and_directories_are_read(void **state)
{
    char target[256], expected[256];
    _Alignas(8) char entries[4096];
    ssize_t length = gos_os.readlink("/proc/self/exe", target, sizeof(target));
    int fd = gos_os.open("/proc/self", O_RDONLY | O_DIRECTORY, 0);

    (void)state;
    assert_int_equal(length, readlink("/proc/self/exe", expected, sizeof(expected)));
    assert_memory_equal(target, expected, (size_t)length);
    assert_true(gos_os.list(fd, entries, sizeof(entries)) > 0);
    gos_os.close(fd);
}

static void mapped_memory_is_zero_and_writable(void **state)
{
    unsigned char *memory = gos_os.map(8192);

    (void)state;
    assert_non_null(memory);
    for (int i = 0; i < 8192; i++)
        assert_int_equal(memory[i], 0);
    memset(memory, 1, 8192);
    gos_os.unmap(memory, 8192);
}

static uint64_t libc_ns(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void clocks_agree_with_the_c_library(void **state)
{
    uint64_t before = libc_ns(CLOCK_MONOTONIC), ours = gos_os.monotonic_ns();
    uint64_t wall_before = libc_ns(CLOCK_REALTIME), wall = gos_os.wall_ns();

    (void)state;
    assert_in_range(ours, before, libc_ns(CLOCK_MONOTONIC));
    assert_in_range(wall, wall_before, libc_ns(CLOCK_REALTIME));
}

static void sleep_lasts_at_least_as_long_as_asked(void **state)
{
    uint64_t start = gos_os.monotonic_ns();

    (void)state;
    gos_os.sleep_ns(2000000);
    assert_true(gos_os.monotonic_ns() - start >= 2000000);
}

static void process_limits_and_host_agree_with_the_c_library(void **state)
{
    struct rlimit limit;
    uint64_t soft = 0, hard = 0;
    char name[65], expected[65], cut[3];

    (void)state;
    assert_int_equal(gos_os.pid(), getpid());
    assert_int_equal(gos_os.tid(), syscall(SYS_gettid));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(gos_os.limit(RLIMIT_NOFILE, &soft, &hard), 0);
    assert_int_equal(soft, limit.rlim_cur);
    assert_int_equal(hard, limit.rlim_max);
    assert_int_equal(gethostname(expected, sizeof(expected)), 0);
    assert_int_equal(gos_os.hostname(name, sizeof(name)), 0);
    assert_string_equal(name, expected);
    assert_int_equal(gos_os.hostname(cut, sizeof(cut)), 0);
    assert_int_equal(strlen(cut), strlen(expected) < 2 ? strlen(expected) : 2);
}

static void futex_wait_ends_when_the_value_differs_or_the_time_is_up(void **state)
{
    uint32_t word = 1;
    uint64_t start = gos_os.monotonic_ns();

    (void)state;
    assert_int_equal(gos_os.futex_wait(&word, 2, 0), -EAGAIN);
    assert_int_equal(gos_os.futex_wait(&word, 1, 3000000), -ETIMEDOUT);
    assert_true(gos_os.monotonic_ns() - start >= 3000000);
}

static void a_long_file_is_cut_to_the_buffer(void **state)
{
    char small[8];

    (void)state;
    assert_int_equal(gos_os_read_file("/proc/self/status", small, sizeof(small)), 7);
    assert_memory_equal(small, "Name:\t", 6);
    assert_int_equal(small[7], '\0');
    assert_int_equal(gos_os_read_file("/proc/self/status", small, 0), -EINVAL);
}

/* A file that comes in pieces, with interruptions between. */
static int piece;

static ssize_t read_pieces(int fd, void *buffer, size_t bytes)
{
    static const char *const pieces[] = {"ab", NULL, "c", NULL, "de"};
    int now = piece++;

    (void)fd;
    if (now >= 5)
        return 0;
    if (!pieces[now])
        return -EINTR;
    assert_true(bytes >= strlen(pieces[now]));
    memcpy(buffer, pieces[now], strlen(pieces[now]));
    return (ssize_t)strlen(pieces[now]);
}

static void reading_goes_on_after_short_reads_and_interruptions(void **state)
{
    char buffer[32];

    (void)state;
    piece = 0;
    gos_os.read = read_pieces;
    assert_int_equal(gos_os_read_file("/proc/self/status", buffer, sizeof(buffer)), 5);
    assert_string_equal(buffer, "abcde");
}

static ssize_t read_fails(int fd, void *buffer, size_t bytes)
{
    (void)fd, (void)buffer, (void)bytes;
    return -EIO;
}

static int closed;

static int close_counted(int fd)
{
    closed++;
    return original.close(fd);
}

static void a_failing_read_is_returned_and_the_file_closed(void **state)
{
    char buffer[32] = "old";

    (void)state;
    closed = 0;
    gos_os.read = read_fails;
    gos_os.close = close_counted;
    assert_int_equal(gos_os_read_file("/proc/self/status", buffer, sizeof(buffer)), -EIO);
    assert_string_equal(buffer, "");
    assert_int_equal(closed, 1);
}

static char written[64];
static size_t written_length;
static int write_calls, fail_at, fail_with;

/* Two bytes at a time; call number fail_at fails. */
static ssize_t write_short(int fd, const void *data, size_t bytes)
{
    size_t now = bytes < 2 ? bytes : 2;

    (void)fd;
    if (++write_calls == fail_at)
        return fail_with;
    memcpy(written + written_length, data, now);
    written_length += now;
    return (ssize_t)now;
}

static int write_with_failure(int at, int error)
{
    write_calls = 0;
    written_length = 0;
    fail_at = at;
    fail_with = error;
    return gos_os_write_all(1, "abcdefg", 7);
}

static void writing_survives_interruption_at_every_call(void **state)
{
    (void)state;
    gos_os.write = write_short;
    for (int at = 0; at <= 5; at++) {
        assert_int_equal(write_with_failure(at, -EINTR), 0);
        assert_int_equal(written_length, 7);
        assert_memory_equal(written, "abcdefg", 7);
    }
}

static void writing_returns_the_error_of_whichever_call_failed(void **state)
{
    int at = 1;

    (void)state;
    gos_os.write = write_short;
    while (write_with_failure(at, -ENOSPC) != 0) {
        assert_int_equal(written_length, 2 * (at - 1));
        at++;
    }
    assert_int_equal(at, 5);
    assert_int_equal(write_with_failure(2, 0), -EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_written_renamed_read_and_removed),
        cmocka_unit_test(closed_standard_stream_is_no_place_for_a_file),
        cmocka_unit_test(failures_are_negative_errno_and_leave_errno_alone),
        cmocka_unit_test(links_and_directories_are_read),
        cmocka_unit_test(mapped_memory_is_zero_and_writable),
        cmocka_unit_test(clocks_agree_with_the_c_library),
        cmocka_unit_test(sleep_lasts_at_least_as_long_as_asked),
        cmocka_unit_test(process_limits_and_host_agree_with_the_c_library),
        cmocka_unit_test(futex_wait_ends_when_the_value_differs_or_the_time_is_up),
        cmocka_unit_test(a_long_file_is_cut_to_the_buffer),
        cmocka_unit_test_teardown(reading_goes_on_after_short_reads_and_interruptions,
                                  restore_table),
        cmocka_unit_test_teardown(a_failing_read_is_returned_and_the_file_closed, restore_table),
        cmocka_unit_test_teardown(writing_survives_interruption_at_every_call, restore_table),
        cmocka_unit_test_teardown(writing_returns_the_error_of_whichever_call_failed,
                                  restore_table),
    };

    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
