/* The ring of recent events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>
#include <cmocka.h>

#include "../../src/base/os.h"
#include "../../src/track/event.h"

static struct gos_event events[2 * GOS_EVENT_RING];

static int start_empty(void **state)
{
    (void)state;
    gos_event_reset_after_fork();
    return 0;
}

static void add(uint64_t bytes)
{
    struct gos_event event = {
        .what = "cuMemAlloc_v2", .result = 2, .device = 1, .bytes = bytes, .tid = -1};

    gos_event_add(&event);
}

static void event_gets_its_time_and_thread(void **state)
{
    uint64_t before = gos_os.wall_ns(), lost;

    (void)state;
    add(512);
    assert_int_equal(gos_event_copy(events, 1, &lost), 1);
    assert_int_equal(lost, 0);
    assert_string_equal(events[0].what, "cuMemAlloc_v2");
    assert_int_equal(events[0].result, 2);
    assert_int_equal(events[0].device, 1);
    assert_int_equal(events[0].bytes, 512);
    assert_int_equal(events[0].tid, gos_os.tid());
    assert_in_range(events[0].wall_ns, before, gos_os.wall_ns());
}

static void empty_ring_gives_nothing(void **state)
{
    uint64_t lost = 5;

    (void)state;
    assert_int_equal(gos_event_copy(events, GOS_EVENT_RING, &lost), 0);
    assert_int_equal(lost, 0);
}

static void full_ring_overwrites_the_oldest_and_says_how_many(void **state)
{
    uint64_t lost;

    (void)state;
    for (uint64_t i = 0; i < GOS_EVENT_RING + 10; i++)
        add(i);
    assert_int_equal(gos_event_copy(events, 2 * GOS_EVENT_RING, &lost), GOS_EVENT_RING);
    assert_int_equal(lost, 10);
    for (uint64_t i = 0; i < GOS_EVENT_RING; i++)
        assert_int_equal(events[i].bytes, i + 10);
}

static void small_room_gets_the_newest(void **state)
{
    uint64_t lost;

    (void)state;
    for (uint64_t i = 0; i < 20; i++)
        add(i);
    assert_int_equal(gos_event_copy(events, 3, &lost), 3);
    assert_int_equal(lost, 17);
    assert_int_equal(events[0].bytes, 17);
    assert_int_equal(events[2].bytes, 19);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(event_gets_its_time_and_thread, start_empty),
        cmocka_unit_test_setup(empty_ring_gives_nothing, start_empty),
        cmocka_unit_test_setup(full_ring_overwrites_the_oldest_and_says_how_many, start_empty),
        cmocka_unit_test_setup(small_room_gets_the_newest, start_empty),
    };

    return cmocka_run_group_tests_name("track_event", tests, NULL, NULL);
}
