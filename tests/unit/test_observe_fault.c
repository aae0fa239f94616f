#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "../../src/base/os.h"
#include "../../src/observe/observe.h"
#include "../../src/track/event.h"
#include "../../src/track/pool.h"
#include "observe_fake_files.h"
#include "observe_fake_gpu.h"

#define ALLOCATIONS 3000
#define RUNS_MAX 2000

static struct gos_evidence evidence;

static void allocate_much(void)
{
    uint16_t device_home = gos_home_intern(&(struct gos_home){.context = FAKE_CONTEXT(1)});
    uint16_t pool_home = gos_home_intern(&(struct gos_home){.pool = 0xAAA});

    for (uint32_t i = 0; i < ALLOCATIONS; i++) {
        struct gos_allocation allocation = {.address = 0x100000 + i * 0x1000ul,
                                            .bytes = 100,
                                            .kind = i % 2 ? GOS_KIND_DEVICE : GOS_KIND_POOL,
                                            .device = i % 2,
                                            .home = i % 2 ? device_home : pool_home};

        assert_int_equal(gos_registry_add(&allocation), 0);
    }
}

static int begin(void **state)
{
    (void)state;
    gos_registry_reset_after_fork();
    gos_pool_reset_after_fork();
    allocate_much();
    gos_context_seen(FAKE_CONTEXT(0), 0);
    gos_context_seen(FAKE_CONTEXT(1), 1);
    gos_pool_seen(&(struct gos_pool_info){.pool = 0xAAA, .is_default = true});
    gos_pending_add(&(struct gos_pending){
        .stream = 5, .context = FAKE_CONTEXT(1), .device = 1, .bytes = 9, .count = 1});
    gos_event_add(&(struct gos_event){.what = "cuLaunchKernel", .result = 700});
    memset(&evidence, 0, sizeof(evidence));
    fake_gpu_install();
    fake_gpu.nvml_processes[0] = (struct gos_nvml_process){(uint32_t)gos_os.pid(), 1000};
    fake_gpu.nvml_processes[1] = (struct gos_nvml_process){900, 1000};
    fake_gpu.nvml_process_count = 2;
    fake_files_install();
    fake_file("/proc/900/status", "Name:\tx\nPPid:\t901\n");
    fake_file("/proc/901/status", "Name:\ty\nPPid:\t1\n");
    fake_file("/proc/meminfo", "MemTotal: 10 kB\nMemAvailable: 5 kB\n");
    fake_file("/proc/self/status", "VmSize: 3 kB\n");
    fake_file("/proc/self/cgroup", "0::/g\n");
    fake_file("/sys/fs/cgroup/g/memory.max", "1000\n");
    fake_file("/sys/fs/cgroup/g/memory.current", "10\n");
    fake_file("/proc/self/maps", "a\nb\n");
    fake_file("/proc/sys/vm/max_map_count", "100\n");
    fake_file("/proc/sys/vm/overcommit_memory", "0\n");
    fake_file("/proc/self/cmdline", "program");
    return 0;
}

static int end(void **state)
{
    (void)state;
    fake_files_remove();
    return 0;
}

static void check_what_must_hold_always(const struct gos_request *request)
{
    assert_string_equal(evidence.request.api, request->api);
    assert_int_equal(evidence.devices[0].live[GOS_KIND_POOL].live_count, ALLOCATIONS / 2);
    assert_int_equal(evidence.devices[1].live[GOS_KIND_DEVICE].live_bytes, 100 * ALLOCATIONS / 2);
    assert_int_equal(fake_gpu.depth, 1);
    assert_int_equal(fake_gpu.stack[0], FAKE_CONTEXT(0));
    assert_int_equal(fake_gpu.mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    assert_int_equal(fake_files_open_count(), 0);
}

static void any_call_of_the_system_may_fail_and_leaves_nothing_behind(void **state)
{
    const struct gos_request request = {.api = "cudaMalloc", .bytes = 1 << 20};
    unsigned nth = 1;
    bool failed;

    (void)state;
    do {
        fake_files_fail(nth);
        int result = gos_observe(&evidence, &request, GOS_OBSERVE_ALL);

        failed = fake_files_failed();
        fake_files_fail(0);
        assert_true(result == 0 || failed);
        check_what_must_hold_always(&request);
        gos_observe_release(&evidence);
        assert_int_equal(fake_files_mapped_bytes(), 0);
    } while (failed && ++nth < RUNS_MAX);
    assert_in_range(nth, 20, RUNS_MAX - 1);
}

static void any_call_of_the_driver_may_fail_and_the_context_is_put_back(void **state)
{
    const struct gos_request request = {.api = "cudaMalloc", .bytes = 1 << 20};
    unsigned nth = 1;

    (void)state;
    do {
        fake_gpu.calls = 0;
        fake_gpu.failed = false;
        fake_gpu.fail_nth = nth;
        assert_int_equal(gos_observe(&evidence, &request, GOS_OBSERVE_ALL), 0);
        check_what_must_hold_always(&request);
        gos_observe_release(&evidence);
    } while (fake_gpu.failed && ++nth < RUNS_MAX);
    assert_in_range(nth, 20, RUNS_MAX - 1);
}

static void a_whole_observation_lacks_nothing(void **state)
{
    (void)state;
    fake_gpu.nvml_memory.used_bytes = 2000;
    assert_int_equal(gos_observe(&evidence, NULL, GOS_OBSERVE_ALL), 0);
    for (size_t i = 0; i < evidence.incomplete_count; i++)
        print_message("%s\n", evidence.incomplete[i]);
    assert_int_equal(evidence.incomplete_count, 0);
    assert_int_equal(evidence.process_count, 4);
    assert_int_equal(evidence.devices[1].small_count, ALLOCATIONS / 2);
    assert_int_equal(evidence.host.cgroup_limit_bytes, 1000);
    assert_int_equal(evidence.pools[0].live_bytes, 100 * ALLOCATIONS / 2);
    assert_int_equal(evidence.first_sticky_error, 700);
    assert_string_equal(evidence.command, "program");
    assert_true(evidence.collected_in_ns > 0);
    gos_observe_release(&evidence);
    assert_int_equal(evidence.use_count, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(any_call_of_the_system_may_fail_and_leaves_nothing_behind),
        TEST(any_call_of_the_driver_may_fail_and_the_context_is_put_back),
        TEST(a_whole_observation_lacks_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
