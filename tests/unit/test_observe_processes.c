#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "../../src/observe/processes.h"
#include "observe_fake_files.h"
#include "observe_fake_gpu.h"

#define SELF 500
#define MIB ((uint64_t)1 << 20)

static struct gos_evidence evidence;
static struct gos_device_ids ids;

static int begin(void **state)
{
    (void)state;
    fake_files_install();
    fake_gpu_install();
    memset(&evidence, 0, sizeof(evidence));
    memset(&ids, 0, sizeof(ids));
    evidence.pid = SELF;
    evidence.device_count = 1;
    evidence.devices[0].present = true;
    evidence.devices[0].nvml_reserved_bytes = 600 * MIB;
    ids.nvml[0] = &ids;
    fake_file("/proc/500/status", "Name:\tpython3\nState:\tR (running)\nPPid:\t1\nUid:\t7 7 7 7\n");
    fake_file("/proc/501/status", "Name:\tworker\nState:\tS (sleeping)\nPPid:\t500\nUid:\t7 7\n");
    fake_file("/proc/502/status", "Name:\tgrand child\nState:\tZ (zombie)\nPPid:\t501\nUid:\t7\n");
    fake_file("/proc/900/status", "Name:\tother\nState:\tS (sleeping)\nPPid:\t1\nUid:\t1234\t1\n");
    return 0;
}

static int end(void **state)
{
    (void)state;
    assert_int_equal(fake_files_open_count(), 0);
    gos_scratch_release(&evidence.scratch);
    fake_files_remove();
    return 0;
}

static struct gos_process_evidence explain(uint32_t pid)
{
    struct gos_process_evidence process = {.pid = pid};

    gos_processes_explain(&process, SELF);
    return process;
}

static void self_child_and_stranger_are_told_apart(void **state)
{
    (void)state;
    assert_int_equal(explain(500).relation, GOS_PROCESS_SELF);
    assert_int_equal(explain(501).relation, GOS_PROCESS_CHILD);
    assert_int_equal(explain(900).relation, GOS_PROCESS_OTHER);
    assert_int_equal(explain(900).uid, 1234);
    assert_string_equal(explain(900).name, "other");
}

static void a_zombie_grandchild_is_a_child_and_a_zombie(void **state)
{
    (void)state;
    assert_int_equal(explain(502).relation, GOS_PROCESS_CHILD);
    assert_true(explain(502).zombie);
    assert_string_equal(explain(502).name, "grand child");
    assert_false(explain(501).zombie);
}

static void a_pid_that_proc_does_not_know_is_unseen(void **state)
{
    (void)state;
    assert_int_equal(explain(77777).relation, GOS_PROCESS_UNSEEN);
    assert_string_equal(explain(77777).name, "");
}

static void a_circle_of_parents_ends(void **state)
{
    (void)state;
    fake_file("/proc/600/status", "Name:\ta\nPPid:\t601\n");
    fake_file("/proc/601/status", "Name:\tb\nPPid:\t600\n");
    assert_int_equal(explain(600).relation, GOS_PROCESS_OTHER);
}

static void pid_one_can_be_ourselves(void **state)
{
    struct gos_process_evidence process = {.pid = 900};

    (void)state;
    gos_processes_explain(&process, 1);
    assert_int_equal(process.relation, GOS_PROCESS_CHILD);
}

static void the_list_is_explained_and_our_own_bytes_are_taken_from_it(void **state)
{
    (void)state;
    fake_gpu.nvml_processes[0] = (struct gos_nvml_process){SELF, 700 * MIB};
    fake_gpu.nvml_processes[1] = (struct gos_nvml_process){900, 300 * MIB};
    fake_gpu.nvml_processes[2] = (struct gos_nvml_process){501, UINT64_MAX};
    fake_gpu.nvml_process_count = 3;
    evidence.devices[0].nvml_used_bytes = 1000 * MIB;
    gos_processes_observe(&evidence, &ids);
    assert_int_equal(evidence.process_count, 3);
    assert_int_equal(evidence.processes[1].used_bytes, 300 * MIB);
    assert_int_equal(evidence.processes[2].relation, GOS_PROCESS_CHILD);
    assert_true(evidence.devices[0].own_bytes_known);
    assert_int_equal(evidence.devices[0].own_bytes, 700 * MIB);
    assert_int_equal(evidence.incomplete_count, 0);
}

static void use_that_no_listed_process_explains_is_said(void **state)
{
    (void)state;
    fake_gpu.nvml_processes[0] = (struct gos_nvml_process){SELF, 700 * MIB};
    fake_gpu.nvml_process_count = 1;
    evidence.devices[0].nvml_used_bytes = 9000 * MIB;
    gos_processes_observe(&evidence, &ids);
    assert_int_equal(evidence.incomplete_count, 1);
    assert_non_null(strstr(evidence.incomplete[0], "does not list"));
}

static void a_process_on_two_devices_is_looked_up_once(void **state)
{
    (void)state;
    evidence.device_count = 2;
    evidence.devices[1] = evidence.devices[0];
    evidence.devices[1].ordinal = 1;
    ids.nvml[1] = &ids;
    fake_gpu.nvml_processes[0] = (struct gos_nvml_process){SELF, 700 * MIB};
    fake_gpu.nvml_process_count = 1;
    fake_files_fail(1000000);
    gos_processes_observe(&evidence, &ids);
    assert_int_equal(evidence.process_count, 2);
    assert_int_equal(evidence.processes[1].device, 1);
    assert_string_equal(evidence.processes[1].name, "python3");
}

static void a_refused_list_is_said_and_its_reason_kept(void **state)
{
    (void)state;
    fake_gpu.nvml_list_status = -13;
    gos_processes_observe(&evidence, &ids);
    assert_int_equal(evidence.process_count, 0);
    assert_int_equal(evidence.devices[0].processes_status, -13);
    assert_int_equal(evidence.incomplete_count, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(self_child_and_stranger_are_told_apart),
        TEST(a_zombie_grandchild_is_a_child_and_a_zombie),
        TEST(a_pid_that_proc_does_not_know_is_unseen),
        TEST(a_circle_of_parents_ends),
        TEST(pid_one_can_be_ourselves),
        TEST(the_list_is_explained_and_our_own_bytes_are_taken_from_it),
        TEST(use_that_no_listed_process_explains_is_said),
        TEST(a_process_on_two_devices_is_looked_up_once),
        TEST(a_refused_list_is_said_and_its_reason_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
