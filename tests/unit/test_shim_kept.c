/* Kept failures: one for each story, lent to one thread, ended by another, never freed twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <unistd.h>

#include "../../src/base/options.h"
#include "../../src/base/os.h"
#include "../../src/shim/failure.h"
#include "../../src/shim/kept.h"
#include "../../src/shim/stack_room.h"

struct gos_failure {
    int noted_count;
    uint64_t noted_bytes;
    unsigned settled_at;
    int told_late_count;
    int told_as; /* of all that were told late, which */
    int updated_count;
    int survived_count;
    int answered_count;
    int freed_count;
};

static struct gos_failure failures[GOS_KEPT_MAX + 3];
static struct gos_failure *next_noted;
static int told_count;

static bool has_room;
static void (*while_told)(void);

bool gos_stack_has_room(void)
{
    return has_room;
}

struct gos_failure *gos_failure_note(struct gos_failure *failure, const struct gos_request *request)
{
    failure = failure ? failure : next_noted;
    if (failure) {
        failure->noted_count++;
        failure->noted_bytes = request->bytes;
    }
    return failure;
}

static unsigned settled_count;

void gos_failure_tell_late(struct gos_failure *failure)
{
    failure->settled_at = ++settled_count;
    failure->told_late_count++;
    failure->told_as = ++told_count;
    if (while_told)
        while_told();
}

void gos_failure_update(struct gos_failure *failure)
{
    failure->settled_at = ++settled_count;
    failure->updated_count++;
    if (while_told)
        while_told();
}

void gos_failure_survived(struct gos_failure *failure, bool was_told)
{
    (void)was_told;
    assert_int_equal(failure->freed_count, 0);
    failure->survived_count++;
}

void gos_failure_answered(struct gos_failure *failure)
{
    failure->answered_count++;
}

void gos_failure_free(struct gos_failure *failure)
{
    if (failure)
        failure->freed_count++;
}

static int start(void **state)
{
    (void)state;
    gos_kept_reset_after_fork();
    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++)
        failures[i] = (struct gos_failure){0};
    next_noted = &failures[0];
    has_room = true;
    while_told = NULL;
    told_count = 0;
    return 0;
}

static void note(uint64_t story)
{
    gos_kept_note(story, &(struct gos_request){.api = "cuMemAlloc_v2", .bytes = story});
}

static const struct gos_request request = {.api = "cuMemAlloc_v2"};

static uint64_t put(uint64_t story, struct gos_failure *failure, bool told)
{
    uint64_t ticket = gos_kept_put(story, failure, &request, told);

    if (ticket)
        gos_kept_give_back(ticket);
    return ticket;
}

static void what_was_put_off_and_answered_is_freed_without_a_report(void **state)
{
    (void)state;
    note(1);
    note(1);
    assert_int_equal(failures[0].noted_count, 2);
    gos_kept_survived(1);
    assert_int_equal(failures[0].survived_count, 1);
    assert_int_equal(failures[0].freed_count, 1);
    gos_kept_settle(0);
    assert_int_equal(failures[0].told_late_count, 0);
}

static void note_at(uint64_t story, struct gos_failure *failure, uint64_t ns)
{
    next_noted = failure;
    gos_kept_note(story, &(struct gos_request){.api = "cuMemAlloc_v2", .monotonic_ns = ns});
}

static void report_of_the_last_refusal_is_written_anew_after_an_earlier_one(void **state)
{
    (void)state;
    static const struct gos_request last = {.api = "cuLaunchKernel", .monotonic_ns = 200};
    note_at(1, &failures[1], 100);
    gos_kept_give_back(gos_kept_put(2, &failures[2], &last, true));
    gos_kept_settle(0);
    assert_int_equal(failures[1].told_late_count, 1);
    assert_int_equal(failures[2].updated_count, 1);
    assert_true(failures[1].settled_at < failures[2].settled_at);
}

