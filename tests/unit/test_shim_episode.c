/* Kept failures: lent to one thread, ended by another, never lost and never freed twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../src/base/os.h"
#include "../../src/shim/episode.h"
#include "../../src/shim/failure.h"

struct gos_failure {
    int survived_count;
    int freed_count;
};

static struct gos_failure failures[16];

void gos_failure_survived(struct gos_failure *failure)
{
    assert_int_equal(failure->freed_count, 0);
    failure->survived_count++;
}

void gos_failure_free(struct gos_failure *failure)
{
    if (failure)
        failure->freed_count++;
}

#define SECOND UINT64_C(1000000000)
static uint64_t now_ns;

static uint64_t tell_time(void)
{
    return now_ns;
}

static int start(void **state)
{
    (void)state;
    gos_os.monotonic_ns = tell_time;
    now_ns = 0;
    gos_episode_reset_after_fork();
    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++)
        failures[i] = (struct gos_failure){0};
    return 0;
}

static uint64_t fail_and_keep(struct gos_failure *failure, uint64_t bytes, uint64_t at_ns)
{
    struct gos_request request = {.api = "cudaMalloc",
                                  .kind = GOS_KIND_DEVICE,
                                  .bytes_known = true,
                                  .bytes = bytes,
                                  .requester_module = UINT32_MAX,
                                  .monotonic_ns = at_ns};
    assert_int_equal(gos_episode_failed(&request), GOS_EPISODE_SURFACES);
    return gos_episode_keep(failure);
}

static void what_is_given_back_can_be_borrowed(void **state)
{
    (void)state;
    uint64_t ticket = fail_and_keep(&failures[0], 1000, 1);
    assert_int_not_equal(ticket, 0);
    gos_episode_give_back(ticket);
    assert_ptr_equal(gos_episode_borrow(ticket), &failures[0]);
    gos_episode_give_back(ticket);
    gos_episode_closed_by(1000, GOS_KIND_DEVICE, "cuMemAlloc_v2");
    assert_int_equal(failures[0].survived_count, 1);
    assert_int_equal(failures[0].freed_count, 1);
    assert_null(gos_episode_borrow(ticket));
}

static enum gos_episode_answer piece_fails(uint64_t at_ns)
{
    struct gos_request request = {.api = "cuMemCreate",
                                  .kind = GOS_KIND_PHYSICAL,
                                  .bytes_known = true,
                                  .bytes = 20,
                                  .requester_module = UINT32_MAX,
                                  .monotonic_ns = at_ns};
    return gos_episode_failed(&request);
}

static void pieces_that_nothing_maps_are_no_answer(void **state)
{
    (void)state;
    assert_int_equal(piece_fails(1), GOS_EPISODE_SURFACES);
    gos_episode_give_back(gos_episode_keep(&failures[0]));
    gos_episode_closed_by(20, GOS_KIND_PHYSICAL, "cuMemCreate");
    assert_int_equal(piece_fails(2), GOS_EPISODE_AGAIN);
    assert_int_equal(failures[0].survived_count, 0);
    gos_episode_mapped(); /* of before the second failure: no piece was made since */
    assert_int_equal(piece_fails(3), GOS_EPISODE_AGAIN);
    gos_episode_closed_by(20, GOS_KIND_PHYSICAL, "cuMemCreate");
    gos_episode_mapped();
    assert_int_equal(failures[0].survived_count, 1);
    assert_int_equal(piece_fails(4), GOS_EPISODE_SURFACES);
}

static void other_memory_is_an_answer_to_a_piece_at_once(void **state)
{
    (void)state;
    assert_int_equal(piece_fails(1), GOS_EPISODE_SURFACES);
    gos_episode_give_back(gos_episode_keep(&failures[0]));
    gos_episode_closed_by(20, GOS_KIND_ADDRESS, "cuMemAddressReserve");
    assert_int_equal(failures[0].survived_count, 0);
    gos_episode_closed_by(20, GOS_KIND_DEVICE, "cuMemAlloc_v2");
    assert_int_equal(failures[0].survived_count, 1);
}

static void address_space_is_no_answer(void **state)
{
    (void)state;
    gos_episode_give_back(fail_and_keep(&failures[0], 1000, 1));
    gos_episode_closed_by(1000, GOS_KIND_ADDRESS, "cuMemAddressReserve");
    assert_int_equal(failures[0].survived_count, 0);
}

static enum gos_episode_answer fails_at(uint64_t at_ns)
{
    struct gos_request request = {.api = "cudaMalloc",
                                  .kind = GOS_KIND_DEVICE,
                                  .bytes_known = true,
                                  .bytes = 1000,
                                  .requester_module = UINT32_MAX,
                                  .monotonic_ns = at_ns};
    return gos_episode_failed(&request);
}

static void story_ends_some_time_after_it_was_told_however_often_it_fails(void **state)
{
    (void)state;
    now_ns = 3 * SECOND; /* recovery took so long */
    fail_and_keep(&failures[0], 1000, 1 * SECOND);
    for (uint64_t second = 4; second < 13; second++)
        assert_int_equal(fails_at(second * SECOND), GOS_EPISODE_AGAIN);
    assert_int_equal(fails_at(13 * SECOND), GOS_EPISODE_SURFACES);
    assert_int_equal(fails_at(14 * SECOND), GOS_EPISODE_AGAIN);
}

