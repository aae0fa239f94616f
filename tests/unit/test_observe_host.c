#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "../../src/observe/control_group.h"
#include "../../src/observe/host.h"
#include "../../src/observe/procfs.h"
#include "observe_fake_files.h"

#define V2 "/sys/fs/cgroup"
#define V1 "/sys/fs/cgroup/memory"

static struct gos_evidence evidence;
static uint64_t limit_bytes, used_bytes;

static int begin(void **state)
{
    (void)state;
    fake_files_install();
    memset(&evidence, 0, sizeof(evidence));
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

static void fields_are_found_at_the_start_of_lines_only(void **state)
{
    uint64_t bytes = 0;

    (void)state;
    assert_true(gos_procfs_bytes("XVmSize: 1 kB\nVmSize:\t  20 kB\n", "VmSize:", &bytes));
    assert_int_equal(bytes, 20 * 1024);
    assert_false(gos_procfs_bytes("VmSize: none\n", "VmSize:", &bytes));
    assert_false(gos_procfs_bytes("", "VmSize:", &bytes));
    assert_true(gos_procfs_number("99999999999999999999999", &bytes));
    assert_int_equal(bytes, UINT64_MAX);
}

static void memory_address_space_and_maps_are_read(void **state)
{
    (void)state;
    fake_files_read_at_most(7);
    fake_file("/proc/meminfo", "MemTotal:       1000 kB\nMemFree:  1 kB\nMemAvailable:  300 kB\n");
    fake_file("/proc/self/status", "Name:\tx\nVmPeak:\t 9 kB\nVmSize:\t 512 kB\n");
    fake_file("/proc/sys/vm/overcommit_memory", "0\n");
    fake_file("/proc/self/maps", "00-01 r-xp\n02-03 r--p\n04-05 rw-p\n");
    fake_file("/proc/sys/vm/max_map_count", "65530\n");
    fake_file("/proc/self/cgroup", "0::/\n");
    gos_host_observe(&evidence);
    assert_int_equal(evidence.host.memory_total_bytes, 1000 * 1024);
    assert_int_equal(evidence.host.memory_available_bytes, 300 * 1024);
    assert_int_equal(evidence.host.address_used_bytes, 512 * 1024);
    assert_int_equal(evidence.host.map_count, 3);
    assert_int_equal(evidence.host.map_count_limit, 65530);
    assert_int_equal(evidence.host.cgroup_limit_bytes, UINT64_MAX);
    assert_int_equal(evidence.incomplete_count, 0);
}

static void what_is_locked_pinned_and_promised_is_read(void **state)
{
    (void)state;
    fake_file("/proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 300 kB\nCommitLimit: 900 kB\n"
                               "Committed_AS: 800 kB\n");
    fake_file("/proc/self/status", "Name:\tx\nUid:\t1001\t7\nVmSize:\t 512 kB\nVmLck:\t 8 kB\n"
                                   "VmPin:\t 16 kB\n");
    fake_file("/proc/sys/vm/overcommit_memory", "2\n");
    gos_host_observe(&evidence);
    assert_int_equal(evidence.host.overcommit_mode, 2);
    assert_int_equal(evidence.host.commit_limit_bytes, 900 * 1024);
    assert_int_equal(evidence.host.committed_bytes, 800 * 1024);
    assert_int_equal(evidence.host.locked_used_bytes, 8 * 1024);
    assert_int_equal(evidence.host.pinned_used_bytes, 16 * 1024);
    assert_true(evidence.uid_known);
    assert_int_equal(evidence.uid, 1001);
}

static void a_file_that_holds_no_mode_is_no_mode(void **state)
{
    (void)state;
    fake_file("/proc/sys/vm/overcommit_memory", "7\n");
    gos_host_observe(&evidence);
    assert_int_equal(evidence.host.overcommit_mode, -1);
    assert_false(evidence.uid_known);
}

static void missing_files_are_said_one_by_one(void **state)
{
    (void)state;
    gos_host_observe(&evidence);
    assert_int_equal(evidence.incomplete_count, 6);
    assert_int_equal(evidence.host.cgroup_limit_bytes, UINT64_MAX);
}

static void group_v2_gives_its_limit_without_droppable_cache(void **state)
{
    (void)state;
    fake_file("/proc/self/cgroup", "0::/job/step\n");
    fake_file(V2 "/job/step/memory.max", "1000\n");
    fake_file(V2 "/job/step/memory.current", "900\n");
    fake_file(V2 "/job/step/memory.stat", "anon 500\nfile 400\ninactive_file 300\n");
    assert_true(gos_control_group_memory(&limit_bytes, &used_bytes));
    assert_int_equal(limit_bytes, 1000);
    assert_int_equal(used_bytes, 600);
}

static void the_tightest_group_above_counts(void **state)
{
    (void)state;
    fake_file("/proc/self/cgroup", "0::/a/b/c\n");
    fake_file(V2 "/a/b/c/memory.max", "max\n");
    fake_file(V2 "/a/b/memory.max", "5000\n");
    fake_file(V2 "/a/b/memory.current", "1000\n");
    fake_file(V2 "/a/memory.max", "8000\n");
    fake_file(V2 "/a/memory.current", "7900\n");
    assert_true(gos_control_group_memory(&limit_bytes, &used_bytes));
    assert_int_equal(limit_bytes, 8000);
    assert_int_equal(used_bytes, 7900);
}

static void group_v1_is_found_among_joint_controllers(void **state)
{
    (void)state;
    fake_file(
        "/proc/self/cgroup",
        "5:cpu,cpuacct:/x\n4:memoryless:/y\n3:hugetlb,memory:/slurm/job_1\n1:name=systemd:/\n");
    fake_file(V1 "/slurm/job_1/memory.limit_in_bytes", "4096\n");
    fake_file(V1 "/slurm/job_1/memory.usage_in_bytes", "1024\n");
    fake_file(V1 "/slurm/memory.limit_in_bytes", "9223372036854771712\n");
    fake_file(V1 "/slurm/memory.usage_in_bytes", "99999\n");
    assert_true(gos_control_group_memory(&limit_bytes, &used_bytes));
    assert_int_equal(limit_bytes, 4096);
    assert_int_equal(used_bytes, 1024);
}

static void a_container_finds_its_limit_at_the_mount(void **state)
{
    (void)state;
    fake_file("/proc/self/cgroup", "0::/docker/0123456789\n");
    fake_file(V2 "/memory.max", "2048\n");
    fake_file(V2 "/memory.current", "48\n");
    assert_true(gos_control_group_memory(&limit_bytes, &used_bytes));
    assert_int_equal(limit_bytes, 2048);
    assert_int_equal(used_bytes, 48);
}

static void groups_without_limits_are_no_limit(void **state)
{
    (void)state;
    fake_file("/proc/self/cgroup", "0::/\n");
    assert_true(gos_control_group_memory(&limit_bytes, &used_bytes));
    assert_int_equal(limit_bytes, UINT64_MAX);
}

static void odd_group_lines_are_passed_over(void **state)
{
    (void)state;
    fake_file("/proc/self/cgroup", "\n:\n::\nabc\n7:memory\n0::/g");
    fake_file(V2 "/g/memory.max", "10\n");
    assert_true(gos_control_group_memory(&limit_bytes, &used_bytes));
    assert_int_equal(limit_bytes, 10);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(fields_are_found_at_the_start_of_lines_only),
        TEST(memory_address_space_and_maps_are_read),
        TEST(what_is_locked_pinned_and_promised_is_read),
        TEST(a_file_that_holds_no_mode_is_no_mode),
        TEST(missing_files_are_said_one_by_one),
        TEST(group_v2_gives_its_limit_without_droppable_cache),
        TEST(the_tightest_group_above_counts),
        TEST(group_v1_is_found_among_joint_controllers),
        TEST(a_container_finds_its_limit_at_the_mount),
        TEST(groups_without_limits_are_no_limit),
        TEST(odd_group_lines_are_passed_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
