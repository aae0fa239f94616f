/* Files of reports on a real file system, and with every system call failing once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/base/options.h"
#include "../../src/base/os.h"
#include "../../src/base/text.h"
#include "report_shapes.h"

static struct shape shape;
static struct gos_os real_os;
static char directory[128];
static char said[65536]; /* what went to stderr */
static size_t said_length;

/* --- world --- */

static ssize_t write_and_listen(int fd, const void *data, size_t bytes)
{
    if (fd != 2)
        return real_os.write(fd, data, bytes);
    size_t part = bytes < sizeof said - 1 - said_length ? bytes : sizeof said - 1 - said_length;
    memcpy(said + said_length, data, part);
    said_length += part;
    said[said_length] = '\0';
    return (ssize_t)bytes;
}

static void clear_directory(void)
{
    DIR *entries = opendir(directory);
    assert_non_null(entries);
    for (struct dirent *entry = readdir(entries); entry; entry = readdir(entries)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(entries), entry->d_name, 0);
    }
    closedir(entries);
}

static int begin(void **state)
{
    (void)state;
    real_os = gos_os;
    gos_os.write = write_and_listen;
    said_length = 0;
    said[0] = '\0';
    snprintf(directory, sizeof directory, "/tmp/test_report_files.XXXXXX");
    assert_non_null(mkdtemp(directory));
    gos_options.report = GOS_REPORT_TEXT | GOS_REPORT_JSON;
    gos_options.report_dir = directory;
    gos_options.report_max = 1000;
    gos_options.log = 3;
    gos_report_reset_after_fork();
    assert_true(shape_make(&shape, 0));
    shape.evidence.request.site = 0; /* made-up numbers of stacks are unknown to the product */
    shape.evidence.request.requester_module = UINT32_MAX;
    return 0;
}

static int end(void **state)
{
    (void)state;
    gos_os = real_os;
    clear_directory();
    rmdir(directory);
    shape_release(&shape);
    return 0;
}