static void what_nothing_answered_is_told_once(void **state)
{
    (void)state;
    note(1);
    gos_kept_settle(2);
    assert_int_equal(failures[0].told_late_count, 0);
    gos_kept_settle(1);
    gos_kept_settle(0);
    assert_int_equal(failures[0].told_late_count, 1);
    assert_int_equal(failures[0].updated_count, 0);
    assert_true(gos_kept_told_ns(1) != 0);
}

static void later_refusals_of_a_told_story_change_its_report_once(void **state)
{
    (void)state;
    put(1, &failures[1], true);
    gos_kept_settle(0);
    assert_int_equal(failures[1].updated_count, 0);
    note(1);
    note(1);
    gos_kept_settle(0);
    gos_kept_settle(0);
    assert_int_equal(failures[1].updated_count, 1);
    assert_int_equal(failures[1].told_late_count, 0);
}

static void survived_story_that_was_told_stays_for_the_next_of_its_origin(void **state)
{
    (void)state;
    put(1, &failures[1], true);
    gos_kept_survived(1);
    assert_int_equal(failures[1].survived_count, 1);
    assert_int_equal(failures[1].freed_count, 0);
    assert_int_equal(gos_kept_told_ns(1), 0);
    assert_ptr_equal(gos_kept_take(1), &failures[1]);
    assert_null(gos_kept_take(1));
}

static void place_of_one_that_is_taken_is_kept_until_its_end(void **state)
{
    (void)state;
    put(1, &failures[1], true);
    assert_ptr_equal(gos_kept_take(1), &failures[1]);
    note(1);
    assert_int_equal(failures[0].noted_count, 0);
    put(1, &failures[2], true);
    assert_ptr_equal(gos_kept_take(1), &failures[2]);
    gos_kept_recovered(1);
    note(1);
    assert_int_equal(failures[0].noted_count, 1);
}

static void *refuse_another(void *unused)
{
    (void)unused;
    gos_kept_note(1, &(struct gos_request){.api = "cuMemAlloc_v2", .bytes = 7168});
    return NULL;
}

static void answer_of_one_thread_is_not_that_of_another(void **state)
{
    (void)state;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, refuse_another, NULL), 0);
    pthread_join(thread, NULL);
    note(1);
    assert_int_equal(failures[0].noted_bytes, 1);
    gos_kept_survived(1);
    assert_int_equal(failures[0].survived_count, 0);
    assert_int_equal(failures[0].noted_bytes, 7168); /* the draft is of the one that waits */
    gos_kept_settle(0);
    assert_int_equal(failures[0].told_late_count, 1);
}

static void survival_while_it_is_lent_is_told_when_it_comes_back(void **state)
{
    (void)state;
    uint64_t ticket = put(1, &failures[1], true);
    assert_ptr_equal(gos_kept_borrow(ticket), &failures[1]);
    gos_kept_survived(1);
    assert_int_equal(failures[1].survived_count, 0);
    gos_kept_give_back(ticket);
    assert_int_equal(failures[1].survived_count, 1);
}

static void lent_one_is_not_noted_nor_taken_nor_settled(void **state)
{
    (void)state;
    note(1);
    put(2, &failures[1], true);
    uint64_t ticket = put(3, &failures[2], false);
    assert_ptr_equal(gos_kept_borrow(ticket), &failures[2]);
    note(3);
    assert_int_equal(failures[2].noted_count, 0);
    assert_null(gos_kept_take(3));
    gos_kept_settle(3);
    assert_int_equal(failures[2].told_late_count, 0);
    gos_kept_give_back(ticket);
    assert_int_equal(failures[2].noted_count, 1); /* by the one that had it */
    gos_kept_settle(3);
    assert_int_equal(failures[2].told_late_count, 1);
}

static void oldest_is_settled_before_it_makes_room(void **state)
{
    (void)state;
    for (uint64_t story = 1; story <= GOS_KEPT_MAX; story++) {
        next_noted = &failures[story];
        note(story);
    }
    next_noted = &failures[GOS_KEPT_MAX + 1];
    note(GOS_KEPT_MAX + 1);
    assert_int_equal(failures[1].told_late_count, 1);
    assert_int_equal(failures[1].freed_count, 1);
    for (int i = 2; i <= GOS_KEPT_MAX + 1; i++)
        assert_int_equal(failures[i].freed_count, 0);
}

