/*
 * Drafts: what lies on disk after each end of a process, and what the next
 * start makes of it.  With GOS_DRAFT_END=WAY in the environment the program puts
 * a draft down and ends in that way: for the tests of the command.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/base/options.h"
#include "../../src/base/os.h"
#include "../../src/report/draft.h"
#include "report_shapes.h"

static struct shape shape;
static struct gos_os real_os;
static char directory[128];

/* --- world --- */

static void set_up(const char *folder)
{
    gos_options.report = GOS_REPORT_TEXT | GOS_REPORT_JSON;
    gos_options.report_dir = folder;
    gos_options.report_max = 1000;
    gos_options.log = 0;
    gos_report_reset_after_fork();
    assert_true(shape_make(&shape, 0));
    shape.evidence.request.site = 0; /* made-up numbers of stacks are unknown to the product */
    shape.evidence.request.requester_module = UINT32_MAX;
    shape.report.outcome = GOS_OUTCOME_FAILED;
}

static int begin(void **state)
{
    (void)state;
    real_os = gos_os;
    snprintf(directory, sizeof directory, "/tmp/test_report_draft.XXXXXX");
    assert_non_null(mkdtemp(directory));
    set_up(directory);
    return 0;
}

static int end(void **state)
{
    (void)state;
    gos_os = real_os;
    gos_report_reset_after_fork();
    DIR *entries = opendir(directory);
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;)
        unlinkat(dirfd(entries), entry->d_name, 0);
    closedir(entries);
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

#define STEM "gpuoomshim.node-17.r3.4711."

static bool exists(const char *name)
{
    struct stat status;
    return lstat(in_directory(name), &status) == 0;
}

static unsigned count_files(const char *suffix)
{
    unsigned count = 0;
    DIR *entries = opendir(directory);
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        size_t length = strlen(entry->d_name), end_length = strlen(suffix);
        count += length > end_length && strcmp(entry->d_name + length - end_length, suffix) == 0;
    }
    closedir(entries);
    return count;
}

/* Terminated; until the next call. */
static const char *content(const char *name)
{
    static char data[1 << 20];
    int fd = open(in_directory(name), O_RDONLY);
    assert_true(fd >= 0);
    ssize_t bytes = read(fd, data, sizeof data - 1);
    close(fd);
    data[bytes > 0 ? bytes : 0] = '\0';
    return data;
}

static bool holds(const char *name, const char *words)
{
    return strstr(content(name), words) != NULL;
}

static int read_draft(const char *name, struct gos_draft *draft, struct gos_scratch *scratch)
{
    int fd = open(in_directory(name), O_RDONLY);
    assert_true(fd >= 0);
    int result = gos_draft_read(fd, draft, scratch);
    close(fd);
    return result;
}

static int look_at(const char *name)
{
    struct gos_scratch scratch = {0};
    struct gos_draft draft;
    int result = read_draft(name, &draft, &scratch);
    gos_scratch_release(&scratch);
    return result;
}

/* Do both forms of the draft say so? */
static bool draft_says(const char *name, uint64_t bytes)
{
    struct gos_scratch scratch = {0};
    struct gos_draft draft;
    char in_text[64], in_json[64];
    snprintf(in_text, sizeof in_text, "(%llu)", (unsigned long long)bytes);
    snprintf(in_json, sizeof in_json, "\"bytes\": %llu,", (unsigned long long)bytes);
    assert_int_equal(read_draft(name, &draft, &scratch), 0);
    bool says = memmem(draft.data[0], draft.slot->bytes[0], in_text, strlen(in_text)) &&
                memmem(draft.data[1], draft.slot->bytes[1], in_json, strlen(in_json));
    gos_scratch_release(&scratch);
    return says;
}

static bool reports_say(unsigned number, uint64_t bytes)
{
    char name[64], words[64];
    snprintf(name, sizeof name, STEM "%u.txt", number);
    snprintf(words, sizeof words, "(%llu)", (unsigned long long)bytes);
    bool says = holds(name, words);
    snprintf(name, sizeof name, STEM "%u.json", number);
    snprintf(words, sizeof words, "\"bytes\": %llu,", (unsigned long long)bytes);
    return says && holds(name, words);
}

static int draft_with(uint64_t bytes)
{
    shape.evidence.request.bytes = bytes;
    return gos_report_draft(&shape.report);
}

