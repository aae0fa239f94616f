/* The steps reserve, wait and flush on a driver and a clock of our own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "../../src/base/options.h"
#include "../../src/base/os.h"
#include "../../src/cuda/driver.h"
#include "../../src/recover/flush_callback.h"
#include "../../src/recover/ladder.h"
#include "../../src/recover/reserve.h"
#include "../../src/recover/step_fallback.h"
#include "../../src/recover/step_wait.h"
#include "../../src/track/fallback.h"
#include "../../src/track/held.h"
#include "../../src/track/pool.h"

#define MIB ((uint64_t)1 << 20)
#define SECOND 1000000000ull

static struct gos_os real_os;
static uint64_t now_ns, free_now_bytes, freed_at_ns, freed_bytes;
static unsigned creates, releases;
static CUresult create_result, release_result;
static CUdevice current_device;
static CUstreamCaptureMode mode;

static uint64_t tell_time(void)
{
    return now_ns;
}

static void pass_time(uint64_t ns)
{
    now_ns += ns;
}

static CUresult get_device(CUdevice *device)
{
    *device = current_device;
    return CUDA_SUCCESS;
}

/* Somebody else may give memory back as time goes on. */
static CUresult get_info(size_t *available, size_t *total)
{
    *available = free_now_bytes + (now_ns >= freed_at_ns ? freed_bytes : 0);
    *total = 16384 * MIB;
    return CUDA_SUCCESS;
}

static CUresult create(CUmemGenericAllocationHandle *handle, size_t bytes,
                       const CUmemAllocationProp *prop, unsigned long long flags)
{
    assert_int_equal(prop->location.id, current_device);
    assert_int_equal(flags, 0);
    assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
    creates++;
    if (create_result == CUDA_SUCCESS)
        free_now_bytes -= bytes;
    *handle = 0x77;
    return create_result;
}

static CUresult release(CUmemGenericAllocationHandle handle)
{
    assert_int_equal(handle, 0x77);
    releases++;
    return release_result;
}

static CUresult exchange(CUstreamCaptureMode *other)
{
    CUstreamCaptureMode old = mode;

    mode = *other;
    *other = old;
    return CUDA_SUCCESS;
}

static int start(void **state)
{
    (void)state;
    real_os = gos_os;
    gos_os.monotonic_ns = tell_time;
    gos_os.sleep_ns = pass_time;
    gos_driver = (struct gos_driver){.cuCtxGetDevice = get_device,
                                     .cuMemGetInfo = get_info,
                                     .cuMemCreate = create,
                                     .cuMemRelease = release,
                                     .cuThreadExchangeStreamCaptureMode = exchange};
    memset(&gos_options, 0, sizeof gos_options);
    gos_options.retry = ~0u;
    gos_options.retry_budget = 10 * SECOND;
    gos_options.flush_budget = SECOND;
    now_ns = 1000 * SECOND;
    free_now_bytes = 8192 * MIB;
    freed_at_ns = UINT64_MAX;
    freed_bytes = 0;
    creates = releases = 0;
    create_result = release_result = CUDA_SUCCESS;
    mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    gos_step_wait_reset_after_fork();
    return 0;
}

/* Each test of the reserve has a device of its own: what was tried once stays tried. */
static int start_with_reserve(void **state)
{
    start(state);
    current_device++;
    gos_options.reserve = 511 * MIB;
    gos_reserve_start();
    return 0;
}

static int restore(void **state)
{
    (void)state;
    gos_os = real_os;
    return 0;
}

/* --- reserve --- */

static uint32_t device(void)
{
    return (uint32_t)current_device;
}

static uint64_t context(void)
{
    return 0xc0 + device();
}

static void take(void)
{
    gos_reserve_take(device(), context());
}

static void reserve_is_taken_once_and_in_whole_blocks(void **state)
{
    (void)state;
    assert_true(gos_reserve_is_lacking(device()));
    take();
    assert_int_equal(gos_held_bytes(device()), 512 * MIB);
    assert_false(gos_reserve_is_lacking(device()));
    assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    take();
    assert_int_equal(creates, 1);
}