static void lent_ones_are_never_pushed_out(void **state)
{
    (void)state;
    uint64_t tickets[GOS_KEPT_MAX + 2];
    for (uint64_t i = 0; i < GOS_KEPT_MAX + 2; i++)
        tickets[i] = gos_kept_put(i + 1, &failures[i], &request, true);
    for (int i = 0; i < GOS_KEPT_MAX; i++)
        assert_int_equal(failures[i].freed_count, 0);
    assert_int_equal(tickets[GOS_KEPT_MAX], 0);
    assert_int_equal(failures[GOS_KEPT_MAX].freed_count, 1);
    assert_int_equal(failures[GOS_KEPT_MAX + 1].freed_count, 1);
    for (int i = 0; i < GOS_KEPT_MAX; i++)
        gos_kept_give_back(tickets[i]);
}

static void without_memory_for_it_nothing_is_kept(void **state)
{
    (void)state;
    next_noted = NULL;
    note(1);
    gos_kept_settle(0);
    assert_null(gos_kept_take(1));
}

static void *borrow_it(void *ticket)
{
    struct gos_failure *failure = gos_kept_borrow(*(uint64_t *)ticket);
    gos_kept_give_back(*(uint64_t *)ticket);
    return failure;
}

static void borrower_waits_for_the_one_that_has_it(void **state)
{
    (void)state;
    pthread_t thread;
    void *failure = NULL;
    uint64_t ticket = gos_kept_put(1, &failures[1], &request, true);
    assert_int_equal(pthread_create(&thread, NULL, borrow_it, &ticket), 0);
    usleep(20000);
    gos_kept_give_back(ticket);
    pthread_join(thread, &failure);
    assert_ptr_equal(failure, &failures[1]);
}

static void sleep_not(uint64_t ns)
{
    (void)ns;
}

static void borrower_gives_up_on_one_that_never_comes_back(void **state)
{
    (void)state;
    uint64_t ticket = gos_kept_put(1, &failures[1], &request, true);
    struct gos_os real = gos_os;
    gos_os.sleep_ns = sleep_not;
    assert_null(gos_kept_borrow(ticket));
    gos_os = real;
    gos_kept_give_back(ticket);
}

static void all_that_is_survived_is_not_kept_where_it_is_to_be_read_of(void **state)
{
    (void)state;
    gos_options.report_on = GOS_REPORT_ON_ALL;
    put(1, &failures[1], true);
    gos_kept_survived(1);
    gos_options.report_on = GOS_REPORT_ON_FAILED;
    assert_int_equal(failures[1].freed_count, 1);
}

static void the_one_refused_last_is_told_last(void **state)
{
    (void)state;
    note_at(1, &failures[1], 10);
    note_at(2, &failures[2], 20);
    note_at(1, NULL, 30);
    gos_kept_settle(0);
    assert_int_equal(failures[2].told_as, 1);
    assert_int_equal(failures[1].told_as, 2);
}

static int refused_meanwhile;

static void refuse_the_other(void)
{
    if (++refused_meanwhile == 100)
        return;
    note_at(1, NULL, UINT64_MAX);
    note_at(2, NULL, UINT64_MAX);
}

static void what_is_refused_while_all_are_told_keeps_no_exit_waiting(void **state)
{
    (void)state;
    note_at(1, &failures[1], 10);
    note_at(2, &failures[2], 20);
    while_told = refuse_the_other;
    refused_meanwhile = 0;
    gos_kept_settle(0);
    assert_true(refused_meanwhile <= 2);
}

