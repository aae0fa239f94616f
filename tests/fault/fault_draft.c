/*
 * A failure that is put off, changed, told and, where that did not succeed, found
 * at a later start, with the n-th system call failing: what was said to lie on
 * disk lies there, as a draft that can be read or as whole files, and nothing ends
 * the process.
 */
#include "nth_call.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/options.h"
#include "../../src/base/os.h"
#include "../../src/report/draft_file.h"
#include "../../src/report/report.h"

static struct gos_os real;
static char folder[256];

#define FAILING(member, type, parameters, arguments, error)                                        \
    static type failing_##member parameters                                                        \
    {                                                                                              \
        return fails_now() ? (type)(error) : real.member arguments;                                \
    }                                                                                              \
    static void fail_##member(void)                                                                \
    {                                                                                              \
        gos_os.member = failing_##member;                                                          \
    }
FAILING(open, int, (const char *path, int flags, unsigned mode), (path, flags, mode), -EACCES)
FAILING(read, ssize_t, (int fd, void *buffer, size_t bytes), (fd, buffer, bytes), -EIO)
FAILING(write, ssize_t, (int fd, const void *buffer, size_t bytes), (fd, buffer, bytes), -ENOSPC)
FAILING(read_at, ssize_t, (int fd, void *buffer, size_t bytes, uint64_t offset),
        (fd, buffer, bytes, offset), -EIO)
FAILING(write_at, ssize_t, (int fd, const void *buffer, size_t bytes, uint64_t offset),
        (fd, buffer, bytes, offset), -ENOSPC)
FAILING(close, int, (int fd), (fd), -EIO)
FAILING(status, int, (int fd, struct gos_file_status *status), (fd, status), -EIO)
FAILING(resize, int, (int fd, uint64_t bytes), (fd, bytes), -ENOSPC)
FAILING(allocate, int, (int fd, uint64_t offset, uint64_t bytes), (fd, offset, bytes), -ENOSPC)
FAILING(sync, int, (int fd), (fd), -EIO)
FAILING(rename, int, (const char *from, const char *to), (from, to), -EIO)
FAILING(link, int, (const char *path, const char *name), (path, name), -ENOSPC)
FAILING(unlink, int, (const char *path), (path), -EIO)
FAILING(readlink, ssize_t, (const char *path, char *buffer, size_t bytes), (path, buffer, bytes),
        -EACCES)
FAILING(list, ssize_t, (int fd, void *buffer, size_t bytes), (fd, buffer, bytes), -EIO)
FAILING(map, void *, (size_t bytes), (bytes), 0)
FAILING(map_file, void *, (int fd, size_t bytes), (fd, bytes), 0)

static int allocate_not_known(int fd, uint64_t offset, uint64_t bytes)
{
    (void)fd;
    (void)offset;
    (void)bytes;
    return -EOPNOTSUPP;
}

static void fail_zeros(void)
{
    gos_os.allocate = allocate_not_known;
    fail_write_at();
}

/* --- what lies in the folder --- */

struct left {
    unsigned drafts; /* that can be read */
    unsigned reports;
    unsigned cut;
};

static bool is_whole(const char *path)
{
    char last = 0;
    FILE *file = fopen(path, "r");
    if (file != NULL && fseek(file, -1, SEEK_END) == 0)
        last = (char)fgetc(file);
    if (file != NULL)
        fclose(file);
    return last == '\n';
}

static bool is_draft(const char *path)
{
    struct gos_scratch scratch = {0};
    struct gos_draft draft;
    struct gos_os failing = gos_os;
    gos_os = real;
    int fd = open(path, O_RDONLY);
    int result = gos_draft_read(fd, &draft, &scratch);
    close(fd);
    gos_scratch_release(&scratch);
    gos_os = failing;
    return result == 0;
}

static struct left look(bool clear)
{
    struct left left = {0};
    char path[600];
    DIR *listing = opendir(folder);
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        const char *end = strrchr(entry->d_name, '.');
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.' && strcmp(end, ".draft") == 0)
            left.drafts += is_draft(path);
        else if (entry->d_name[0] != '.' && is_whole(path))
            left.reports += strcmp(end, ".json") == 0;
        else if (entry->d_name[0] != '.')
            left.cut++;
        if (clear)
            unlink(path);
    }
    closedir(listing);
    return left;
}

/* --- a story --- */

static struct gos_evidence evidence;

