#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>

#include "../../src/base/os.h"
#include "../../src/observe/device_state.h"
#include "../../src/observe/observe.h"
#include "../../src/track/event.h"
#include "../../src/track/pool.h"
#include "observe_fake_files.h"
#include "observe_fake_gpu.h"

static struct gos_evidence evidence;

static int begin(void **state)
{
    (void)state;
    gos_registry_reset_after_fork();
    gos_pool_reset_after_fork();
    gos_event_reset_after_fork();
    fake_files_install();
    fake_gpu_install();
    memset(&evidence, 0, sizeof(evidence));
    return 0;
}

static int end(void **state)
{
    (void)state;
    gos_observe_release(&evidence);
    fake_files_remove();
    return 0;
}

static bool is_incomplete(const char *words)
{
    for (size_t i = 0; i < evidence.incomplete_count; i++)
        if (strstr(evidence.incomplete[i], words) != NULL)
            return true;
    return false;
}

static void allocate_in_context(uint64_t address, uint32_t device)
{
    uint16_t home = gos_home_intern(&(struct gos_home){.context = FAKE_CONTEXT(device)});
    struct gos_allocation allocation = {
        .address = address, .bytes = 4096, .kind = GOS_KIND_DEVICE, .device = device, .home = home};

    gos_context_seen(FAKE_CONTEXT(device), device);
    assert_int_equal(gos_registry_add(&allocation), 0);
}

static void only_devices_with_a_context_are_read(void **state)
{
    (void)state;
    assert_int_equal(gos_observe(&evidence, NULL, GOS_OBSERVE_ALL), 0);
    assert_int_equal(evidence.device_count, 2);
    assert_true(evidence.devices[0].present);
    assert_true(evidence.devices[0].driver_known);
    assert_int_equal(evidence.devices[0].driver_free_bytes, 5ul << 30);
    assert_int_equal(evidence.devices[0].driver_total_bytes, 16ul << 30);
    assert_string_equal(evidence.devices[0].name, "Fake 16");
    assert_string_equal(evidence.devices[0].uuid, "GPU-00f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff");
    assert_false(evidence.devices[1].present);
    assert_string_equal(evidence.devices[1].name, "");
    assert_int_equal(fake_gpu.memory_calls, 1);
    assert_int_equal(evidence.driver_version, 13000);
    assert_int_equal(evidence.contexts, 1);
}

static void device_on_which_a_first_context_fails_is_read_by_nvml(void **state)
{
    struct gos_request request = {.api = "cuDevicePrimaryCtxRetain", .device = 1, .result = 2};

    (void)state;
    fake_gpu.nvml_memory = (struct gos_nvml_memory){
        .total_bytes = 16ul << 30, .free_bytes = 1ul << 30, .used_bytes = 15ul << 30};
    fake_gpu.nvml_processes[0] = (struct gos_nvml_process){.pid = 7, .used_bytes = 15ul << 30};
    fake_gpu.nvml_process_count = 1;
    gos_observe(&evidence, &request, GOS_OBSERVE_ALL);
    assert_true(evidence.devices[1].present && evidence.devices[1].unused);
    assert_false(evidence.devices[1].driver_known);
    assert_int_equal(evidence.devices[1].nvml_free_bytes, 1ul << 30);
    assert_true(evidence.devices[1].own_bytes_known);
    assert_int_equal(evidence.devices[1].own_bytes, 0);
    assert_int_equal(fake_gpu.depth, 1);
    assert_true(is_incomplete("GPU 1: free memory by the driver"));
}

static void free_memory_is_told_by_the_driver_of_its_own_device_and_by_nvml_of_others(void **state)
{
    uint64_t bytes;

    (void)state;
    fake_gpu.nvml_memory.free_bytes = 1ul << 30;
    assert_int_equal(gos_device_state_free(0, &bytes), 0);
    assert_int_equal(bytes, 5ul << 30);
    assert_int_equal(gos_device_state_free(1, &bytes), 0);
    assert_int_equal(bytes, 1ul << 30);
    fake_gpu.nvml_status = -ENOENT;
    assert_int_equal(gos_device_state_free(1, &bytes), -ENOENT);
}

static void another_device_is_read_in_a_context_that_has_memory(void **state)
{
    (void)state;
    allocate_in_context(0x100000, 1);
    gos_observe(&evidence, NULL, GOS_OBSERVE_CHEAP);
    assert_true(evidence.devices[1].driver_known);
    assert_int_equal(evidence.devices[1].driver_free_bytes, 7ul << 30);
    assert_int_equal(fake_gpu.memory_calls, 2);
    assert_int_equal(fake_gpu.depth, 1);
    assert_int_equal(fake_gpu.stack[0], FAKE_CONTEXT(0));
}

