/* Stories: which refusals belong together, what ends them, what is told of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../src/base/os.h"
#include "../../src/shim/kept.h"
#include "../../src/shim/origin.h"
#include "../../src/shim/story.h"
#include "../../src/shim/word.h"

#define SECOND UINT64_C(1000000000)
#define HERE 7u
#define THERE 9u

static uint64_t now_ns;
static bool word_comes;
static bool is_torch;
static bool is_same_library;  /* that asks, and that succeeds: no stack shows one here */
static uint64_t answers_from; /* the origin of what succeeds */
static int noted_count, survived_count, recovered_count, settled_count;
static uint64_t told_ns;

static uint64_t tell_time(void)
{
    return now_ns;
}

bool gos_word_can_come(void)
{
    return word_comes;
}

uint64_t gos_origin_of(const struct gos_request *request)
{
    (void)request;
    return answers_from;
}

bool gos_origin_is_torch_allocator(const struct gos_request *request)
{
    (void)request;
    return is_torch;
}

void gos_kept_note(uint64_t story, const struct gos_request *request)
{
    (void)story, (void)request;
    noted_count++;
}

void gos_kept_survived(uint64_t story)
{
    (void)story;
    survived_count++;
}

void gos_kept_recovered(uint64_t story)
{
    (void)story;
    recovered_count++;
}

void gos_kept_settle(uint64_t story)
{
    (void)story;
    settled_count++;
}

uint64_t gos_kept_told_ns(uint64_t story)
{
    (void)story;
    return told_ns;
}

void gos_kept_reset_after_fork(void)
{
}

static int start(void **state)
{
    (void)state;
    gos_os.monotonic_ns = tell_time;
    now_ns = 1;
    word_comes = is_torch = is_same_library = false;
    told_ns = 0;
    answers_from = HERE;
    noted_count = survived_count = recovered_count = settled_count = 0;
    gos_story_reset_after_fork();
    return 0;
}

static struct gos_request of(uint64_t origin, uint64_t bytes)
{
    return (struct gos_request){.api = "cuMemAlloc_v2",
                                .entry = "cuMemAlloc_v2",
                                .kind = GOS_KIND_DEVICE,
                                .bytes_known = true,
                                .bytes = bytes,
                                .result = 2,
                                .requester_module = is_same_library ? UINT32_MAX : (uint32_t)origin,
                                .origin = origin,
                                .monotonic_ns = now_ns};
}

static enum gos_story_answer refused(uint64_t origin, uint64_t bytes)
{
    struct gos_request request = of(origin, bytes);

    now_ns++;
    return gos_story_refused(&request);
}

static void succeeds(uint64_t bytes)
{
    gos_story_closed_by(bytes, GOS_KIND_DEVICE, "cuMemAlloc_v2");
}

static void another_line_is_another_story_whatever_the_size(void **state)
{
    (void)state;
    assert_int_equal(refused(HERE, 1000), GOS_STORY_SURFACES);
    assert_int_equal(refused(THERE, 10), GOS_STORY_SURFACES);
    assert_int_equal(settled_count, 1);
    assert_int_equal(refused(HERE, 1), GOS_STORY_SURFACES);
}

static void one_line_is_one_story_whatever_the_size(void **state)
{
    (void)state;
    struct gos_request request;

    assert_int_equal(refused(HERE, 1000), GOS_STORY_SURFACES);
    assert_int_equal(refused(HERE, 500), GOS_STORY_AGAIN);
    assert_int_equal(refused(HERE, 5000), GOS_STORY_AGAIN);
    assert_int_equal(noted_count, 2);
    request = of(HERE, 1);
    assert_int_equal(gos_story_refused(&request), GOS_STORY_AGAIN);
    assert_int_equal(request.trials, 3);
}

static void without_a_stack_asking_for_more_is_another_story(void **state)
{
    (void)state;
    assert_int_equal(refused(0, 1000), GOS_STORY_SURFACES);
    assert_int_equal(refused(0, 1000), GOS_STORY_AGAIN);
    assert_int_equal(refused(0, 2000), GOS_STORY_SURFACES);
}

static void half_of_it_at_the_same_place_is_an_answer_and_less_is_none(void **state)
{
    (void)state;
    refused(HERE, 1000);
    succeeds(499);
    assert_int_equal(survived_count, 0);
    succeeds(500);
    assert_int_equal(survived_count, 1);
    assert_int_equal(gos_story_open, 0);
}

