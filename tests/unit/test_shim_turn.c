/* Who shares the story of another thread's failure, and who has one of his own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>

#include "../../src/base/os.h"
#include "../../src/shim/turn.h"

#define MS UINT64_C(1000000)
#define GIB (UINT64_C(1) << 30)

static uint64_t now_ns;

static uint64_t tell_time(void)
{
    return now_ns;
}

static int start(void **state)
{
    (void)state;
    gos_os.monotonic_ns = tell_time;
    now_ns = 1000 * MS;
    gos_turn_reset_after_fork();
    return 0;
}

static struct gos_request request_of(uint32_t requester, uint64_t bytes)
{
    return (struct gos_request){.api = "cuMemAlloc",
                                .kind = GOS_KIND_DEVICE,
                                .bytes_known = true,
                                .bytes = bytes,
                                .result = 2,
                                .requester_module = requester,
                                .origin = requester,
                                .monotonic_ns = now_ns};
}

/* On a thread of its own, for who failed before has another story. */
static uint32_t first_requester;
static void *tell_first(void *recovered)
{
    struct gos_request request = request_of(first_requester, GIB);
    assert_true(gos_turn_take(false));
    gos_turn_end(&request, recovered != NULL);
    return NULL;
}

static void first_fails_of(uint32_t requester, void *recovered)
{
    pthread_t thread;
    first_requester = requester;
    assert_int_equal(pthread_create(&thread, NULL, tell_first, recovered), 0);
    pthread_join(thread, NULL);
}

static void first_fails(void *recovered)
{
    first_fails_of(1, recovered);
}

static bool is_told(uint32_t requester, uint64_t bytes, uint64_t after_ns)
{
    now_ns += after_ns;
    struct gos_request request = request_of(requester, bytes);
    assert_true(gos_turn_take(false));
    bool told = gos_turn_is_told(&request, false);
    gos_turn_pass();
    return told;
}

static void a_queue_of_failures_is_one_story(void **state)
{
    (void)state;
    first_fails(NULL);
    for (int i = 0; i < 22; i++)
        assert_true(is_told(1, GIB, 90 * MS));
    assert_false(is_told(1, GIB, 90 * MS)); /* the queue has an end */
}

static void a_pause_ends_the_queue(void **state)
{
    (void)state;
    first_fails(NULL);
    assert_true(is_told(1, GIB, 90 * MS));
    assert_false(is_told(1, GIB, 110 * MS));
}

static void sizes_of_one_line_are_one_story_and_without_a_line_less_is_another(void **state)
{
    (void)state;
    first_fails(NULL);
    assert_true(is_told(1, GIB - 1, MS));
    assert_true(is_told(1, GIB, MS));
    first_fails_of(0, NULL);
    assert_false(is_told(0, GIB - 1, MS));
    assert_true(is_told(0, GIB, MS));
}

static void another_library_has_a_story_of_its_own_unless_memory_was_recovered(void **state)
{
    (void)state;
    first_fails(NULL);
    assert_false(is_told(2, GIB, MS));
    assert_false(is_told(2, GIB, 0));
    first_fails(&now_ns);
    assert_true(is_told(2, GIB, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_queue_of_failures_is_one_story, start),
        cmocka_unit_test_setup(a_pause_ends_the_queue, start),
        cmocka_unit_test_setup(sizes_of_one_line_are_one_story_and_without_a_line_less_is_another,
                               start),
        cmocka_unit_test_setup(another_library_has_a_story_of_its_own_unless_memory_was_recovered,
                               start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
