/* The step sync: bounded whatever other threads do to the stream. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "../../src/base/os.h"
#include "../../src/cuda/driver.h"
#include "../../src/recover/step_sync.h"
#include "../../src/track/pool.h"
#include "../../src/track/stream_use.h"

#define STREAM 0x5000u
#define EVENT 0x6000u

static _Atomic int recording, go_on, destroyed;
static int records, events_alive, synchronized;
static CUresult query_result, create_result;
static CUresult second_result; /* of the event of the second stream */

static CUresult create(CUevent *event, unsigned flags)
{
    (void)flags;
    *event = (CUevent)(uintptr_t)(EVENT + (unsigned)events_alive);
    events_alive += create_result == CUDA_SUCCESS;
    return create_result;
}

static CUresult destroy(CUevent event)
{
    (void)event;
    events_alive--;
    return CUDA_SUCCESS;
}

static CUresult record_event(CUevent event, CUstream stream)
{
    assert_ptr_equal(stream, (CUstream)((uintptr_t)event - EVENT + STREAM));
    records++;
    atomic_store(&recording, 1);
    while (!atomic_load(&go_on))
        usleep(1000);
    return CUDA_SUCCESS;
}

static CUresult query(CUevent event)
{
    return (uintptr_t)event == EVENT ? query_result : second_result;
}

static CUresult synchronize(CUevent event)
{
    (void)event;
    synchronized++;
    return CUDA_SUCCESS;
}

/* Another thread gives the stream work without end: waiting for all of it never ends. */
static CUresult never_returns(CUstream stream)
{
    (void)stream;
    fail_msg("the stream was waited for as a whole");
    return CUDA_SUCCESS;
}

static int start(void **state)
{
    (void)state;
    gos_pool_reset_after_fork();
    gos_pending_add(&(struct gos_pending){.stream = STREAM, .bytes = 1 << 20, .count = 1});
    gos_driver = (struct gos_driver){
        .cuEventCreate = create,
        .cuEventDestroy = destroy,
        .cuEventRecord = record_event,
        .cuEventQuery = query,
        .cuEventSynchronize = synchronize,
        .cuStreamSynchronize = never_returns,
    };
    records = events_alive = synchronized = 0;
    query_result = create_result = CUDA_SUCCESS;
    atomic_store(&go_on, 1);
    atomic_store(&recording, 0);
    atomic_store(&destroyed, 0);
    return 0;
}

static bool run(struct gos_step_record *record)
{
    static struct gos_diagnosis diagnosis;
    static struct gos_evidence evidence;
    static struct gos_stream_evidence stream;
    struct gos_ladder ladder = {.diagnosis = &diagnosis,
                                .sync_until_ns = gos_os.monotonic_ns() + 20000000u};

    stream = (struct gos_stream_evidence){.stream = STREAM, .freed_bytes = 1 << 20};
    evidence.streams = &stream;
    evidence.stream_count = 1;
    diagnosis.evidence = &evidence;
    diagnosis.verdict.pending_bytes = 1 << 19; /* the host has seen the rest */
    *record = (struct gos_step_record){.reason = ""};
    return gos_step_sync_run(&ladder, record);
}

/* Two streams: behind the first 1 GiB was freed, behind the second 2 GiB. */
static struct gos_diagnosis two;
static struct gos_evidence of_two;
static struct gos_stream_evidence streams[2];

static struct gos_ladder ladder_of_two(uint64_t short_bytes, uint64_t patience_ns)
{
    for (uint64_t i = 0; i < 2; i++) {
        uint64_t bytes = (i + 1) << 30;
        gos_pending_add(&(struct gos_pending){.stream = STREAM + i, .bytes = bytes, .count = 1});
        streams[i] = (struct gos_stream_evidence){.stream = STREAM + i, .freed_bytes = bytes};
    }
    of_two.streams = streams;
    of_two.stream_count = 2;
    two.evidence = &of_two;
    two.verdict.short_bytes = short_bytes;
    return (struct gos_ladder){.diagnosis = &two,
                               .sync_until_ns = gos_os.monotonic_ns() + patience_ns};
}

static void stream_that_is_done_and_enough_serves_beside_one_that_never_is(void **state)
{
    struct gos_ladder ladder = ladder_of_two(2ull << 30, UINT64_C(20000000000));
    struct gos_step_record record = {.reason = ""};

    (void)state;
    query_result = CUDA_ERROR_NOT_READY;
    assert_true(gos_step_sync_run(&ladder, &record));
    assert_int_equal(synchronized, 1);
    assert_int_equal(events_alive, 0);
    assert_string_equal(record.result, "no help"); /* until the retry says more */
    assert_true(ladder.sync_left_some);
    ladder.sync_until_ns = gos_os.monotonic_ns() + 20000000u; /* it did not serve */
    gos_step_sync_run(&ladder, &record);
    assert_string_equal(record.result, "timed out");
    assert_false(ladder.sync_left_some);
    assert_int_equal(events_alive, 0);
}