static void memory_of_another_library_is_no_answer(void **state)
{
    (void)state;
    refused(HERE, 1000);
    answers_from = THERE;
    succeeds(1000);
    assert_int_equal(survived_count, 0);
    assert_int_equal(gos_story_open, 1);
}

static void all_of_it_from_another_line_is_an_answer_and_less_is_none(void **state)
{
    (void)state;
    is_same_library = true;
    refused(HERE, 1000);
    answers_from = THERE;
    succeeds(999);
    assert_int_equal(survived_count, 0);
    succeeds(1000);
    assert_int_equal(survived_count, 1);
}

static void place_that_another_thread_was_told_of_is_told_for_this_one(void **state)
{
    (void)state;
    now_ns = 10 * SECOND;
    told_ns = 9 * SECOND;
    assert_int_equal(refused(HERE, 1000), GOS_STORY_AGAIN);
    told_ns = 7 * SECOND;
    assert_int_equal(refused(THERE, 1000), GOS_STORY_SURFACES);
}

static void survived_place_is_helped_but_not_spoken_of(void **state)
{
    (void)state;
    assert_int_equal(refused(HERE, 1000), GOS_STORY_SURFACES);
    succeeds(1000);
    assert_int_equal(refused(HERE, 1000), GOS_STORY_QUIET);
    succeeds(1000);
    assert_int_equal(refused(HERE, 1000), GOS_STORY_QUIET);
    assert_int_equal(refused(THERE, 1000), GOS_STORY_SURFACES); /* so nothing answered it */
    assert_int_equal(refused(HERE, 1000), GOS_STORY_SURFACES);
}

static void story_ends_some_time_after_it_was_told_however_often_it_is_refused(void **state)
{
    (void)state;
    now_ns = 1 * SECOND;
    assert_int_equal(refused(HERE, 1000), GOS_STORY_SURFACES);
    now_ns = 3 * SECOND; /* recovery took so long */
    gos_story_told();
    for (uint64_t second = 4; second < 13; second++) {
        now_ns = second * SECOND;
        assert_int_equal(refused(HERE, 1000), GOS_STORY_AGAIN);
    }
    now_ns = 13 * SECOND;
    assert_int_equal(refused(HERE, 1000), GOS_STORY_SURFACES);
    now_ns = 14 * SECOND;
    assert_int_equal(refused(HERE, 1000), GOS_STORY_AGAIN);
}

static void story_ends_sooner_when_its_caller_goes_on(void **state)
{
    (void)state;
    now_ns = 1 * SECOND;
    assert_int_equal(refused(HERE, 1000), GOS_STORY_SURFACES);
    succeeds(1);
    now_ns = 2 * SECOND;
    assert_int_equal(refused(HERE, 1000), GOS_STORY_AGAIN);
    now_ns = 4 * SECOND;
    assert_int_equal(refused(HERE, 1000), GOS_STORY_AGAIN); /* it got nothing since */
    succeeds(1);
    now_ns = 5 * SECOND;
    assert_int_equal(refused(HERE, 1000), GOS_STORY_SURFACES);
}

static enum gos_story_answer piece_refused(void)
{
    struct gos_request request = of(HERE, 20);

    now_ns++;
    request.kind = GOS_KIND_PHYSICAL;
    return gos_story_refused(&request);
}

static void pieces_that_nothing_maps_are_no_answer(void **state)
{
    (void)state;
    assert_int_equal(piece_refused(), GOS_STORY_SURFACES);
    gos_story_closed_by(20, GOS_KIND_PHYSICAL, "cuMemCreate");
    assert_int_equal(piece_refused(), GOS_STORY_AGAIN);
    gos_story_mapped(); /* of before the second refusal: no piece was made since */
    assert_int_equal(survived_count, 0);
    gos_story_closed_by(20, GOS_KIND_PHYSICAL, "cuMemCreate");
    gos_story_mapped();
    assert_int_equal(survived_count, 1);
}

static void other_memory_is_an_answer_to_a_piece_at_once(void **state)
{
    (void)state;
    piece_refused();
    gos_story_closed_by(20, GOS_KIND_ADDRESS, "cuMemAddressReserve");
    assert_int_equal(survived_count, 0);
    succeeds(20);
    assert_int_equal(survived_count, 1);
}