static int write_with(uint64_t bytes)
{
    shape.evidence.request.bytes = bytes;
    return gos_report_write(&shape.report);
}

/* In a process that has ended when this returns; its status, as wait gives it. */
static int in_child(void (*act)(void))
{
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        gos_report_reset_after_fork();
        act();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* --- what lies there --- */

static void draft_is_private_and_its_name_says_what_it_is(void **state)
{
    (void)state;
    struct stat status;
    assert_int_equal(draft_with(123456789), 0);
    assert_int_equal(shape.report.draft, 1);
    assert_int_equal(lstat(in_directory(STEM "1.draft"), &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_int_equal(status.st_nlink, 1);
    assert_int_equal(count_files(".tmp") + count_files(".txt") + count_files(".json"), 0);
    assert_true(draft_says(STEM "1.draft", 123456789));
}

static int refuse_open(const char *path, int flags, unsigned mode)
{
    (void)flags;
    (void)mode;
    fail_msg("opened %s", path);
    return -EIO;
}

static ssize_t refuse_link(const char *path, char *buffer, size_t bytes)
{
    (void)buffer;
    (void)bytes;
    fail_msg("looked at %s", path);
    return -EIO;
}

static void *refuse_map(size_t bytes)
{
    fail_msg("mapped %zu", bytes);
    return NULL;
}

static void refuse_unmap(void *memory, size_t bytes)
{
    fail_msg("unmapped %zu at %p", bytes, memory);
}

static void later_drafts_are_stores_to_memory(void **state)
{
    (void)state;
    assert_int_equal(draft_with(9101), 0);
    assert_int_equal(draft_with(9102), 0);
    gos_os.open = refuse_open;
    gos_os.readlink = refuse_link;
    gos_os.map = refuse_map;
    gos_os.unmap = refuse_unmap;
    for (uint64_t i = 0; i < 10; i++)
        assert_int_equal(draft_with(2000 + i), 0);
    gos_report_draft_void(&shape.report);
    assert_int_equal(shape.report.draft, 0);
    assert_int_equal(draft_with(3000), 0);
    gos_os = real_os;
    assert_true(draft_says(STEM "1.draft", 3000));
    assert_int_equal(count_files(".draft"), 1);
}

static void *map_small_file_only(int fd, size_t bytes)
{
    return bytes > 1 << 20 ? NULL : real_os.map_file(fd, bytes);
}

static void draft_is_small_where_address_space_is_short(void **state)
{
    (void)state;
    gos_os.map_file = map_small_file_only;
    assert_int_equal(draft_with(9101), 0);
    assert_int_equal(draft_with(9102), 0);
    gos_os = real_os;
    assert_true(draft_says(STEM "1.draft", 9102));
    assert_int_equal(count_files(".draft"), 1);
}

static void void_draft_says_nothing_and_goes_at_the_normal_end(void **state)
{
    (void)state;
    assert_int_equal(draft_with(9101), 0);
    struct gos_report other = shape.report;
    other.draft = 0;
    assert_int_equal(gos_report_draft(&other), 0);
    gos_report_draft_void(&shape.report);
    assert_int_equal(look_at(STEM "1.draft"), -ENODATA);
    gos_report_drafts_end();
    assert_false(exists(STEM "1.draft"));
    assert_int_equal(look_at(STEM "2.draft"), 0);
}

static void more_drafts_than_there_are_is_an_error(void **state)
{
    (void)state;
    static struct gos_report reports[GOS_DRAFT_MAX + 1];
    struct gos_report *last = &reports[GOS_DRAFT_MAX];
    for (unsigned i = 0; i <= GOS_DRAFT_MAX; i++) {
        reports[i] = shape.report;
        assert_int_equal(gos_report_draft(&reports[i]), i < GOS_DRAFT_MAX ? 0 : -EBUSY);
    }
    assert_int_equal(last->draft, 0);
    gos_report_draft_void(&reports[3]);
    assert_int_equal(gos_report_draft(last), 0);
    assert_int_equal(last->draft, 4);
}

static void draft_that_outgrows_its_room_gets_more(void **state)
{
    (void)state;
    static struct gos_version versions[3000];
    struct stat before, after;
    assert_int_equal(draft_with(9101), 0);
    assert_int_equal(stat(in_directory(STEM "1.draft"), &before), 0);
    for (unsigned i = 0; i < 3000; i++)
        versions[i] = (struct gos_version){"a library", "1.2.3", "/a/path/of/it"};
    shape.evidence.versions = versions;
    shape.evidence.version_count = 3000;
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(draft_with(2000 + i), 0);
    assert_true(draft_says(STEM "1.draft", 2002));
    assert_int_equal(count_files(".draft"), 1);
    assert_int_equal(stat(in_directory(STEM "1.draft"), &after), 0);
    assert_true(after.st_blocks > before.st_blocks);
}

static void nothing_is_put_down_when_reports_are_off(void **state)
{
    (void)state;
    gos_options.report = 0;
    assert_int_equal(draft_with(9101), 0);
    gos_options.report = GOS_REPORT_JSON;
    gos_options.report_max = 0;
    assert_int_equal(draft_with(9101), 0);
    assert_int_equal(count_files(".draft"), 0);
}

static void reader_sees_one_state_while_the_process_changes_it(void **state)
{
    (void)state;
    int status = 0;
    assert_int_equal(draft_with(9101), 0);
    pid_t child = fork();
    if (child == 0) { /* the file is shared: it writes as the parent would */
        for (uint64_t i = 0;; i++)
            (void)draft_with(2000 + i);
    }
    for (int i = 0; i < 300; i++) {
        struct gos_scratch scratch = {0};
        struct gos_draft draft;
        char in_text[64], *after;
        int result = read_draft(STEM "1.draft", &draft, &scratch);
        if (result == 0) {
            const char *found = memmem(draft.data[1], draft.slot->bytes[1], "\"bytes\": ", 9);
            unsigned long long bytes = strtoull(found + 9, &after, 10);
            snprintf(in_text, sizeof in_text, "(%llu)", bytes);
            assert_non_null(memmem(draft.data[0], draft.slot->bytes[0], in_text, strlen(in_text)));
        } else {
            assert_int_equal(result, -EAGAIN);
        }
        gos_scratch_release(&scratch);
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    assert_int_equal(look_at(STEM "1.draft"), 0);
}

/* --- becoming a report --- */

static void report_is_written_and_its_draft_goes(void **state)
{
    (void)state;
    assert_int_equal(draft_with(9101), 0);
    assert_int_equal(write_with(9102), 0);
    assert_int_equal(shape.report.draft, 0);
    assert_true(reports_say(1, 9102));
    assert_false(exists(STEM "1.draft"));
    assert_int_equal(draft_with(9103), 0); /* newer figures of it */
    assert_true(draft_says(STEM "1.draft", 9103));
    assert_true(reports_say(1, 9102));
    assert_int_equal(write_with(9104), 0);
    assert_true(reports_say(1, 9104));
    assert_int_equal(count_files(".json"), 1);
}

static ssize_t write_to_full_disk(int fd, const void *data, size_t bytes)
{
    (void)data;
    return fd == 2 ? (ssize_t)bytes : -ENOSPC;
}

static void draft_stays_where_the_report_cannot_be_written(void **state)
{
    (void)state;
    assert_int_equal(draft_with(9101), 0);
    gos_os.write = write_to_full_disk;
    assert_int_equal(write_with(9102), -ENOSPC);
    gos_os = real_os;
    assert_int_equal(shape.report.draft, 1);
    assert_true(draft_says(STEM "1.draft", 9102));
}

/* --- left behind --- */

static void leave_a_draft(void)
{
    (void)draft_with(5001);
}

static void draft_of_an_ended_process_becomes_its_report(void **state)
{
    (void)state;
    struct stat status;
    in_child(leave_a_draft);
    assert_true(draft_says(STEM "1.draft", 5001));
    gos_report_drafts_adopt();
    assert_int_equal(count_files(".draft") + count_files(".tmp"), 0);
    assert_true(reports_say(1, 5001));
    assert_int_equal(lstat(in_directory(STEM "1.json"), &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    const char *line = strchr(content(STEM "1.txt"), '\n') + 1;
    assert_memory_equal(line, "found      20", 13);
    assert_false(holds(STEM "1.txt", "still runs"));
    assert_true(holds(STEM "1.json", "\"found_wall_ns\": 1"));
}

static void it_gets_the_next_free_number(void **state)
{
    (void)state;
    int fd = open(in_directory(STEM "1.json"), O_CREAT | O_WRONLY, 0600);
    close(fd);
    in_child(leave_a_draft);
    gos_report_drafts_adopt();
    assert_true(reports_say(2, 5001));
    assert_false(exists(STEM "1.txt"));
}

static void leave_newer_figures(void)
{
    (void)write_with(4001);
    (void)draft_with(5001);
}

static void newer_figures_of_a_report_that_was_told_take_its_place(void **state)
{
    (void)state;
    in_child(leave_newer_figures);
    assert_true(reports_say(1, 4001));
    gos_report_drafts_adopt();
    assert_true(reports_say(1, 5001));
    assert_int_equal(count_files(".json"), 1);
    assert_int_equal(count_files(".draft"), 0);
}

static void leave_a_void_draft(void)
{
    (void)draft_with(5001);
    gos_report_draft_void(&shape.report);
}

static void void_draft_of_an_ended_process_goes(void **state)
{
    (void)state;
    in_child(leave_a_void_draft);
    assert_true(exists(STEM "1.draft"));
    gos_report_drafts_adopt();
    assert_int_equal(count_files("t") + count_files("n"), 0);
}

static void draft_of_a_running_process_is_left_alone(void **state)
{
    (void)state;
    int ready[2], status = 0;
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        gos_report_reset_after_fork();
        (void)draft_with(5001);
        (void)!write(ready[1], &byte, 1);
        pause();
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    gos_report_drafts_adopt();
    assert_true(draft_says(STEM "1.draft", 5001));
    assert_int_equal(count_files(".json"), 0);
    kill(child, SIGKILL);
    /* Ended, though nobody has waited for it yet. */
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    gos_report_drafts_adopt();
    assert_true(reports_say(1, 5001));
    waitpid(child, &status, 0);
    close(ready[0]);
    close(ready[1]);
}

static void own_draft_is_no_orphan_but_that_of_an_earlier_program_is(void **state)
{
    (void)state;
    assert_int_equal(draft_with(5001), 0);
    gos_report_drafts_adopt();
    assert_int_equal(count_files(".json"), 0);
    gos_report_reset_after_fork(); /* as exec would: same process, nothing known */
    gos_report_drafts_adopt();
    assert_true(reports_say(1, 5001));
}

static void adopt(void)
{
    gos_report_drafts_adopt();
}

static void several_starts_at_once_make_one_report(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        in_child(leave_a_draft);
        for (int i = 0; i < 4; i++) {
            if (fork() == 0) {
                adopt();
                _exit(0);
            }
        }
        while (wait(NULL) > 0)
            continue;
        assert_int_equal(count_files(".json"), 1);
        assert_int_equal(count_files(".draft"), 0);
        unlink(in_directory(STEM "1.json"));
        unlink(in_directory(STEM "1.txt"));
    }
}

static void adopter_that_died_leaves_it_to_the_next(void **state)
{
    (void)state;
    char claimed[256];
    in_child(leave_a_draft);
    pid_t dead = fork();
    if (dead == 0)
        _exit(0);
    waitpid(dead, NULL, 0);
    snprintf(claimed, sizeof claimed, "%s/" STEM "1.claimed-by-%d.draft", directory, (int)dead);
    assert_int_equal(rename(in_directory(STEM "1.draft"), claimed), 0);
    gos_report_drafts_adopt();
    assert_true(reports_say(1, 5001));
    assert_int_equal(count_files(".draft"), 0);
}

/* --- killed while the two files appear --- */

static int calls_until_kill;

static int link_or_die(const char *path, const char *name)
{
    if (--calls_until_kill == 0)
        raise(SIGKILL);
    return real_os.link(path, name);
}

static int rename_or_die(const char *from, const char *to)
{
    if (--calls_until_kill == 0)
        raise(SIGKILL);
    return real_os.rename(from, to);
}

static int unlink_or_die(const char *path)
{
    if (--calls_until_kill == 0)
        raise(SIGKILL);
    return real_os.unlink(path);
}

static void die_while_writing(void)
{
    (void)draft_with(5001);
    gos_os.link = link_or_die;
    gos_os.rename = rename_or_die;
    gos_os.unlink = unlink_or_die;
    (void)write_with(5002);
}

static void die_while_rewriting(void)
{
    (void)write_with(4001);
    die_while_writing();
}

static void die_while_renumbering(void)
{
    struct gos_report other = shape.report;
    (void)write_with(4001);
    (void)gos_report_write(&other);
    shape.report.newest = true;
    die_while_writing();
}

static unsigned kill_at_each_call(void (*act)(void), unsigned reports)
{
    unsigned n = 0;
    bool killed = true;
    while (killed) {
        calls_until_kill = (int)++n;
        killed = WIFSIGNALED(in_child(act));
        gos_report_drafts_adopt();
        assert_int_equal(count_files(".json"), reports);
        assert_int_equal(count_files(".txt"), reports);
        assert_int_equal(count_files(".draft"), 0);
        bool at_old = exists(STEM "1.json") && reports_say(1, 5002);
        bool at_new = exists(STEM "3.json") && reports_say(3, 5002);
        assert_true(at_old != at_new);
        DIR *entries = opendir(directory);
        for (struct dirent *entry; (entry = readdir(entries)) != NULL;)
            unlinkat(dirfd(entries), entry->d_name, 0);
        closedir(entries);
    }
    return n;
}

static void report_is_whole_and_says_one_thing_wherever_its_process_is_killed(void **state)
{
    (void)state;
    assert_true(kill_at_each_call(die_while_writing, 1) > 4);
    assert_true(kill_at_each_call(die_while_rewriting, 1) > 2);
    assert_true(kill_at_each_call(die_while_renumbering, 2) > 6);
}

/* --- forked --- */

static void child_makes_its_own(void)
{
    gos_report_draft_void(&(struct gos_report){.draft = 1}); /* of the parent */
    shape.report.draft = 0;
    (void)draft_with(6001);
    gos_report_drafts_end();
}

static void forked_child_leaves_the_drafts_of_its_parent_alone(void **state)
{
    (void)state;
    assert_int_equal(draft_with(5001), 0);
    struct gos_report void_one = shape.report;
    void_one.draft = 0;
    assert_int_equal(gos_report_draft(&void_one), 0);
    gos_report_draft_void(&void_one);
    in_child(child_makes_its_own);
    assert_true(draft_says(STEM "1.draft", 5001));
    assert_true(exists(STEM "2.draft"));
    assert_true(draft_says(STEM "25.draft", 6001)); /* the same name but for the number */
}

/* --- no room --- */

static int allocate_nothing(int fd, uint64_t offset, uint64_t bytes)
{
    (void)fd;
    (void)offset;
    (void)bytes;
    return -ENOSPC;
}

static int allocate_not_known(int fd, uint64_t offset, uint64_t bytes)
{
    (void)fd;
    (void)offset;
    (void)bytes;
    return -EOPNOTSUPP;
}

static void full_disk_is_an_error_and_leaves_no_file(void **state)
{
    (void)state;
    gos_os.allocate = allocate_nothing;
    assert_int_equal(draft_with(9101), -ENOSPC);
    assert_int_equal(shape.report.draft, 0);
    assert_int_equal(count_files("t") + count_files("p"), 0);
}

static void file_system_without_allocation_gets_zeros(void **state)
{
    (void)state;
    struct stat status;
    gos_os.allocate = allocate_not_known;
    assert_int_equal(draft_with(9101), 0);
    assert_true(draft_says(STEM "1.draft", 9101));
    assert_int_equal(stat(in_directory(STEM "1.draft"), &status), 0);
    assert_true(status.st_blocks * 512 >= 2 * 128 * 1024);
}

static void limit_file_size(uint64_t bytes)
{
    struct rlimit limit = {bytes, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &limit);
}

static void draft_within_a_small_limit(void)
{
    limit_file_size(300000);
    if (draft_with(9101) != 0 || !draft_says(STEM "1.draft", 9101))
        _exit(1);
    gos_report_draft_void(&shape.report);
    gos_report_drafts_end();
    for (uint64_t bytes = 0; bytes < 20000; bytes += 1111) {
        limit_file_size(bytes);
        if (draft_with(9101) != -EFBIG || shape.report.draft)
            _exit(2);
    }
}

static void limit_of_file_sizes_is_an_error_and_no_signal(void **state)
{
    (void)state;
    assert_int_equal(in_child(draft_within_a_small_limit), 0);
    assert_int_equal(count_files("t") + count_files("p"), 0);
}

static void file_that_somebody_cut_short_is_replaced(void **state)
{
    (void)state;
    assert_int_equal(draft_with(9101), 0);
    assert_int_equal(truncate(in_directory(STEM "1.draft"), 0), 0);
    assert_int_equal(draft_with(9102), 0);
    assert_int_equal(count_files(".draft"), 1);
    assert_true(draft_says(STEM "25.draft", 9102));
    assert_int_equal(truncate(in_directory(STEM "25.draft"), 5000), 0);
    gos_report_draft_void(&shape.report);
    assert_int_equal(truncate(in_directory(STEM "25.draft"), 0), 0);
    shape.report.draft = 1;
    gos_report_draft_void(&shape.report);
    gos_report_drafts_end();
    assert_int_equal(count_files(".draft"), 0);
}

static void fill_small_disk(void)
{
    char filler[512];
    static char zeros[4096];
    snprintf(filler, sizeof filler, "%s/filler", directory);
    int fd = open(filler, O_CREAT | O_WRONLY, 0600);
    while (write(fd, zeros, sizeof zeros) > 0)
        continue;
    close(fd);
}

/* First there is room for one draft, then for none; changes of the first go on. */
static void drafts_on_a_small_disk(void)
{
    struct gos_report second = shape.report;
    if (mount("test", directory, "tmpfs", 0, "size=400k") != 0)
        _exit(77);
    int first_result = draft_with(9101);
    fill_small_disk();
    int second_result = gos_report_draft(&second);
    for (uint64_t i = 0; i < 100; i++)
        first_result |= draft_with(2000 + i);
    bool says = draft_says(STEM "1.draft", 2099);
    umount2(directory, MNT_DETACH);
    _exit(first_result != 0 ? 1 : second_result != -ENOSPC ? 2 : says ? 0 : 3);
}

static void draft_has_its_room_when_the_disk_fills_up(void **state)
{
    (void)state;
    int status = in_child(drafts_on_a_small_disk);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* --- foreign things --- */

static void put_file(const char *name, const void *data, size_t bytes)
{
    int fd = open(in_directory(name), O_CREAT | O_EXCL | O_WRONLY, 0600);
    assert_int_equal(write(fd, data, bytes), (ssize_t)bytes);
    close(fd);
}

static void damage_copies(const char *data, size_t bytes)
{
    static char copy[1 << 20];
    for (unsigned i = 0; i < 200; i++) {
        struct gos_scratch scratch = {0};
        struct gos_draft draft;
        memcpy(copy, data, bytes);
        for (unsigned k = 0; k < 4; k++)
            copy[(i * 37u + k * 101u) % 300u] ^= (char)(1u << ((i + k) % 8));
        put_file("damaged", copy, i % 5 == 0 ? i * 64u : bytes);
        (void)read_draft("damaged", &draft, &scratch);
        gos_scratch_release(&scratch);
        unlink(in_directory("damaged"));
    }
}

static void damaged_drafts_are_read_within_their_bounds(void **state)
{
    (void)state;
    static char data[1 << 20];
    in_child(leave_a_draft);
    int fd = open(in_directory(STEM "1.draft"), O_RDONLY);
    ssize_t bytes = read(fd, data, 300000);
    close(fd);
    assert_true(bytes > 4096);
    damage_copies(data, (size_t)bytes);
}

static void whatever_is_no_draft_of_ours_is_left_alone(void **state)
{
    (void)state;
    static const char *const names[] = {
        "gpuoomshim.x.1.1.draft",  "gpuoomshim.draft",       "gpuoomshim..draft",
        "gpuoomshim.x.draft",      "gpuoomshim.x.y.draft",   "gpuoomshim.x.1.99999999999.draft",
        "gpuoomshim.a.b.1.draft",  "gpuoomshim.1.1.1.draft", "gpuoomshim.x.1.2.claimed-by-.draft",
        "gpuoomshim.x.1.-3.draft", "other.x.1.1.draft",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        put_file(names[i], "foreign", 7);
    in_child(leave_a_draft);
    assert_int_equal(rename(in_directory(STEM "1.draft"), "/tmp/test_report_draft.kept"), 0);
    assert_int_equal(symlink("/tmp/test_report_draft.kept", in_directory(STEM "2.draft")), 0);
    assert_int_equal(link("/tmp/test_report_draft.kept", in_directory(STEM "3.draft")), 0);
    assert_int_equal(mkfifo(in_directory(STEM "4.draft"), 0600), 0);
    assert_int_equal(mkdir(in_directory(STEM "5.draft"), 0700), 0);
    gos_report_drafts_adopt();
    assert_int_equal(count_files(".json") + count_files(".txt"), 0);
    assert_int_equal(count_files(".draft"), 4 + sizeof names / sizeof names[0]);
    unlink("/tmp/test_report_draft.kept");
    rmdir(in_directory(STEM "5.draft"));
}

static uint32_t another_user(void)
{
    return real_os.user() + 1;
}

static void draft_of_another_user_is_left_alone(void **state)
{
    (void)state;
    in_child(leave_a_draft);
    gos_os.user = another_user;
    gos_report_drafts_adopt();
    assert_true(exists(STEM "1.draft"));
    assert_int_equal(count_files(".json"), 0);
}

static ssize_t other_namespace(const char *path, char *buffer, size_t bytes)
{
    static const char other[] = "pid:[7]";
    if (strcmp(path, "/proc/self/ns/pid") != 0)
        return real_os.readlink(path, buffer, bytes);
    memcpy(buffer, other, sizeof other - 1);
    return sizeof other - 1;
}

static void draft_of_another_container_is_left_alone(void **state)
{
    (void)state;
    in_child(leave_a_draft);
    gos_os.readlink = other_namespace;
    gos_report_drafts_adopt();
    assert_true(draft_says(STEM "1.draft", 5001));
    gos_os = real_os;
    gos_report_drafts_adopt();
    assert_true(reports_say(1, 5001));
}

/* --- for the tests of the command --- */

static void end_by(const char *way)
{
    static char *const command[] = {"/bin/sleep", "1000", NULL};
    if (strcmp(way, "_exit") == 0)
        _exit(0);
    if (strcmp(way, "exit") == 0)
        exit(0);
    if (strcmp(way, "quick_exit") == 0)
        quick_exit(0);
    if (strcmp(way, "abort") == 0)
        abort();
    if (strcmp(way, "kill") == 0)
        raise(SIGKILL);
    if (strcmp(way, "exec") == 0)
        execv(command[0], command);
    if (strcmp(way, "wait") == 0)
        pause();
    if (strcmp(way, "void") == 0)
        gos_report_draft_void(&shape.report);
    if (strcmp(way, "fork") == 0)
        in_child(leave_a_draft);
}

static int leave_and_end(const char *way, const char *folder)
{
    set_up(folder);
    if (strcmp(way, "adopt") == 0)
        gos_report_drafts_adopt();
    else if (strcmp(way, "fork") != 0 && draft_with(123456789) != 0)
        return 1;
    puts("ready");
    fflush(stdout);
    end_by(way);
    return 0;
}

int main(void)
{
    const char *way = getenv("GOS_DRAFT_END");
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
        TEST(draft_is_private_and_its_name_says_what_it_is),
        TEST(later_drafts_are_stores_to_memory),
        TEST(draft_is_small_where_address_space_is_short),
        TEST(void_draft_says_nothing_and_goes_at_the_normal_end),
        TEST(more_drafts_than_there_are_is_an_error),
        TEST(draft_that_outgrows_its_room_gets_more),
        TEST(nothing_is_put_down_when_reports_are_off),
        TEST(reader_sees_one_state_while_the_process_changes_it),
        TEST(report_is_written_and_its_draft_goes),
        TEST(draft_stays_where_the_report_cannot_be_written),
        TEST(draft_of_an_ended_process_becomes_its_report),
        TEST(it_gets_the_next_free_number),
        TEST(newer_figures_of_a_report_that_was_told_take_its_place),
        TEST(void_draft_of_an_ended_process_goes),
        TEST(draft_of_a_running_process_is_left_alone),
        TEST(own_draft_is_no_orphan_but_that_of_an_earlier_program_is),
        TEST(several_starts_at_once_make_one_report),
        TEST(adopter_that_died_leaves_it_to_the_next),
        TEST(report_is_whole_and_says_one_thing_wherever_its_process_is_killed),
        TEST(forked_child_leaves_the_drafts_of_its_parent_alone),
        TEST(full_disk_is_an_error_and_leaves_no_file),
        TEST(file_system_without_allocation_gets_zeros),
        TEST(limit_of_file_sizes_is_an_error_and_no_signal),
        TEST(file_that_somebody_cut_short_is_replaced),
        TEST(draft_has_its_room_when_the_disk_fills_up),
        TEST(damaged_drafts_are_read_within_their_bounds),
        TEST(whatever_is_no_draft_of_ours_is_left_alone),
        TEST(draft_of_another_user_is_left_alone),
        TEST(draft_of_another_container_is_left_alone),
    };
    if (way)
        return leave_and_end(way, getenv("GOS_DRAFT_FOLDER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