static void nothing_is_waited_for_where_all_of_it_would_be_too_little(void **state)
{
    struct gos_ladder ladder = ladder_of_two(4ull << 30, UINT64_C(20000000000));
    struct gos_step_record record = {.reason = ""};

    (void)state;
    query_result = CUDA_ERROR_NOT_READY;
    assert_true(gos_step_sync_run(&ladder, &record)); /* what is done is drained all the same */
    assert_int_equal(synchronized, 1);
    assert_int_equal(events_alive, 0);
    assert_string_equal(record.result, "no help");
    assert_string_equal(record.reason, "what is still at work is too little to be waited for");
    assert_false(record.is_whole);
    assert_false(ladder.sync_left_some);
}

static int queries_left;

static CUresult query_slowly(CUevent event)
{
    if ((uintptr_t)event == EVENT)
        return CUDA_ERROR_NOT_READY;
    return queries_left-- > 0 ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

static void streams_are_waited_for_side_by_side(void **state)
{
    struct gos_ladder ladder = ladder_of_two(2ull << 30, UINT64_C(20000000000));
    uint64_t began_ns = gos_os.monotonic_ns();
    struct gos_step_record record = {.reason = ""};

    (void)state;
    gos_driver.cuEventQuery = query_slowly;
    queries_left = 9;
    assert_true(gos_step_sync_run(&ladder, &record));
    assert_int_equal(synchronized, 1);
    assert_int_equal(events_alive, 0);
    assert_true(ladder.sync_left_some);
    assert_true(gos_os.monotonic_ns() - began_ns < UINT64_C(10000000000));
}

static bool is_pending(void)
{
    struct gos_pending list[4];

    return gos_pending_list(list, 4) > 0;
}

static void only_what_the_stream_has_now_is_waited_for(void **state)
{
    struct gos_step_record record;

    (void)state;
    assert_true(run(&record));
    assert_int_equal(synchronized, 1);
    assert_int_equal(events_alive, 0);
    assert_false(is_pending());
    assert_true(record.is_whole);
    assert_int_equal(record.given_bytes, 1 << 19);
}

static void stream_that_does_not_get_there_is_left_in_time(void **state)
{
    struct gos_step_record record;

    (void)state;
    query_result = CUDA_ERROR_NOT_READY;
    assert_false(run(&record));
    assert_string_equal(record.result, "timed out");
    assert_int_equal(synchronized, 0);
    assert_int_equal(events_alive, 0);
    assert_true(is_pending());
    assert_false(record.is_whole);
    assert_int_equal(record.given_bytes, 0);
}

static void refused_event_is_an_error_and_touches_no_stream(void **state)
{
    struct gos_step_record record;

    (void)state;
    create_result = CUDA_ERROR_OUT_OF_MEMORY;
    assert_false(run(&record));
    assert_string_equal(record.result, "error");
    assert_int_equal(record.cuda_result, CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(records, 0);
}

static void destroyed_stream_is_not_handed_to_the_driver(void **state)
{
    struct gos_step_record record;

    (void)state;
    gos_pending_stream_destroyed(STREAM);
    assert_false(run(&record));
    assert_int_equal(records, 0);
    assert_int_equal(events_alive, 0);
    assert_string_equal(record.result, "no help");
}

static void captured_stream_is_not_handed_to_the_driver(void **state)
{
    struct gos_step_record record;

    (void)state;
    gos_capture_began(STREAM, 0);
    assert_false(run(&record));
    gos_capture_ended(STREAM);
    assert_int_equal(records, 0);
    assert_string_equal(record.reason, "a stream was destroyed or captured meanwhile");
    assert_false(record.is_whole);
}

static void *destroy_stream(void *unused)
{
    (void)unused;
    gos_pending_stream_destroyed(STREAM);
    gos_stream_use_wait(STREAM);
    atomic_store(&destroyed, 1);
    return NULL;
}

static void *run_there(void *unused)
{
    struct gos_step_record record;

    (void)unused;
    run(&record);
    return NULL;
}

static void destroying_waits_while_the_driver_has_the_stream_and_no_longer(void **state)
{
    pthread_t recoverer, destroyer;

    (void)state;
    atomic_store(&go_on, 0);
    pthread_create(&recoverer, NULL, run_there, NULL);
    while (!atomic_load(&recording))
        usleep(1000);
    pthread_create(&destroyer, NULL, destroy_stream, NULL);
    usleep(50000);
    assert_int_equal(atomic_load(&destroyed), 0);
    query_result = CUDA_ERROR_NOT_READY; /* what follows does not concern the stream */
    atomic_store(&go_on, 1);
    pthread_join(destroyer, NULL);
    pthread_join(recoverer, NULL);
    assert_int_equal(atomic_load(&destroyed), 1);
}

#define TEST(name) cmocka_unit_test_setup(name, start)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(streams_are_waited_for_side_by_side), /* before the first stream is given up */
        TEST(only_what_the_stream_has_now_is_waited_for),
        TEST(stream_that_does_not_get_there_is_left_in_time),
        TEST(refused_event_is_an_error_and_touches_no_stream),
        TEST(destroyed_stream_is_not_handed_to_the_driver),
        TEST(captured_stream_is_not_handed_to_the_driver),
        TEST(destroying_waits_while_the_driver_has_the_stream_and_no_longer),
        TEST(stream_that_is_done_and_enough_serves_beside_one_that_never_is),
        TEST(nothing_is_waited_for_where_all_of_it_would_be_too_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