static void a_thread_without_a_context_stays_without_one(void **state)
{
    (void)state;
    fake_gpu.depth = 0;
    allocate_in_context(0x100000, 0);
    gos_observe(&evidence, NULL, GOS_OBSERVE_ALL);
    assert_true(evidence.devices[0].driver_known);
    assert_int_equal(fake_gpu.depth, 0);
}

static void without_any_known_context_the_total_is_read_and_the_rest_said(void **state)
{
    (void)state;
    fake_gpu.depth = 0;
    gos_observe(&evidence, NULL, GOS_OBSERVE_ALL);
    assert_true(evidence.devices[0].present);
    assert_false(evidence.devices[0].driver_known);
    assert_int_equal(evidence.devices[0].driver_total_bytes, 16ul << 30);
    assert_int_equal(fake_gpu.memory_calls, 0);
    assert_true(is_incomplete("GPU 0: free memory"));
    assert_int_equal(evidence.devices[0].nvml_free_bytes, 5ul << 30);
}

static void a_destroyed_context_is_not_visited(void **state)
{
    (void)state;
    allocate_in_context(0x100000, 1);
    gos_context_destroyed(FAKE_CONTEXT(1));
    gos_observe(&evidence, NULL, GOS_OBSERVE_CHEAP);
    assert_true(evidence.devices[1].present);
    assert_false(evidence.devices[1].driver_known);
    assert_int_equal(fake_gpu.memory_calls, 1);
}

static void cheap_evidence_asks_neither_nvml_nor_files(void **state)
{
    const struct gos_request request = {.api = "cudaMalloc", .bytes = 77};

    (void)state;
    gos_observe(&evidence, &request, GOS_OBSERVE_CHEAP);
    assert_int_equal(evidence.devices[0].nvml_total_bytes, 0);
    assert_int_equal(evidence.host.memory_total_bytes, 0);
    assert_int_equal(evidence.variable_count, 0);
    assert_int_equal(evidence.rank, -1);
    assert_int_equal(evidence.request.bytes, 77);
    assert_int_equal(evidence.host.cgroup_limit_bytes, UINT64_MAX);
    assert_int_equal(evidence.incomplete_count, 0);
}

static void nvml_totals_stand_beside_the_drivers(void **state)
{
    (void)state;
    gos_observe(&evidence, NULL, GOS_OBSERVE_ALL);
    assert_int_equal(evidence.devices[0].nvml_status, 0);
    assert_int_equal(evidence.devices[0].nvml_reserved_bytes, 600ul << 20);
    assert_int_equal(evidence.devices[0].nvml_used_bytes, 10ul << 30);
    assert_int_equal(evidence.devices[1].nvml_total_bytes, 0);
}

static void an_absent_nvml_is_said(void **state)
{
    (void)state;
    fake_gpu.nvml_status = -2;
    gos_observe(&evidence, NULL, GOS_OBSERVE_ALL);
    assert_int_equal(evidence.devices[0].nvml_status, -2);
    assert_int_equal(evidence.devices[0].processes_status, -2);
    assert_true(is_incomplete("NVML is not there"));
}

static void an_old_driver_without_most_calls_is_survived(void **state)
{
    (void)state;
    gos_driver = (struct gos_driver){.cuDeviceGetCount = gos_driver.cuDeviceGetCount};
    assert_int_equal(gos_observe(&evidence, NULL, GOS_OBSERVE_ALL), 0);
    assert_int_equal(evidence.device_count, 2);
    assert_false(evidence.devices[0].present);
}

static void no_driver_at_all_is_said(void **state)
{
    (void)state;
    gos_driver = (struct gos_driver){0};
    assert_int_equal(gos_observe(&evidence, NULL, GOS_OBSERVE_ALL), 0);
    assert_int_equal(evidence.device_count, 0);
    assert_true(is_incomplete("no CUDA driver"));
}

static void graph_memory_is_read_only_of_present_devices(void **state)
{
    (void)state;
    fake_gpu.graph_reserved[0] = 32ul << 20;
    fake_gpu.graph_reserved[1] = 64ul << 20;
    gos_observe(&evidence, NULL, GOS_OBSERVE_ALL);
    assert_int_equal(evidence.devices[0].graph_reserved_bytes, 32ul << 20);
    assert_int_equal(evidence.devices[1].graph_reserved_bytes, 0);
}