static void story_ends_sooner_when_its_caller_goes_on(void **state)
{
    (void)state;
    assert_int_equal(fails_at(1 * SECOND), GOS_EPISODE_SURFACES);
    gos_episode_closed_by(1, GOS_KIND_DEVICE, "cuMemAlloc_v2");
    assert_int_equal(fails_at(2 * SECOND), GOS_EPISODE_AGAIN);
    assert_int_equal(fails_at(4 * SECOND), GOS_EPISODE_AGAIN); /* it got nothing since */
    gos_episode_closed_by(1, GOS_KIND_DEVICE, "cuMemAlloc_v2");
    assert_int_equal(fails_at(5 * SECOND), GOS_EPISODE_SURFACES);
}

static void survival_while_it_is_lent_is_told_when_it_comes_back(void **state)
{
    (void)state;
    uint64_t ticket = fail_and_keep(&failures[0], 1000, 1);
    gos_episode_closed_by(1000, GOS_KIND_DEVICE, "cuMemAlloc_v2");
    assert_int_equal(failures[0].survived_count, 0);
    gos_episode_give_back(ticket);
    assert_int_equal(failures[0].survived_count, 1);
    assert_int_equal(failures[0].freed_count, 1);
}

static void another_story_while_it_is_lent_frees_it_when_it_comes_back(void **state)
{
    (void)state;
    uint64_t first = fail_and_keep(&failures[0], 1000, 1);
    uint64_t second = fail_and_keep(&failures[1], 5000, 2);
    assert_int_equal(failures[0].freed_count, 0);
    gos_episode_give_back(first);
    assert_int_equal(failures[0].freed_count, 1);
    assert_int_equal(failures[0].survived_count, 0);
    gos_episode_give_back(second);
    gos_episode_recovered();
    assert_int_equal(failures[1].freed_count, 1);
}

static void without_an_episode_nothing_is_kept(void **state)
{
    (void)state;
    assert_int_equal(gos_episode_keep(&failures[0]), 0);
    assert_int_equal(failures[0].freed_count, 1);
}

static void lent_ones_are_never_pushed_out(void **state)
{
    (void)state;
    uint64_t tickets[10];
    for (uint64_t i = 0; i < 10; i++)
        tickets[i] = fail_and_keep(&failures[i], 1000 * (i + 1), i + 1);
    for (uint64_t i = 0; i < 8; i++)
        assert_int_equal(failures[i].freed_count, 0);
    assert_int_equal(tickets[8], 0);
    assert_int_equal(failures[8].freed_count, 1);
    assert_int_equal(failures[9].freed_count, 1);
    for (uint64_t i = 0; i < 8; i++)
        gos_episode_give_back(tickets[i]);
    for (uint64_t i = 0; i < 7; i++)
        assert_int_equal(failures[i].freed_count, 1); /* their episodes were over */
}

static void *borrow_it(void *ticket)
{
    struct gos_failure *failure = gos_episode_borrow(*(uint64_t *)ticket);
    gos_episode_give_back(*(uint64_t *)ticket);
    return failure;
}

static void who_borrows_waits_for_who_has_it(void **state)
{
    (void)state;
    pthread_t thread;
    void *failure = NULL;
    uint64_t ticket = fail_and_keep(&failures[0], 1000, 1);
    assert_int_equal(pthread_create(&thread, NULL, borrow_it, &ticket), 0);
    usleep(20000);
    gos_episode_give_back(ticket);
    pthread_join(thread, &failure);
    assert_ptr_equal(failure, &failures[0]);
    gos_episode_recovered();
    assert_int_equal(failures[0].freed_count, 1);
}

static enum gos_episode_answer fail_for(enum gos_refusal refusal, uint64_t at_ns)
{
    struct gos_request request = {.api = "cuMemAlloc_v2",
                                  .kind = GOS_KIND_DEVICE,
                                  .bytes_known = true,
                                  .bytes = 1000,
                                  .requester_module = UINT32_MAX,
                                  .monotonic_ns = at_ns,
                                  .refusal = refusal};
    return gos_episode_failed(&request);
}

static void failure_that_was_made_up_does_not_hide_a_real_one(void **state)
{
    (void)state;
    assert_int_equal(fail_for(GOS_REFUSAL_INJECTED, 1), GOS_EPISODE_SURFACES);
    assert_int_equal(fail_for(GOS_REFUSAL_INJECTED, 2), GOS_EPISODE_AGAIN);
    assert_int_equal(fail_for(GOS_REFUSAL_NONE, 3), GOS_EPISODE_SURFACES);
    assert_int_equal(fail_for(GOS_REFUSAL_INJECTED, 4), GOS_EPISODE_AGAIN);
    assert_int_equal(fail_for(GOS_REFUSAL_NONE, 5), GOS_EPISODE_AGAIN);
}

#define TEST(name) cmocka_unit_test_setup(name, start)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_given_back_can_be_borrowed),
        TEST(pieces_that_nothing_maps_are_no_answer),
        TEST(other_memory_is_an_answer_to_a_piece_at_once),
        TEST(address_space_is_no_answer),
        TEST(story_ends_some_time_after_it_was_told_however_often_it_fails),
        TEST(story_ends_sooner_when_its_caller_goes_on),
        TEST(survival_while_it_is_lent_is_told_when_it_comes_back),
        TEST(another_story_while_it_is_lent_frees_it_when_it_comes_back),
        TEST(without_an_episode_nothing_is_kept),
        TEST(lent_ones_are_never_pushed_out),
        TEST(who_borrows_waits_for_who_has_it),
        TEST(failure_that_was_made_up_does_not_hide_a_real_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