static void reserve_that_was_given_up_comes_back_a_while_later_and_with_room(void **state)
{
    uint64_t bytes;

    (void)state;
    take();
    assert_int_equal(gos_reserve_give_up(device(), &bytes), 0);
    assert_int_equal(bytes, 512 * MIB);
    assert_int_equal(gos_held_bytes(device()), 0);
    assert_true(gos_reserve_is_lacking(device()));
    take();
    assert_int_equal(creates, 1); /* too early */
    pass_time(2 * SECOND);
    free_now_bytes = 1000 * MIB; /* the host would be left with less than it needed */
    take();
    assert_int_equal(creates, 1);
    pass_time(2 * SECOND);
    free_now_bytes = 1024 * MIB;
    take();
    assert_int_equal(creates, 2);
    assert_int_equal(gos_held_bytes(device()), 512 * MIB);
}

static void reserve_is_not_taken_beside_a_capture_or_from_another_device(void **state)
{
    (void)state;
    gos_capture_began(0x99, 0xc0);
    take();
    gos_capture_ended(0x99);
    current_device++;
    gos_reserve_take(device() - 1, context());
    current_device--;
    assert_int_equal(creates, 0);
    take();
    assert_int_equal(creates, 1);
}

static void reserve_that_the_driver_keeps_is_still_held(void **state)
{
    uint64_t bytes;

    (void)state;
    take();
    release_result = CUDA_ERROR_INVALID_VALUE;
    assert_int_equal(gos_reserve_give_up(device(), &bytes), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(bytes, 0);
    assert_int_equal(gos_held_bytes(device()), 512 * MIB);
}

static void reserve_goes_with_its_context_and_no_other(void **state)
{
    (void)state;
    take();
    gos_reserve_context_ended(context() + 1);
    assert_int_equal(gos_held_bytes(device()), 512 * MIB);
    gos_reserve_context_ended(context());
    assert_int_equal(gos_held_bytes(device()), 0);
    assert_int_equal(releases, 1);
}

/* --- wait --- */

static struct gos_evidence evidence;
static struct gos_diagnosis diagnosis;
static struct gos_process_evidence neighbours[2];

static struct gos_ladder wait_ladder(uint32_t pid, uint64_t mib)
{
    memset(&evidence, 0, sizeof evidence);
    memset(&diagnosis, 0, sizeof diagnosis);
    current_device = 0;
    gos_options.wait = 10 * SECOND;
    neighbours[0] = (struct gos_process_evidence){
        .pid = pid, .relation = GOS_PROCESS_OTHER, .used_bytes = mib * MIB};
    evidence.processes = neighbours;
    evidence.process_count = 1;
    evidence.request = (struct gos_request){.bytes_known = true, .bytes = 9000 * MIB};
    diagnosis.evidence = &evidence;
    diagnosis.ledgers[0].lines[GOS_LEDGER_OTHERS].bytes = (int64_t)(mib * MIB);
    diagnosis.ledgers[0].lines[GOS_LEDGER_FREE].bytes = 8192 * MIB;
    diagnosis.verdict.code = GOS_VERDICT_EXHAUSTED_BY_OTHERS;
    diagnosis.verdict.short_bytes = 808 * MIB;
    return (struct gos_ladder){.diagnosis = &diagnosis};
}

static bool may_wait(uint32_t pid, uint64_t mib)
{
    struct gos_ladder ladder = wait_ladder(pid, mib);
    const char *why_not = NULL;
    bool may = gos_step_wait_may_help(&ladder, &why_not);

    assert_true(may == (why_not == NULL));
    return may;
}

static struct gos_step_record wait_for(uint32_t pid, uint64_t mib)
{
    struct gos_ladder ladder = wait_ladder(pid, mib);
    struct gos_step_record record = {.result = "skipped", .reason = ""};

    gos_step_wait_run(&ladder, &record);
    return record;
}

static void wait_ends_soon_after_there_is_room(void **state)
{
    uint64_t began_ns = now_ns;

    (void)state;
    freed_at_ns = now_ns + 3 * SECOND;
    freed_bytes = 1024 * MIB;
    assert_string_equal(wait_for(7, 4096).result, "no help"); /* until the retry says more */
    assert_in_range(now_ns - began_ns, 3 * SECOND, 3 * SECOND + SECOND / 5);
}

static void wait_is_given_up_at_the_budget_and_not_repeated_for_the_same(void **state)
{
    uint64_t began_ns = now_ns;

    (void)state;
    assert_string_equal(wait_for(7, 4096).result, "timed out");
    assert_in_range(now_ns - began_ns, 10 * SECOND, 10 * SECOND + SECOND / 5);
    assert_false(may_wait(7, 4096));
    assert_false(may_wait(7, 5000)); /* it has grown */
    assert_false(may_wait(7, 4090)); /* noise */
    assert_true(may_wait(7, 3000));  /* it gives back: another story */
    assert_true(may_wait(8, 4096));  /* another neighbour */
}

/* Beside pid 7 with 4096 MiB. */
static struct gos_ladder wait_ladder_beside(uint32_t pid, uint64_t mib)
{
    struct gos_ladder ladder = wait_ladder(7, 4096);

    neighbours[1] = (struct gos_process_evidence){
        .pid = pid, .relation = GOS_PROCESS_OTHER, .used_bytes = mib * MIB};
    evidence.process_count = 2;
    diagnosis.ledgers[0].lines[GOS_LEDGER_OTHERS].bytes += (int64_t)(mib * MIB);
    return ladder;
}

static bool may_wait_beside(uint32_t pid, uint64_t mib)
{
    struct gos_ladder ladder = wait_ladder_beside(pid, mib);
    const char *why_not = NULL;

    return gos_step_wait_may_help(&ladder, &why_not);
}

static void small_ones_that_come_and_go_are_no_other_story(void **state)
{
    (void)state;
    wait_for(7, 4096);
    assert_false(may_wait_beside(8, 600));
    assert_true(may_wait_beside(8, 900)); /* of whom it could be had */

    struct gos_ladder ladder = wait_ladder_beside(8, 900);
    struct gos_step_record record;
    gos_step_wait_run(&ladder, &record);
    assert_false(may_wait_beside(8, 900));
    assert_false(may_wait_beside(9, 600));
    assert_true(may_wait(7, 4096)); /* the other one has left, and that was enough */
}

/* Pids without numbers: what they hold is hidden. */
static bool may_wait_for_numberless(uint32_t pid)
{
    struct gos_ladder ladder = wait_ladder(pid, 0);
    const char *why_not = NULL;

    neighbours[0].used_bytes = UINT64_MAX;
    diagnosis.ledgers[0].lines[GOS_LEDGER_HIDDEN].bytes = 4096 * MIB;
    if (!gos_step_wait_may_help(&ladder, &why_not))
        return false;
    gos_step_wait_run(&ladder, &(struct gos_step_record){.result = ""});
    return true;
}

static void who_has_no_number_is_known_by_its_pid(void **state)
{
    (void)state;
    assert_true(may_wait_for_numberless(7));
    assert_false(may_wait_for_numberless(7));
    assert_true(may_wait_for_numberless(8));
}

static void wait_that_was_short_leaves_the_rest_of_the_budget_to_later_failures(void **state)
{
    (void)state;
    freed_at_ns = now_ns + 3 * SECOND;
    freed_bytes = 1024 * MIB;
    wait_for(7, 4096);
    freed_bytes = 0;
    uint64_t began_ns = now_ns;
    assert_string_equal(wait_for(7, 4096).result, "timed out");
    assert_in_range(now_ns - began_ns, 6 * SECOND, 7 * SECOND + SECOND / 5);
}

static void nobody_is_waited_for_where_nobody_holds_the_memory(void **state)
{
    struct gos_ladder ladder = wait_ladder(7, 4096);
    const char *why_not = NULL;

    (void)state;
    diagnosis.verdict.code = GOS_VERDICT_EXHAUSTED_BY_PROCESS;
    assert_false(gos_step_wait_may_help(&ladder, &why_not));
    diagnosis.verdict.has_runner_up = true;
    diagnosis.verdict.runner_up = GOS_VERDICT_EXHAUSTED_BY_OTHERS;
    assert_true(gos_step_wait_may_help(&ladder, &why_not));
    current_device = 1; /* whose free memory cannot be looked at from here */
    assert_false(gos_step_wait_may_help(&ladder, &why_not));
}

/* --- fallback --- */

static CUmemAccess_flags access_of_others;

static CUresult get_access(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location)
{
    assert_ptr_equal(pool, (CUmemoryPool)0x4000);
    assert_int_equal(location->id, 1);
    *flags = access_of_others;
    return CUDA_SUCCESS;
}

static CUdeviceptr freed_address;

static CUresult free_memory(CUdeviceptr pointer)
{
    freed_address = pointer;
    return CUDA_SUCCESS;
}

static CUresult allocate(CUdeviceptr *pointer, size_t bytes)
{
    *pointer = 0xd000;
    return bytes == 9000 * MIB ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static void plain_memory_does_not_stand_in_for_a_pool_that_other_devices_use(void **state)
{
    struct gos_ladder ladder = wait_ladder(7, 0);
    struct gos_step_record record;

    (void)state;
    gos_fallback_reset_after_fork();
    gos_options.fallback = 1u << GOS_FALLBACK_SYNC;
    gos_driver.cuMemPoolGetAccess = get_access;
    gos_driver.cuMemAlloc = allocate;
    evidence.device_count = 2;
    evidence.request.kind = GOS_KIND_POOL;
    evidence.request.pool = 0x4000;
    access_of_others = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    assert_false(gos_step_fallback_run(&ladder, &record));
    assert_string_equal(record.reason, "async-to-sync: other devices may use the pool");
    access_of_others = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    assert_true(gos_step_fallback_run(&ladder, &record));
    assert_int_equal(ladder.substitute, 0xd000);
    assert_int_equal(ladder.substitute_kind, GOS_KIND_DEVICE);
    assert_int_equal(gos_fallback_total(0, GOS_FALLBACK_SYNC).live_bytes, 9000 * MIB);
}

static void full_table_of_fallbacks_gives_the_memory_back(void **state)
{
    struct gos_ladder ladder = wait_ladder(7, 0);
    struct gos_step_record record;
    struct gos_fallback_memory one = {.bytes = 1, .way = GOS_FALLBACK_HOST};

    (void)state;
    gos_fallback_reset_after_fork();
    for (one.address = 2; gos_fallback_add(&one); one.address++)
        ;
    gos_options.fallback = 1u << GOS_FALLBACK_SYNC;
    gos_driver.cuMemAlloc = allocate;
    gos_driver.cuMemFree = free_memory;
    evidence.request.kind = GOS_KIND_POOL;
    assert_false(gos_step_fallback_run(&ladder, &record));
    assert_int_equal(freed_address, 0xd000);
    assert_int_equal(ladder.substitute, 0);
    gos_fallback_reset_after_fork();
}

/* --- the ladder around them --- */

static int keep(void *arg, int asked_device, uint64_t wanted_bytes)
{
    (void)arg, (void)asked_device, (void)wanted_bytes;
    return 0;
}

static int refuse_mask(uint64_t set, uint64_t *old)
{
    (void)set, (void)old;
    return -EINVAL;
}

static void flush_without_a_thread_is_an_error(void **state)
{
    struct gos_step_record steps[GOS_STEP_MAX];
    uint32_t count = 0;
    struct gos_ladder ladder = wait_ladder(7, 0);

    (void)state;
    gos_options.retry = GOS_RETRY_FLUSH;
    gos_options.wait = 0;
    gos_os.signal_mask = refuse_mask;
    ladder.deadline_ns = now_ns + SECOND;
    assert_int_equal(gos_flush_callback_add("keeper", keep, NULL), 0);
    assert_false(gos_ladder_climb(&ladder, steps, &count));
    assert_int_equal(gos_flush_callback_remove(keep, NULL), 0);
    for (uint32_t i = 0; i < count; i++)
        assert_string_equal(steps[i].result,
                            strcmp(steps[i].step, "flush") == 0 ? "error" : "skipped");
}

static void time_spent_in_wait_is_not_taken_from_the_other_steps(void **state)
{
    struct gos_step_record steps[GOS_STEP_MAX];
    uint32_t count = 0;
    struct gos_ladder ladder = wait_ladder(7, 4096);

    (void)state;
    gos_options.retry = GOS_RETRY_WAIT | GOS_RETRY_FALLBACK;
    gos_options.fallback = 1;
    ladder.deadline_ns = now_ns + SECOND;
    uint64_t before_ns = gos_ladder_waited_ns();
    assert_false(gos_ladder_climb(&ladder, steps, &count));
    assert_int_equal(gos_ladder_waited_ns() - before_ns, 10 * SECOND); /* nor from other threads */
    assert_string_equal(steps[count - 2].result, "timed out");
    assert_string_equal(steps[count - 1].step, "fallback");
    assert_string_equal(steps[count - 1].reason, "this call cannot return other memory");
}

static void used_up_budget_stops_all_steps_but_wait(void **state)
{
    struct gos_step_record steps[GOS_STEP_MAX];
    uint32_t count = 0;
    struct gos_ladder ladder = wait_ladder(7, 4096);

    (void)state;
    ladder.deadline_ns = now_ns - 1;
    ladder.is_replaceable = true;
    gos_options.fallback = 1;
    freed_at_ns = 0;
    freed_bytes = 9000 * MIB;
    assert_true(gos_ladder_climb(&ladder, steps, &count));
    assert_string_equal(steps[count - 1].step, "wait");
    for (uint32_t i = 0; i + 1 < count; i++)
        assert_string_equal(steps[i].result, "skipped");
    assert_false(gos_ladder_climb(&ladder, steps, &count));
    assert_string_equal(steps[count - 1].reason, "GPUOOMSHIM_RETRY_BUDGET is used up");
}

static void what_was_spent_waiting_for_the_turn_is_taken_from_the_budget(void **state)
{
    struct gos_ladder ladder = wait_ladder(7, 4096);
    const char *reason;

    (void)state;
    gos_ladder_open(&ladder, &diagnosis, 9 * SECOND, &reason);
    assert_int_equal(ladder.deadline_ns, now_ns + SECOND);
    gos_ladder_open(&ladder, &diagnosis, 11 * SECOND, &reason);
    assert_int_equal(ladder.deadline_ns, now_ns);
}

static CUresult must_not_be_asked(size_t *available, size_t *total)
{
    *available = *total = 0;
    fail_msg("the driver was asked");
    return CUDA_ERROR_NOT_INITIALIZED;
}

static void forked_child_asks_no_driver(void **state)
{
    struct gos_ladder ladder = wait_ladder(7, 4096);
    const char *reason;

    (void)state;
    gos_driver.cuMemGetInfo = must_not_be_asked;
    evidence.pid = evidence.initialised_pid + 1;
    gos_ladder_open(&ladder, &diagnosis, 0, &reason);
    evidence.pid = evidence.initialised_pid;
    assert_true(ladder.closed);
    assert_non_null(reason);
}

static bool climb_beside_capture(struct gos_ladder *ladder)
{
    struct gos_step_record steps[GOS_STEP_MAX];
    uint32_t count = 0;

    gos_capture_began(0x99, 0xc0);
    bool again = gos_ladder_climb(ladder, steps, &count);
    gos_capture_ended(0x99);
    for (uint32_t i = 0; i < count; i++) {
        if (!strstr(steps[i].reason, "setting")) /* nobody gave it */
            assert_string_equal(steps[i].reason, "a stream of this process is being captured");
    }
    return again;
}

static void capture_that_begins_between_two_steps_stops_the_later_one(void **state)
{
    struct gos_ladder ladder = wait_ladder(7, 4096);

    (void)state;
    ladder.deadline_ns = now_ns + SECOND;
    freed_at_ns = 0;
    freed_bytes = 9000 * MIB; /* waiting would end at once */
    assert_false(climb_beside_capture(&ladder));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, restore)
#define RESERVE_TEST(name) cmocka_unit_test_setup_teardown(name, start_with_reserve, restore)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RESERVE_TEST(reserve_is_taken_once_and_in_whole_blocks),
        RESERVE_TEST(reserve_that_was_given_up_comes_back_a_while_later_and_with_room),
        RESERVE_TEST(reserve_is_not_taken_beside_a_capture_or_from_another_device),
        RESERVE_TEST(reserve_that_the_driver_keeps_is_still_held),
        RESERVE_TEST(reserve_goes_with_its_context_and_no_other),
        TEST(wait_ends_soon_after_there_is_room),
        TEST(wait_is_given_up_at_the_budget_and_not_repeated_for_the_same),
        TEST(small_ones_that_come_and_go_are_no_other_story),
        TEST(who_has_no_number_is_known_by_its_pid),
        TEST(wait_that_was_short_leaves_the_rest_of_the_budget_to_later_failures),
        TEST(nobody_is_waited_for_where_nobody_holds_the_memory),
        TEST(plain_memory_does_not_stand_in_for_a_pool_that_other_devices_use),
        TEST(full_table_of_fallbacks_gives_the_memory_back),
        TEST(flush_without_a_thread_is_an_error),
        TEST(time_spent_in_wait_is_not_taken_from_the_other_steps),
        TEST(used_up_budget_stops_all_steps_but_wait),
        TEST(what_was_spent_waiting_for_the_turn_is_taken_from_the_budget),
        TEST(forked_child_asks_no_driver),
        TEST(capture_that_begins_between_two_steps_stops_the_later_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