static void without_room_on_the_stack_reports_wait_for_the_end(void **state)
{
    (void)state;
    put(1, &failures[1], true);
    note_at(2, &failures[2], 20);
    has_room = false;
    gos_kept_survived(1);
    gos_kept_settle(0);
    assert_int_equal(failures[1].survived_count, 0);
    assert_int_equal(failures[2].told_late_count, 0);
    assert_int_equal(gos_kept_told_ns(1), 0);
    has_room = true;
    gos_kept_settle(0);
    assert_int_equal(failures[1].survived_count, 1);
    assert_int_equal(failures[1].updated_count + failures[1].told_late_count, 0);
    assert_int_equal(failures[2].told_late_count, 1);
}

static void refusal_after_an_answer_without_room_is_not_survived(void **state)
{
    (void)state;
    put(1, &failures[1], true);
    has_room = false;
    gos_kept_survived(1);
    has_room = true;
    note(1);
    assert_int_equal(failures[1].survived_count, 0);
    assert_ptr_equal(gos_kept_take(1), &failures[1]);
}

static void without_room_on_the_stack_nothing_is_pushed_out(void **state)
{
    (void)state;
    struct gos_failure *last = &failures[GOS_KEPT_MAX + 1];
    for (uint64_t story = 1; story <= GOS_KEPT_MAX; story++) {
        next_noted = &failures[story];
        note(story);
    }
    has_room = false;
    assert_int_equal(put(GOS_KEPT_MAX + 1, last, false), 0);
    assert_int_equal(failures[1].told_late_count, 0);
    assert_int_equal(failures[1].freed_count, 0);
    assert_int_equal(last->freed_count, 1);
}

static void *fail_there_too(void *unused)
{
    (void)unused;
    assert_null(gos_kept_take(1));
    return (void *)(uintptr_t)gos_kept_put(1, &failures[3], &request, true);
}

static void *survive_there(void *unused)
{
    gos_kept_survived(1);
    return unused;
}

static void on_another_thread(void *(*function)(void *), void **result)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, function, NULL), 0);
    pthread_join(thread, result);
}

static void place_of_one_that_is_taken_is_only_that_threads(void **state)
{
    (void)state;
    void *ticket = NULL;
    put(1, &failures[1], true);
    assert_ptr_equal(gos_kept_take(1), &failures[1]);
    on_another_thread(fail_there_too, &ticket);
    assert_null(ticket);
    assert_int_equal(failures[3].freed_count, 1);
    on_another_thread(survive_there, NULL);
    put(1, &failures[2], true);
    assert_int_equal(failures[2].freed_count, 0);
    assert_int_equal(failures[2].survived_count, 0);
    assert_ptr_equal(gos_kept_take(1), &failures[2]);
}

#define TEST(name) cmocka_unit_test_setup(name, start)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_put_off_and_answered_is_freed_without_a_report),
        TEST(report_of_the_last_refusal_is_written_anew_after_an_earlier_one),
        TEST(what_nothing_answered_is_told_once),
        TEST(later_refusals_of_a_told_story_change_its_report_once),
        TEST(survived_story_that_was_told_stays_for_the_next_of_its_origin),
        TEST(place_of_one_that_is_taken_is_kept_until_its_end),
        TEST(answer_of_one_thread_is_not_that_of_another),
        TEST(survival_while_it_is_lent_is_told_when_it_comes_back),
        TEST(lent_one_is_not_noted_nor_taken_nor_settled),
        TEST(oldest_is_settled_before_it_makes_room),
        TEST(lent_ones_are_never_pushed_out),
        TEST(without_memory_for_it_nothing_is_kept),
        TEST(borrower_waits_for_the_one_that_has_it),
        TEST(the_one_refused_last_is_told_last),
        TEST(what_is_refused_while_all_are_told_keeps_no_exit_waiting),
        TEST(without_room_on_the_stack_reports_wait_for_the_end),
        TEST(refusal_after_an_answer_without_room_is_not_survived),
        TEST(without_room_on_the_stack_nothing_is_pushed_out),
        TEST(place_of_one_that_is_taken_is_only_that_threads),
        TEST(borrower_gives_up_on_one_that_never_comes_back),
        TEST(all_that_is_survived_is_not_kept_where_it_is_to_be_read_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