static void pools_show_the_drivers_figures_and_ours(void **state)
{
    const struct gos_pool_info info = {.pool = 0xAAA, .device = 0, .is_default = true};
    uint16_t home = gos_home_intern(&(struct gos_home){.pool = 0xAAA});
    struct gos_allocation allocation = {
        .address = 0x200000, .bytes = 5000, .kind = GOS_KIND_POOL, .device = 0, .home = home};

    (void)state;
    assert_true(gos_pool_seen(&info));
    assert_int_equal(gos_registry_add(&allocation), 0);
    fake_gpu.pool_reserved = 32ul << 20;
    fake_gpu.pool_used = 8192;
    gos_observe(&evidence, NULL, GOS_OBSERVE_ALL);
    assert_int_equal(evidence.pool_count, 1);
    assert_true(evidence.pools[0].attributes_known);
    assert_true(evidence.pools[0].is_default);
    assert_int_equal(evidence.pools[0].reserved_bytes, 32ul << 20);
    assert_int_equal(evidence.pools[0].used_bytes, 8192);
    assert_int_equal(evidence.pools[0].live_bytes, 5000);
}

static void pools_are_asked_in_relaxed_mode_and_the_mode_is_put_back(void **state)
{
    (void)state;
    assert_true(gos_pool_seen(&(struct gos_pool_info){.pool = 0xAAA}));
    gos_capture_began(0x99, 0xc0);
    gos_observe(&evidence, NULL, GOS_OBSERVE_ALL);
    gos_capture_ended(0x99);
    assert_true(evidence.pools[0].attributes_known);
    assert_int_equal(fake_gpu.queried_mode, CU_STREAM_CAPTURE_MODE_RELAXED);
    assert_int_equal(fake_gpu.mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

static void without_relaxed_mode_a_capture_is_left_alone(void **state)
{
    (void)state;
    gos_driver.cuThreadExchangeStreamCaptureMode = NULL;
    assert_true(gos_pool_seen(&(struct gos_pool_info){.pool = 0xAAA}));
    gos_capture_began(0x99, 0xc0);
    gos_observe(&evidence, NULL, GOS_OBSERVE_ALL);
    gos_capture_ended(0x99);
    assert_int_equal(fake_gpu.pool_calls, 0);
    assert_false(evidence.pools[0].attributes_known);
    assert_true(is_incomplete("memory pools"));
}

static void the_first_sticky_error_is_found_among_the_events(void **state)
{
    (void)state;
    gos_event_add(&(struct gos_event){.what = "cuLaunchKernel", .result = 209, .device = 0});
    gos_event_add(&(struct gos_event){.what = "cuLaunchKernel", .result = 700, .device = 0});
    gos_event_add(&(struct gos_event){.what = "cuMemAlloc_v2", .result = 719, .device = 0});
    gos_observe(&evidence, NULL, GOS_OBSERVE_CHEAP);
    assert_int_equal(evidence.event_count, 3);
    assert_string_equal(evidence.events[0].what, "cuLaunchKernel");
    assert_int_equal(evidence.first_sticky_error, 700);
}

static int other_pid(void)
{
    return 424242;
}

/* Last: the process that uses CUDA first is remembered for good. */
static void a_forked_child_leaves_the_driver_alone(void **state)
{
    int (*pid)(void) = gos_os.pid;

    (void)state;
    gos_observe_at_first_use();
    gos_os.pid = other_pid;
    gos_observe_at_first_use();
    gos_observe(&evidence, NULL, GOS_OBSERVE_ALL);
    gos_os.pid = pid;
    assert_int_equal(evidence.pid, 424242);
    assert_int_equal(evidence.initialised_pid, pid());
    assert_int_equal(evidence.device_count, 0);
    assert_int_equal(fake_gpu.memory_calls, 0);
    assert_true(is_incomplete("forked"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(only_devices_with_a_context_are_read),
        TEST(device_on_which_a_first_context_fails_is_read_by_nvml),
        TEST(free_memory_is_told_by_the_driver_of_its_own_device_and_by_nvml_of_others),
        TEST(another_device_is_read_in_a_context_that_has_memory),
        TEST(a_thread_without_a_context_stays_without_one),
        TEST(without_any_known_context_the_total_is_read_and_the_rest_said),
        TEST(a_destroyed_context_is_not_visited),
        TEST(cheap_evidence_asks_neither_nvml_nor_files),
        TEST(nvml_totals_stand_beside_the_drivers),
        TEST(an_absent_nvml_is_said),
        TEST(an_old_driver_without_most_calls_is_survived),
        TEST(no_driver_at_all_is_said),
        TEST(graph_memory_is_read_only_of_present_devices),
        TEST(pools_show_the_drivers_figures_and_ours),
        TEST(pools_are_asked_in_relaxed_mode_and_the_mode_is_put_back),
        TEST(without_relaxed_mode_a_capture_is_left_alone),
        TEST(the_first_sticky_error_is_found_among_the_events),
        TEST(a_forked_child_leaves_the_driver_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