static void refusal_that_was_made_up_does_not_hide_a_real_one(void **state)
{
    (void)state;
    struct gos_request request = of(HERE, 1000);

    request.refusal = GOS_REFUSAL_INJECTED;
    assert_int_equal(gos_story_refused(&request), GOS_STORY_SURFACES);
    assert_int_equal(gos_story_refused(&request), GOS_STORY_AGAIN);
    assert_int_equal(refused(HERE, 1000), GOS_STORY_SURFACES);
}

/* --- torch's word --------------------------------------------------------------------------- */

static struct gos_request word_for(uint64_t bytes)
{
    struct gos_request request = of(HERE, bytes);

    request.api = "torch";
    request.entry = NULL;
    request.result = 0;
    request.is_word = true;
    return request;
}

static void word_about_what_the_driver_refused_has_both_sizes(void **state)
{
    (void)state;
    struct gos_request word = word_for(2976);

    word_comes = is_torch = true;
    assert_int_equal(piece_refused(), GOS_STORY_AWAITS);
    assert_int_equal(gos_story_word(&word), GOS_STORY_SURFACES);
    assert_int_equal(word.driver_bytes, 20);
    assert_string_equal(word.entry, "cuMemAlloc_v2");
    assert_int_equal(word.result, 2);
    assert_int_equal(word.trials, 0);
}

static void word_without_a_call_has_none(void **state)
{
    (void)state;
    struct gos_request word = word_for(100);

    assert_int_equal(gos_story_word(&word), GOS_STORY_SURFACES);
    assert_null(word.entry);
    assert_int_equal(word.driver_bytes, 0);
}

static void word_does_not_take_up_a_call_of_before_the_last_one(void **state)
{
    (void)state;
    struct gos_request first = word_for(2976), second = word_for(100);

    word_comes = is_torch = true;
    piece_refused();
    gos_story_word(&first);
    told_ns = now_ns;
    assert_int_equal(gos_story_word(&second), GOS_STORY_AGAIN);
    assert_null(second.entry);
    assert_int_equal(second.trials, 1);
}

static void attempts_before_a_later_word_are_not_noted(void **state)
{
    (void)state;
    struct gos_request word = word_for(1000);

    word_comes = is_torch = true;
    refused(HERE, 1000);
    gos_story_word(&word);
    told_ns = now_ns;
    noted_count = 0;
    assert_int_equal(refused(HERE, 1000), GOS_STORY_AGAIN);
    assert_int_equal(noted_count, 0);
}

static void block_of_half_the_size_answers_a_word(void **state)
{
    (void)state;
    struct gos_request word = word_for(1000);

    word_comes = is_torch = true;
    gos_story_word(&word);
    gos_story_block(400);
    assert_int_equal(survived_count, 0);
    gos_story_block(500);
    assert_int_equal(survived_count, 1);
}

static void word_at_a_place_that_survived_is_quiet(void **state)
{
    (void)state;
    struct gos_request word = word_for(1000);

    word_comes = is_torch = true;
    refused(HERE, 1000);
    gos_story_word(&word);
    succeeds(1000);
    refused(HERE, 1000);
    word = word_for(1000);
    assert_int_equal(gos_story_word(&word), GOS_STORY_QUIET);
}

#define TEST(name) cmocka_unit_test_setup(name, start)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(another_line_is_another_story_whatever_the_size),
        TEST(one_line_is_one_story_whatever_the_size),
        TEST(without_a_stack_asking_for_more_is_another_story),
        TEST(half_of_it_at_the_same_place_is_an_answer_and_less_is_none),
        TEST(memory_of_another_library_is_no_answer),
        TEST(all_of_it_from_another_line_is_an_answer_and_less_is_none),
        TEST(place_that_another_thread_was_told_of_is_told_for_this_one),
        TEST(survived_place_is_helped_but_not_spoken_of),
        TEST(story_ends_some_time_after_it_was_told_however_often_it_is_refused),
        TEST(story_ends_sooner_when_its_caller_goes_on),
        TEST(pieces_that_nothing_maps_are_no_answer),
        TEST(other_memory_is_an_answer_to_a_piece_at_once),
        TEST(refusal_that_was_made_up_does_not_hide_a_real_one),
        TEST(word_about_what_the_driver_refused_has_both_sizes),
        TEST(word_without_a_call_has_none),
        TEST(word_does_not_take_up_a_call_of_before_the_last_one),
        TEST(attempts_before_a_later_word_are_not_noted),
        TEST(block_of_half_the_size_answers_a_word),
        TEST(word_at_a_place_that_survived_is_quiet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
