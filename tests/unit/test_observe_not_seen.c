/* Each state in which less is seen has words of its own. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "../../src/observe/not_seen.h"
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
    evidence.devices[0].nvml_used_bytes = 1000 * MIB;
    ids.nvml[0] = &ids;
    fake_file("/proc/500/status", "Name:\tpython3\nState:\tR\nPPid:\t1\nUid:\t7\n");
    fake_file("/proc/700/status", "Name:\tnvidia-cuda-mps\nState:\tS\nPPid:\t1\nUid:\t0\n");
    fake_file("/proc/900/status", "Name:\tother\nState:\tS\nPPid:\t1\nUid:\t1234\n");
    return 0;
}

static int end(void **state)
{
    (void)state;
    gos_scratch_release(&evidence.scratch);
    fake_files_remove();
    return 0;
}

static void list(uint32_t pid, uint64_t bytes)
{
    fake_gpu.nvml_processes[fake_gpu.nvml_process_count++] = (struct gos_nvml_process){pid, bytes};
}

static void assert_said_alone(const char *words)
{
    assert_int_equal(evidence.incomplete_count, 1);
    if (strstr(evidence.incomplete[0], words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", evidence.incomplete[0], words);
}

static void an_empty_list_is_a_container_with_its_own_pids(void **state)
{
    (void)state;
    gos_processes_observe(&evidence, &ids);
    assert_said_alone("any process, this one too (NVML's list is empty");
}

static void a_list_of_ourselves_alone_leaves_out_the_others(void **state)
{
    (void)state;
    list(SELF, 300 * MIB);
    gos_processes_observe(&evidence, &ids);
    assert_said_alone("does not list here (other containers or users)");
}

static void a_list_that_explains_all_leaves_nothing_to_say(void **state)
{
    (void)state;
    list(SELF, 300 * MIB);
    list(900, 700 * MIB);
    gos_processes_observe(&evidence, &ids);
    assert_int_equal(evidence.incomplete_count, 0);
}

static void a_list_without_us_lacks_our_own_use(void **state)
{
    (void)state;
    list(900, 1000 * MIB);
    gos_processes_observe(&evidence, &ids);
    assert_said_alone("this process's own use");
}

static void pids_without_numbers_are_as_on_wsl(void **state)
{
    (void)state;
    list(SELF, UINT64_MAX);
    list(900, UINT64_MAX);
    gos_processes_observe(&evidence, &ids);
    assert_said_alone("pids without numbers, as on WSL");
}

static void refusing_and_missing_and_unsupported_differ(void **state)
{
    static const struct {
        int status;
        const char *words;
    } states[] = {{-EACCES, "no permission"},
                  {-ENOENT, "not there"},
                  {-ENOTSUP, "does not support"},
                  {-EIO, "NVML failed"}};

    (void)state;
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        evidence.incomplete_count = 0;
        fake_gpu.nvml_list_status = states[i].status;
        gos_processes_observe(&evidence, &ids);
        assert_said_alone(states[i].words);
        evidence.incomplete_count = 0;
        evidence.devices[0].nvml_status = states[i].status;
        gos_not_seen_nvml(&evidence, &evidence.devices[0]);
        assert_said_alone(states[i].words);
        evidence.devices[0].nvml_status = 0;
    }
}

static void a_refused_list_of_an_instance_is_migs_doing(void **state)
{
    (void)state;
    evidence.devices[0].mig = true;
    fake_gpu.nvml_list_status = -EACCES;
    gos_processes_observe(&evidence, &ids);
    assert_said_alone("a MIG instance");
}

static void an_mps_server_is_marked_and_its_clients_are_not_told_apart(void **state)
{
    (void)state;
    list(700, 1000 * MIB);
    gos_processes_observe(&evidence, &ids);
    assert_true(evidence.processes[0].mps_server);
    assert_int_equal(evidence.incomplete_count, 2);
    assert_non_null(strstr(evidence.incomplete[0], "the MPS server (pid 700)"));
    assert_non_null(strstr(evidence.incomplete[1], "own use"));
}

static void an_mps_client_that_sees_no_server_says_so(void **state)
{
    (void)state;
    evidence.devices[0].mps = true;
    list(SELF, 1000 * MIB);
    gos_processes_observe(&evidence, &ids);
    assert_said_alone("this process is a client of");
}

static void an_integrated_gpu_shares_what_is_free(void **state)
{
    (void)state;
    evidence.devices[0].integrated = true;
    gos_not_seen_devices(&evidence);
    assert_said_alone("shares the host's memory");
}

static void an_instance_shows_nothing_of_the_rest_of_its_card(void **state)
{
    (void)state;
    evidence.devices[0].mig = true;
    gos_not_seen_devices(&evidence);
    assert_said_alone("only this MIG instance");
}

static void several_contexts_share_one_number(void **state)
{
    (void)state;
    evidence.devices[0].context_count = 1;
    gos_not_seen_devices(&evidence);
    assert_int_equal(evidence.incomplete_count, 0);
    evidence.devices[0].context_count = 3;
    gos_not_seen_devices(&evidence);
    assert_said_alone("this process's 3 contexts");
}

static void a_gpu_that_is_not_used_is_not_looked_at(void **state)
{
    (void)state;
    evidence.device_count = 8;
    evidence.devices[1].present = true;
    gos_not_seen_devices(&evidence);
    assert_said_alone("6 of 8 visible GPUs");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_empty_list_is_a_container_with_its_own_pids),
        TEST(a_list_of_ourselves_alone_leaves_out_the_others),
        TEST(a_list_that_explains_all_leaves_nothing_to_say),
        TEST(a_list_without_us_lacks_our_own_use),
        TEST(pids_without_numbers_are_as_on_wsl),
        TEST(refusing_and_missing_and_unsupported_differ),
        TEST(a_refused_list_of_an_instance_is_migs_doing),
        TEST(an_mps_server_is_marked_and_its_clients_are_not_told_apart),
        TEST(an_mps_client_that_sees_no_server_says_so),
        TEST(an_integrated_gpu_shares_what_is_free),
        TEST(an_instance_shows_nothing_of_the_rest_of_its_card),
        TEST(several_contexts_share_one_number),
        TEST(a_gpu_that_is_not_used_is_not_looked_at),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
