/*
 * A report whose n-th system call fails: either both files are there and whole,
 * or the function says so and no half-written file remains.  The same where the
 * process is killed at the n-th call.
 */
#include "nth_call.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../../src/base/options.h"
#include "../../src/base/os.h"
#include "../../src/report/report.h"

static struct gos_os real;
static char folder[256];

#define FAILING(member, type, parameters, arguments, error)                                        \
    static type failing_##member parameters                                                        \
    {                                                                                              \
        return fails_now() ? (type)(error) : real.member arguments;                                \
    }
FAILING(open, int, (const char *path, int flags, unsigned mode), (path, flags, mode), -EACCES)
FAILING(write, ssize_t, (int fd, const void *buffer, size_t bytes), (fd, buffer, bytes), -ENOSPC)
FAILING(close, int, (int fd), (fd), -EIO)
FAILING(sync, int, (int fd), (fd), -EIO)
FAILING(rename, int, (const char *from, const char *to), (from, to), -ENOSPC)
FAILING(link, int, (const char *path, const char *name), (path, name), -ENOSPC)
FAILING(map, void *, (size_t bytes), (bytes), 0)

static void fail_open(void)
{
    gos_os.open = failing_open;
}
static void fail_write(void)
{
    gos_os.write = failing_write;
}
static void fail_close(void)
{
    gos_os.close = failing_close;
}
static void fail_sync(void)
{
    gos_os.sync = failing_sync;
}
static int no_link(const char *path, const char *name)
{
    (void)path;
    (void)name;
    return -EPERM;
}
/* A new report is renamed only where files have one name. */
static void fail_rename(void)
{
    gos_os.link = no_link;
    gos_os.rename = failing_rename;
}
static void fail_link(void)
{
    gos_os.link = failing_link;
}
static void fail_map(void)
{
    gos_os.map = failing_map;
}

static char last_byte(const char *path)
{
    char last = 0;
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return 0;
    if (fseek(file, -1, SEEK_END) == 0)
        last = (char)fgetc(file);
    fclose(file);
    return last;
}

/* Nothing but whole reports lies in the folder; it is emptied. */
static const char *only_whole_reports(void)
{
    const char *wrong = NULL;
    char path[600];
    DIR *listing = opendir(folder);
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        if (entry->d_name[0] == '.' && (entry->d_name[1] == 0 || entry->d_name[1] == '.'))
            continue;
        const char *end = strrchr(entry->d_name, '.');
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (end == NULL || (strcmp(end, ".txt") != 0 && strcmp(end, ".json") != 0))
            wrong = "a temporary file remains";
        else if (last_byte(path) != '\n')
            wrong = "a file is cut short";
        unlink(path);
    }
    closedir(listing);
    return wrong;
}

static const char *write_report(void (*install)(void))
{
    static struct gos_evidence evidence;
    static struct gos_diagnosis diagnosis;
    struct gos_report report = {.kind = GOS_REPORT_FAILURE, .outcome = GOS_OUTCOME_FAILED};

    evidence.request.api = "cuMemAlloc_v2";
    evidence.request.entry = "cuMemAlloc_v2";
    evidence.request.bytes_known = true;
    evidence.request.bytes = 1 << 30;
    evidence.request.result = 2;
    evidence.unwinder = "none";
    gos_diagnose(&evidence, &diagnosis);
    report.diagnosis = &diagnosis;

    real = gos_os;
    install();
    int result = gos_report_write(&report);
    gos_os = real;
    if (result == 0 && report.json_path[0] == 0 && report.text_path[0] == 0)
        return "said to be written, but nowhere";
    if (report.json_path[0] != 0 && last_byte(report.json_path) != '\n')
        return "the JSON file is not whole";
    if (report.text_path[0] != 0 && last_byte(report.text_path) != '\n')
        return "the text file is not whole";
    return only_whole_reports();
}

static const char *write_with_failures(void *install)
{
    return write_report((void (*)(void))install);
}

#define FAULT_TEST(member)                                                                         \
    static void report_survives_a_failing_##member(void **state)                                   \
    {                                                                                              \
        (void)state;                                                                               \
        fail_each_call(write_with_failures, (void *)fail_##member);                                \
    }
FAULT_TEST(open)
FAULT_TEST(write)
FAULT_TEST(close)
FAULT_TEST(sync)
FAULT_TEST(link)
FAULT_TEST(rename)
FAULT_TEST(map)

/* --- killed --- */

#define KILLED(member, type, parameters, arguments)                                                \
    static type killed_before_##member parameters                                                  \
    {                                                                                              \
        if (fails_now())                                                                           \
            raise(SIGKILL);                                                                        \
        return real.member arguments;                                                              \
    }
KILLED(open, int, (const char *path, int flags, unsigned mode), (path, flags, mode))
KILLED(write, ssize_t, (int fd, const void *buffer, size_t bytes), (fd, buffer, bytes))
KILLED(close, int, (int fd), (fd))
KILLED(sync, int, (int fd), (fd))
KILLED(link, int, (const char *path, const char *name), (path, name))
KILLED(rename, int, (const char *from, const char *to), (from, to))
KILLED(unlink, int, (const char *path), (path))

static void kill_at_a_call(void)
{
    gos_os.open = killed_before_open;
    gos_os.write = killed_before_write;
    gos_os.close = killed_before_close;
    gos_os.sync = killed_before_sync;
    gos_os.link = killed_before_link;
    gos_os.rename = killed_before_rename;
    gos_os.unlink = killed_before_unlink;
}

static bool is_temporary(const char *name)
{
    return name[0] == '.';
}

/* A temporary file may remain; it is hidden, and nobody's report. */
static unsigned count_cut_reports(void)
{
    unsigned cut = 0;
    char path[600];
    DIR *listing = opendir(folder);
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        cut += !is_temporary(entry->d_name) && last_byte(path) != '\n';
        unlink(path);
    }
    closedir(listing);
    return cut;
}

/* True when it lived on. */
static bool write_in_a_child(unsigned kill_at)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        calls_until_failure = kill_at;
        write_report(kill_at_a_call);
        _exit(0);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status);
}

static void report_is_whole_or_absent_wherever_the_process_is_killed(void **state)
{
    (void)state;
    unsigned n = 1;
    for (; !write_in_a_child(n) && n < ROUND_LIMIT; n++)
        assert_int_equal(count_cut_reports(), 0);
    assert_true(n > 10);
}

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "%s/fault-report-XXXXXX",
             getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp");
    if (mkdtemp(folder) == NULL)
        return -1;
    /* The temporary directory is the fallback: let it be the same one. */
    setenv("TMPDIR", folder, 1);
    setenv("GPUOOMSHIM_REPORT_DIR", folder, 1);
    char *environment[] = {NULL, NULL, NULL};
    char directory[300], temporary[300];
    snprintf(directory, sizeof(directory), "GPUOOMSHIM_REPORT_DIR=%s", folder);
    snprintf(temporary, sizeof(temporary), "TMPDIR=%s", folder);
    environment[0] = directory;
    environment[1] = temporary;
    gos_options_load(environment);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(report_survives_a_failing_open),
        cmocka_unit_test(report_survives_a_failing_write),
        cmocka_unit_test(report_survives_a_failing_close),
        cmocka_unit_test(report_survives_a_failing_sync),
        cmocka_unit_test(report_survives_a_failing_link),
        cmocka_unit_test(report_survives_a_failing_rename),
        cmocka_unit_test(report_survives_a_failing_map),
        cmocka_unit_test(report_is_whole_or_absent_wherever_the_process_is_killed),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