static const char *in_directory(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static bool exists(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0;
}

static unsigned count_files(const char *suffix)
{
    unsigned count = 0;
    DIR *entries = opendir(directory);
    assert_non_null(entries);
    for (struct dirent *entry = readdir(entries); entry; entry = readdir(entries)) {
        size_t length = strlen(entry->d_name);
        if (length > strlen(suffix) && strcmp(entry->d_name + length - strlen(suffix), suffix) == 0)
            count++;
    }
    closedir(entries);
    return count;
}

static void check_starts_with(const char *path, const char *start)
{
    char buffer[64] = "";
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    assert_true(read(fd, buffer, sizeof buffer - 1) > 0);
    close(fd);
    assert_memory_equal(buffer, start, strlen(start));
}

static void forget_paths(void)
{
    shape.report.text_path[0] = '\0';
    shape.report.json_path[0] = '\0';
    shape.report.number = 0;
}

/* --- names --- */

static void files_are_private_and_named_by_host_rank_pid_and_number(void **state)
{
    (void)state;
    struct stat status;
    assert_int_equal(gos_report_write(&shape.report), 0);
    assert_string_equal(shape.report.text_path, in_directory("gpuoomshim.node-17.r3.4711.1.txt"));
    assert_string_equal(shape.report.json_path, in_directory("gpuoomshim.node-17.r3.4711.1.json"));
    assert_int_equal(shape.report.number, 1);
    assert_int_equal(lstat(shape.report.json_path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    check_starts_with(shape.report.text_path, "gpuoomshim ");
    check_starts_with(shape.report.json_path, "{\n \"schema\": \"gpuoomshim.report/1\"");
    assert_int_equal(count_files(".tmp"), 0);
    assert_int_equal(said_length, 0);
}

static void name_without_rank_has_no_rank(void **state)
{
    (void)state;
    shape.evidence.rank = -1;
    gos_options.report = GOS_REPORT_JSON;
    assert_int_equal(gos_report_write(&shape.report), 0);
    assert_string_equal(shape.report.json_path, in_directory("gpuoomshim.node-17.4711.1.json"));
    assert_string_equal(shape.report.text_path, "");
    assert_int_equal(count_files(".txt"), 0);
}

static void host_name_cannot_lead_out_of_the_directory(void **state)
{
    (void)state;
    snprintf(shape.evidence.host.hostname, sizeof shape.evidence.host.hostname, "../../etc/x y");
    assert_int_equal(gos_report_write(&shape.report), 0);
    assert_string_equal(shape.report.text_path,
                        in_directory("gpuoomshim..._.._etc_x_y.r3.4711.1.txt"));
}

static void next_report_gets_the_next_number(void **state)
{
    (void)state;
    assert_int_equal(gos_report_write(&shape.report), 0);
    forget_paths();
    assert_int_equal(gos_report_write(&shape.report), 0);
    assert_int_equal(shape.report.number, 2);
    assert_int_equal(count_files(".txt"), 2);
}

static void rewriting_keeps_the_name_and_replaces_the_content(void **state)
{
    (void)state;
    char before[512];
    assert_int_equal(gos_report_write(&shape.report), 0);
    snprintf(before, sizeof before, "%s", shape.report.json_path);
    shape.report.outcome = GOS_OUTCOME_RECOVERED_BY_CALLER;
    gos_options.report_dir = "/nonexistent"; /* plays no part any more */
    gos_options.report_max = 1;
    assert_int_equal(gos_report_write(&shape.report), 0);
    assert_string_equal(shape.report.json_path, before);
    assert_int_equal(count_files(".json"), 1);
    char content[4096] = "";
    int fd = open(before, O_RDONLY);
    assert_true(read(fd, content, sizeof content - 1) > 0);
    close(fd);
    assert_non_null(strstr(content, "recovered-by-caller"));
}

static void relative_directory_is_kept_when_the_program_moves(void **state)
{
    (void)state;
    char *home = getcwd(NULL, 0);
    assert_int_equal(chdir("/tmp"), 0);
    gos_options.report_dir = directory + strlen("/tmp/");
    assert_int_equal(gos_report_write(&shape.report), 0);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(gos_report_write(&shape.report), 0);
    assert_int_equal(shape.report.text_path[0], '/');
    assert_int_equal(count_files(".txt"), 1);
    assert_int_equal(chdir(home), 0);
    free(home);
}

/* --- what is not ours --- */

static void foreign_file_costs_a_number_and_is_left_alone(void **state)
{
    (void)state;
    int fd = open(in_directory("gpuoomshim.node-17.r3.4711.1.json"), O_CREAT | O_WRONLY, 0644);
    assert_int_equal(write(fd, "foreign", 7), 7);
    close(fd);
    assert_int_equal(gos_report_write(&shape.report), 0);
    assert_int_equal(shape.report.number, 2);
    check_starts_with(in_directory("gpuoomshim.node-17.r3.4711.1.json"), "foreign");
    assert_false(exists(in_directory("gpuoomshim.node-17.r3.4711.1.txt")));
}

static void link_at_the_name_is_never_followed(void **state)
{
    (void)state;
    char target[512];
    snprintf(target, sizeof target, "%s", in_directory("target"));
    assert_int_equal(symlink(target, in_directory("gpuoomshim.node-17.r3.4711.1.txt")), 0);
    assert_int_equal(gos_report_write(&shape.report), 0);
    assert_int_equal(shape.report.number, 2);
    assert_false(exists(target));
}

static void link_at_the_temporary_name_is_never_followed(void **state)
{
    (void)state;
    char target[512];
    char name[64];
    snprintf(target, sizeof target, "%s", in_directory("target"));
    snprintf(name, sizeof name, ".gpuoomshim.%d.0.tmp", (int)getpid());
    assert_int_equal(symlink(target, in_directory(name)), 0);
    assert_int_equal(gos_report_write(&shape.report), 0);
    assert_false(exists(target));
    assert_int_equal(count_files(".tmp"), 1); /* the foreign link */
}

static void link_put_at_our_name_is_replaced_not_followed(void **state)
{
    (void)state;
    char target[512];
    struct stat status;
    snprintf(target, sizeof target, "%s", in_directory("target"));
    assert_int_equal(gos_report_write(&shape.report), 0);
    unlink(shape.report.text_path);
    assert_int_equal(symlink(target, shape.report.text_path), 0);
    assert_int_equal(gos_report_write(&shape.report), 0);
    assert_false(exists(target));
    assert_int_equal(lstat(shape.report.text_path, &status), 0);
    assert_true(S_ISREG(status.st_mode));
}

/* --- limits and settings --- */

static bool holds(const char *path, const char *words)
{
    static char content[65536];
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    ssize_t bytes = read(fd, content, sizeof content - 1);
    close(fd);
    content[bytes > 0 ? bytes : 0] = '\0';
    return strstr(content, words) != NULL;
}

static struct gos_report another_report(void)
{
    struct gos_report report = shape.report;
    report.text_path[0] = report.json_path[0] = '\0';
    report.number = report.serial = 0;
    return report;
}

static void later_failures_take_the_place_of_the_newest_beyond_the_maximum(void **state)
{
    (void)state;
    gos_options.report_max = 2;
    for (unsigned i = 0; i < 5; i++) {
        struct gos_report report = another_report();
        shape.evidence.request.bytes = 1000 + i;
        assert_int_equal(gos_report_write(&report), 0);
        assert_int_equal(report.number, i < 2 ? i + 1 : 2);
    }
    assert_int_equal(count_files(".txt"), 2);
    assert_true(holds(in_directory("gpuoomshim.node-17.r3.4711.1.json"), "\"bytes\": 1000,"));
    assert_true(holds(in_directory("gpuoomshim.node-17.r3.4711.2.json"), "\"bytes\": 1004,"));
    const char *line = strstr(said, "GPUOOMSHIM_REPORT_MAX");
    assert_non_null(line);
    assert_null(strstr(line + 1, "GPUOOMSHIM_REPORT_MAX"));
}

static void report_whose_files_were_taken_is_not_written_over_the_later_one(void **state)
{
    (void)state;
    gos_options.report_max = 1;
    struct gos_report first = another_report(), second = another_report();
    assert_int_equal(gos_report_write(&first), 0);
    shape.evidence.request.bytes = 2000;
    assert_int_equal(gos_report_write(&second), 0);
    shape.evidence.request.bytes = 1000;
    first.outcome = GOS_OUTCOME_RECOVERED_BY_CALLER;
    assert_int_equal(gos_report_write(&first), 0);
    assert_true(holds(second.json_path, "\"bytes\": 2000,"));
    first.outcome = GOS_OUTCOME_FAILED;
    first.newest = true; /* but when it fails again, it is the last one */
    assert_int_equal(gos_report_write(&first), 0);
    assert_true(holds(second.json_path, "\"bytes\": 1000,"));
    assert_int_equal(count_files(".json"), 1);
}

static void report_whose_files_were_taken_long_ago_is_not_written_over_the_last_one(void **state)
{
    (void)state;
    gos_options.report_max = 1;
    struct gos_report first = another_report(), second;
    assert_int_equal(gos_report_write(&first), 0);
    shape.evidence.request.bytes = 2000;
    for (int i = 0; i < 100; i++) {
        second = another_report();
        assert_int_equal(gos_report_write(&second), 0);
    }
    shape.evidence.request.bytes = 1000;
    first.outcome = GOS_OUTCOME_RECOVERED_BY_CALLER;
    assert_int_equal(gos_report_write(&first), 0);
    assert_true(holds(second.json_path, "\"bytes\": 2000,"));
}

static void survived_one_makes_room_and_the_last_failure_is_the_newest_report(void **state)
{
    (void)state;
    gos_options.report_max = 2;
    struct gos_report survived = another_report(), failed = another_report();
    struct gos_report last = another_report();
    assert_int_equal(gos_report_write(&survived), 0);
    survived.outcome = GOS_OUTCOME_RECOVERED_BY_CALLER;
    assert_int_equal(gos_report_write(&survived), 0);
    assert_int_equal(gos_report_write(&failed), 0);
    assert_int_equal(gos_report_write(&last), 0);
    assert_int_equal(last.number, 3);
    assert_false(exists(survived.text_path));
    assert_true(exists(failed.text_path));
    assert_int_equal(count_files(".txt"), 2);
}

static void report_that_is_told_again_takes_the_next_number(void **state)
{
    (void)state;
    struct gos_report first = another_report(), second = another_report();
    assert_int_equal(gos_report_write(&first), 0);
    assert_int_equal(gos_report_write(&second), 0);
    assert_int_equal(gos_report_write(&first), 0); /* in its place */
    assert_int_equal(first.number, 1);
    first.newest = true;
    assert_int_equal(gos_report_write(&first), 0);
    assert_int_equal(first.number, 3);
    assert_int_equal(gos_report_write(&first), 0); /* it is the newest already */
    assert_int_equal(first.number, 3);
    assert_false(exists(in_directory("gpuoomshim.node-17.r3.4711.1.txt")));
    assert_false(exists(in_directory("gpuoomshim.node-17.r3.4711.1.json")));
    assert_int_equal(count_files(".txt"), 2);
    assert_int_equal(count_files(".json"), 2);
}

static void snapshots_leave_failures_and_the_exit_their_room(void **state)
{
    (void)state;
    gos_options.report_max = 2;
    shape.report.kind = GOS_REPORT_SNAPSHOT;
    for (int i = 0; i < 3; i++) {
        forget_paths();
        assert_int_equal(gos_report_write(&shape.report), i < 2 ? 0 : -EDQUOT);
    }
    assert_null(strstr(said, "GPUOOMSHIM_REPORT_MAX"));
    shape.report.kind = GOS_REPORT_FAILURE;
    for (int i = 0; i < 2; i++) {
        forget_paths();
        assert_int_equal(gos_report_write(&shape.report), 0);
    }
    assert_int_equal(count_files(".txt"), 4);
    shape.report.kind = GOS_REPORT_EXIT;
    forget_paths();
    assert_int_equal(gos_report_write(&shape.report), 0);
}

static void nothing_is_written_when_reports_are_off(void **state)
{
    (void)state;
    gos_options.report = 0;
    assert_int_equal(gos_report_write(&shape.report), 0);
    assert_string_equal(shape.report.text_path, "");
    assert_int_equal(count_files("t") + count_files("n"), 0);
}

static void named_files_replace_what_is_there(void **state)
{
    (void)state;
    char prefix[512];
    snprintf(prefix, sizeof prefix, "%s", in_directory("before"));
    shape.report.path_prefix = prefix;
    gos_options.report_max = 0;
    int fd = open(in_directory("before.txt"), O_CREAT | O_WRONLY, 0644);
    assert_int_equal(write(fd, "old", 3), 3);
    close(fd);
    assert_int_equal(gos_report_write(&shape.report), 0);
    assert_string_equal(shape.report.json_path, in_directory("before.json"));
    check_starts_with(in_directory("before.txt"), "gpuoomshim ");
}

static void named_file_in_a_missing_directory_is_an_error_without_noise(void **state)
{
    (void)state;
    shape.report.path_prefix = "/nonexistent/x";
    assert_int_equal(gos_report_write(&shape.report), -ENOENT);
    assert_int_equal(said_length, 0);
    assert_string_equal(shape.report.text_path, "");
}

/* --- when it cannot be written --- */

static void missing_directory_sends_reports_to_the_temporary_one(void **state)
{
    (void)state;
    gos_options.report_dir = "/nonexistent/reports";
    assert_int_equal(gos_report_write(&shape.report), 0);
    const char *tmp = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    assert_memory_equal(shape.report.text_path, tmp, strlen(tmp));
    assert_true(exists(shape.report.text_path));
    assert_non_null(strstr(said, "/nonexistent/reports"));
    assert_non_null(strstr(said, "no such directory"));
    unlink(shape.report.text_path);
    unlink(shape.report.json_path);
}

static int open_nothing(const char *path, int flags, unsigned mode)
{
    (void)path;
    (void)flags;
    (void)mode;
    return -EMFILE;
}

static void limit_of_the_process_is_not_blamed_on_the_directory(void **state)
{
    (void)state;
    gos_os.open = open_nothing;
    assert_int_equal(gos_report_write(&shape.report), -EMFILE);
    assert_non_null(strstr(said, "too many open files (24)\n"));
}

static ssize_t write_to_full_disk(int fd, const void *data, size_t bytes)
{
    return fd == 2 ? write_and_listen(fd, data, bytes) : -ENOSPC;
}

static void full_disk_leaves_no_file_and_shows_the_first_screen_once(void **state)
{
    (void)state;
    gos_os.write = write_to_full_disk;
    for (int i = 0; i < 2; i++) {
        forget_paths();
        assert_int_equal(gos_report_write(&shape.report), -ENOSPC);
        assert_string_equal(shape.report.text_path, "");
    }
    assert_int_equal(count_files("t") + count_files("n") + count_files("p"), 0);
    assert_non_null(strstr(said, "no space left on the device (28); set GPUOOMSHIM_REPORT_DIR"));
    const char *screen = strstr(said, "exhausted-by-process (proven)");
    assert_non_null(screen);
    assert_null(strstr(screen + 1, "exhausted-by-process (proven)"));
}

static void earlier_report_survives_a_rewrite_that_fails(void **state)
{
    (void)state;
    assert_int_equal(gos_report_write(&shape.report), 0);
    gos_os.write = write_to_full_disk;
    assert_int_equal(gos_report_write(&shape.report), -ENOSPC);
    check_starts_with(shape.report.text_path, "gpuoomshim ");
    check_starts_with(shape.report.json_path, "{\n \"schema\"");
    assert_int_equal(count_files(".tmp"), 0);
}

/* --- every call fails once --- */

static int calls_left;

static bool fails_now(void)
{
    return calls_left-- == 0;
}

static int open_or_fail(const char *path, int flags, unsigned mode)
{
    return fails_now() ? -EIO : real_os.open(path, flags, mode);
}

static ssize_t write_or_fail(int fd, const void *data, size_t bytes)
{
    if (fd == 2)
        return write_and_listen(fd, data, bytes);
    return fails_now() ? -EIO : real_os.write(fd, data, bytes);
}

static int sync_or_fail(int fd)
{
    return fails_now() ? -EIO : real_os.sync(fd);
}

static int close_or_fail(int fd)
{
    int result = real_os.close(fd);
    return fails_now() ? -EIO : result;
}

static int rename_or_fail(const char *from, const char *to)
{
    return fails_now() ? -EIO : real_os.rename(from, to);
}

static int link_or_fail(const char *path, const char *name)
{
    return fails_now() ? -EIO : real_os.link(path, name);
}

static int link_refused(const char *path, const char *name)
{
    (void)path;
    (void)name;
    return -EPERM;
}

static void *map_or_fail(size_t bytes)
{
    return fails_now() ? NULL : real_os.map(bytes);
}

static ssize_t readlink_or_fail(const char *path, char *buffer, size_t bytes)
{
    return fails_now() ? -EIO : real_os.readlink(path, buffer, bytes);
}

static void check_path(const char *path, const char *start)
{
    if (path[0])
        check_starts_with(path, start);
}

/* Whatever failed: files are whole or absent, and the paths tell which. */
static void check_world(int result)
{
    check_path(shape.report.text_path, "gpuoomshim ");
    check_path(shape.report.json_path, "{\n \"schema\"");
    assert_int_equal(count_files(".tmp"), 0);
    assert_int_equal(count_files(".txt"), shape.report.text_path[0] ? 1 : 0);
    assert_int_equal(count_files(".json"), shape.report.json_path[0] ? 1 : 0);
    if (result == 0)
        assert_true(shape.report.text_path[0] && shape.report.json_path[0]);
}

static void fail_each_call_once(void)
{
    gos_os.open = open_or_fail;
    gos_os.write = write_or_fail;
    gos_os.sync = sync_or_fail;
    gos_os.close = close_or_fail;
    gos_os.rename = rename_or_fail;
    gos_os.link = link_or_fail;
    gos_os.map = map_or_fail;
    gos_os.readlink = readlink_or_fail;
}

static void fail_each_call_of_a_new_report(void)
{
    int n = 0;
    int failures = 0;
    do {
        gos_report_reset_after_fork();
        forget_paths();
        calls_left = n++;
        int result = gos_report_write(&shape.report);
        int used = calls_left;
        calls_left = -1;
        check_world(result);
        failures += result != 0;
        clear_directory();
        calls_left = used;
    } while (calls_left < 0);
    assert_true(n > 10);
    assert_true(failures > 5);
}

static void every_call_may_fail_and_files_are_whole_or_absent(void **state)
{
    (void)state;
    fail_each_call_once();
    fail_each_call_of_a_new_report();
}

static void every_call_may_fail_where_files_have_one_name(void **state)
{
    (void)state;
    fail_each_call_once();
    gos_os.link = link_refused;
    fail_each_call_of_a_new_report();
}

static void numbers_go_on_where_files_have_one_name(void **state)
{
    (void)state;
    gos_os.link = link_refused;
    assert_int_equal(gos_report_write(&shape.report), 0);
    forget_paths();
    shape.report.number = 0;
    gos_report_reset_after_fork();
    assert_int_equal(gos_report_write(&shape.report), 0);
    assert_int_equal(shape.report.number, 2);
    assert_int_equal(count_files(".json"), 2);
    assert_int_equal(count_files(".tmp"), 0);
}

static void every_call_may_fail_while_rewriting_and_the_old_report_stays(void **state)
{
    (void)state;
    int n = 0;
    assert_int_equal(gos_report_write(&shape.report), 0);
    fail_each_call_once();
    do {
        calls_left = n++;
        (void)gos_report_write(&shape.report);
        int used = calls_left;
        calls_left = -1;
        check_world(0);
        calls_left = used;
    } while (calls_left < 0);
    assert_true(n > 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
        TEST(files_are_private_and_named_by_host_rank_pid_and_number),
        TEST(name_without_rank_has_no_rank),
        TEST(host_name_cannot_lead_out_of_the_directory),
        TEST(next_report_gets_the_next_number),
        TEST(rewriting_keeps_the_name_and_replaces_the_content),
        TEST(relative_directory_is_kept_when_the_program_moves),
        TEST(foreign_file_costs_a_number_and_is_left_alone),
        TEST(link_at_the_name_is_never_followed),
        TEST(link_at_the_temporary_name_is_never_followed),
        TEST(link_put_at_our_name_is_replaced_not_followed),
        TEST(later_failures_take_the_place_of_the_newest_beyond_the_maximum),
        TEST(report_whose_files_were_taken_is_not_written_over_the_later_one),
        TEST(report_whose_files_were_taken_long_ago_is_not_written_over_the_last_one),
        TEST(survived_one_makes_room_and_the_last_failure_is_the_newest_report),
        TEST(report_that_is_told_again_takes_the_next_number),
        TEST(snapshots_leave_failures_and_the_exit_their_room),
        TEST(nothing_is_written_when_reports_are_off),
        TEST(named_files_replace_what_is_there),
        TEST(named_file_in_a_missing_directory_is_an_error_without_noise),
        TEST(missing_directory_sends_reports_to_the_temporary_one),
        TEST(limit_of_the_process_is_not_blamed_on_the_directory),
        TEST(full_disk_leaves_no_file_and_shows_the_first_screen_once),
        TEST(earlier_report_survives_a_rewrite_that_fails),
        TEST(every_call_may_fail_and_files_are_whole_or_absent),
        TEST(every_call_may_fail_where_files_have_one_name),
        TEST(numbers_go_on_where_files_have_one_name),
        TEST(every_call_may_fail_while_rewriting_and_the_old_report_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