static void make_up(struct gos_report *report)
{
    static struct gos_diagnosis diagnosis;

    evidence.request.api = "cuMemAlloc_v2";
    evidence.request.entry = "cuMemAlloc_v2";
    evidence.request.bytes_known = true;
    evidence.request.bytes = 1 << 30;
    evidence.request.result = 2;
    evidence.unwinder = "none";
    gos_diagnose(&evidence, &diagnosis);
    *report = (struct gos_report){
        .kind = GOS_REPORT_FAILURE, .outcome = GOS_OUTCOME_FAILED, .diagnosis = &diagnosis};
}

/* More than there was room for at first. */
static void outgrow(void)
{
    static struct gos_version versions[2000];
    for (unsigned i = 0; i < 2000; i++)
        versions[i] = (struct gos_version){"a library", "1.2.3", "/a/path/of/it"};
    evidence.versions = versions;
    evidence.version_count = 2000;
}

static const char *tell(struct gos_report *report)
{
    int first = gos_report_draft(report);
    if (first == 0 && look(false).drafts != 1)
        return "said to be put down, but nothing can be read";
    outgrow();
    int second = gos_report_draft(report);
    if ((first == 0 || second == 0) && (!report->draft || look(false).drafts != 1))
        return "the draft was lost when it was changed";
    bool lay_there = report->draft != 0;
    int written = gos_report_write(report);
    struct left left = look(false);
    if (written == 0 && left.reports != 1)
        return "said to be written, but nowhere";
    if (written != 0 && lay_there && left.drafts != 1)
        return "neither the report nor its draft is there";
    return NULL;
}

static const char *write_with_failures(void *install)
{
    struct gos_report report;
    make_up(&report);
    real = gos_os;
    ((void (*)(void))install)();
    const char *wrong = tell(&report);
    if (wrong == NULL && gos_report_draft(&report) == 0 && look(false).drafts != 1)
        wrong = "newer figures are not there";
    struct left before = look(false);
    gos_report_reset_after_fork(); /* from here on, the next program of this process */
    gos_report_drafts_adopt();
    struct left after = look(false);
    gos_os = real;
    gos_report_drafts_adopt();
    struct left at_last = look(true);
    if (wrong == NULL && before.drafts + before.reports > 0 && after.drafts + after.reports == 0)
        wrong = "it was lost when it was found";
    if (wrong == NULL && before.drafts + before.reports > 0 && at_last.reports == 0)
        wrong = "it was never found";
    return wrong == NULL && at_last.cut > 0 ? "a file is cut short" : wrong;
}

#define FAULT_TEST(member)                                                                         \
    static void draft_survives_a_failing_##member(void **state)                                    \
    {                                                                                              \
        (void)state;                                                                               \
        fail_each_call(write_with_failures, (void *)fail_##member);                                \
    }
FAULT_TEST(open)
FAULT_TEST(read)
FAULT_TEST(write)
FAULT_TEST(read_at)
FAULT_TEST(zeros)
FAULT_TEST(close)
FAULT_TEST(status)
FAULT_TEST(resize)
FAULT_TEST(allocate)
FAULT_TEST(sync)
FAULT_TEST(rename)
FAULT_TEST(link)
FAULT_TEST(unlink)
FAULT_TEST(readlink)
FAULT_TEST(list)
FAULT_TEST(map)
FAULT_TEST(map_file)

static int load_settings(void **state)
{
    (void)state;
    static char directory[300];
    char *environment[] = {directory, "GPUOOMSHIM_LOG=error", NULL};
    snprintf(directory, sizeof(directory), "GPUOOMSHIM_REPORT_DIR=%s", folder);
    gos_options_load(environment);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

/* The temporary directory of the process' beginning is the fallback: let it be the same one. */
static int start_again_in_folder(char **argv)
{
    snprintf(folder, sizeof(folder), "/tmp/fault-draft-XXXXXX");
    if (mkdtemp(folder) == NULL || setenv("TMPDIR", folder, 1) != 0)
        return 1;
    execv("/proc/self/exe", argv);
    return 1;
}

int main(int argc, char **argv)
{
    (void)argc;
    const char *temporary = getenv("TMPDIR");
    if (temporary == NULL || strstr(temporary, "fault-draft-") == NULL)
        return start_again_in_folder(argv);
    snprintf(folder, sizeof(folder), "%s", temporary);
    const struct CMUnitTest tests[] = {
#define TEST(member) cmocka_unit_test(draft_survives_a_failing_##member)
        TEST(open),   TEST(read),     TEST(write),    TEST(read_at), TEST(zeros),    TEST(close),
        TEST(status), TEST(resize),   TEST(allocate), TEST(sync),    TEST(rename),   TEST(link),
        TEST(unlink), TEST(readlink), TEST(list),     TEST(map),     TEST(map_file),
    };
    return cmocka_run_group_tests(tests, load_settings, remove_folder);
}
