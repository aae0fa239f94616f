/* Recognising a stack by what lies in its slots; the stack here is an array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../src/track/recall.h"

static struct gos_recall recall;
static uintptr_t memory[64];

static int forget(void **state)
{
    (void)state;
    memset(&recall, 0, sizeof recall);
    memset(memory, 0, sizeof memory);
    return 0;
}

static struct gos_recall_key key_at(uintptr_t *slot, uint32_t depth)
{
    return (struct gos_recall_key){(uintptr_t)slot, 1000000, depth};
}

/* Three places: the first, fourth and tenth word. */
static const size_t places[] = {0, 3, 9};
#define PLACES (sizeof places / sizeof places[0])

static void lay_stack(uintptr_t *slot)
{
    for (size_t i = 0; i < PLACES; i++)
        slot[places[i]] = 1000000 * (i + 1);
}

static void expect_places(const struct gos_recall_key *key)
{
    for (size_t i = 0; i < PLACES; i++) {
        uintptr_t *place = (uintptr_t *)key->slot + places[i];
        assert_true(gos_recall_expect(&recall.lesson, (uintptr_t)place, *place,
                                      i ? GOS_RECALL_FRAME : GOS_RECALL_PLACE));
    }
}

static void begin_lesson(const struct gos_recall_key *key, uint64_t hash)
{
    gos_recall_note(&recall, key, hash);
    assert_true(gos_recall_note(&recall, key, hash));
}

/* Learn what lies there now. */
static void learn(const struct gos_recall_key *key, uint64_t hash)
{
    begin_lesson(key, hash);
    expect_places(key);
    gos_recall_keep(&recall);
}

/* 0: nothing. */
static uint64_t recognised(const struct gos_recall_key *key)
{
    const struct gos_recall_stack *found = gos_recall_find(&recall, key);
    return found ? found->hash : 0;
}

static void stack_is_worth_learning_at_its_second_sighting(void **state)
{
    (void)state;
    struct gos_recall_key key = key_at(memory, 40);
    assert_false(gos_recall_note(&recall, &key, 7));
    assert_int_equal(recognised(&key), 0);
    assert_false(gos_recall_note(&recall, &key, 8));
    assert_true(gos_recall_note(&recall, &key, 7));
    assert_true(gos_recall_note(&recall, &key, 8));
}

static void learned_stack_is_recognised_while_it_lies_there(void **state)
{
    (void)state;
    struct gos_recall_key key = key_at(memory, 40);
    uintptr_t frames[40];
    lay_stack(memory);
    learn(&key, 7);
    assert_int_equal(recognised(&key), 7);
    assert_int_equal(gos_recall_frames(&recall, &key, frames), 2);
    assert_int_equal(frames[0], 2000000);
    assert_int_equal(frames[1], 3000000);
}

static void any_changed_slot_makes_it_another_stack(void **state)
{
    (void)state;
    struct gos_recall_key key = key_at(memory, 40);
    lay_stack(memory);
    learn(&key, 7);
    for (size_t i = 0; i < PLACES; i++) {
        memory[places[i]]++;
        assert_int_equal(recognised(&key), 0);
        memory[places[i]]--;
    }
    assert_int_equal(recognised(&key), 7);
}

static void key_decides_too(void **state)
{
    (void)state;
    struct gos_recall_key key = key_at(memory, 40);
    lay_stack(memory);
    learn(&key, 7);
    struct gos_recall_key other_depth = key_at(memory, 20);
    struct gos_recall_key other_slot = key_at(memory + 1, 40);
    lay_stack(memory + 1);
    assert_int_equal(recognised(&other_depth), 0);
    assert_int_equal(recognised(&other_slot), 0);
}

/* Stacks that part at each of their places, at some of them many ways. */
static void lay_number(uintptr_t number)
{
    lay_stack(memory);
    memory[places[0]] += number % 2;
    memory[places[1]] += number / 2 % 3;
    memory[places[2]] += number / 6;
}

static void many_stacks_of_one_place_are_remembered(void **state)
{
    (void)state;
    struct gos_recall_key key = key_at(memory, 40);
    for (uintptr_t number = 0; number < 600; number++) {
        lay_number(number);
        learn(&key, 100 + number);
    }
    for (uintptr_t number = 0; number < 600; number++) {
        lay_number(number);
        assert_int_equal(recognised(&key), 100 + number);
    }
    lay_number(600);
    assert_int_equal(recognised(&key), 0);
}

static void stack_that_is_learned_twice_is_there_once(void **state)
{
    (void)state;
    struct gos_recall_key key = key_at(memory, 40);
    lay_stack(memory);
    learn(&key, 7);
    uint32_t nodes = recall.node_count, stacks = recall.stack_count;
    learn(&key, 7);
    assert_int_equal(recall.node_count, nodes);
    assert_int_equal(recall.stack_count, stacks);
}

/* In one of them a register happened to point into a frame, so its place was noted, too. */
static void stacks_with_other_places_noted_stand_side_by_side(void **state)
{
    (void)state;
    struct gos_recall_key key = key_at(memory, 40);
    lay_stack(memory);
    memory[5] = (uintptr_t)&memory[20];
    begin_lesson(&key, 7);
    assert_true(gos_recall_expect(&recall.lesson, key.slot, memory[0], GOS_RECALL_FRAME));
    assert_true(
        gos_recall_expect(&recall.lesson, (uintptr_t)&memory[5], memory[5], GOS_RECALL_PLACE));
    assert_true(
        gos_recall_expect(&recall.lesson, (uintptr_t)&memory[9], memory[9], GOS_RECALL_FRAME));
    gos_recall_keep(&recall);
    assert_int_equal(recognised(&key), 7);
    memory[5] = 12;
    assert_int_equal(recognised(&key), 0);
    learn(&key, 8);
    assert_int_equal(recognised(&key), 8);
    memory[5] = (uintptr_t)&memory[20];
    assert_int_equal(recognised(&key), 7);
    memory[9]++;
    assert_int_equal(recognised(&key), 0);
}

/* More than fits: what is forgotten is learned again, and nothing is taken for something else. */
static void full_memory_begins_anew(void **state)
{
    (void)state;
    for (uintptr_t number = 0; number < 3 * GOS_RECALL_STACKS; number++) {
        struct gos_recall_key key = key_at(memory + number % 7, 40);
        lay_stack((uintptr_t *)key.slot);
        memory[number % 7 + 9] += number;
        learn(&key, 100 + number);
        assert_int_equal(recognised(&key), 100 + number);
        assert_in_range(recall.stack_count, 1, GOS_RECALL_STACKS);
        assert_in_range(recall.node_count, 1, GOS_RECALL_NODES);
    }
}

static void nothing_is_recognised_once_all_is_forgotten(void **state)
{
    (void)state;
    struct gos_recall_key key = key_at(memory, 40);
    lay_stack(memory);
    learn(&key, 7);
    gos_recall_forget(&recall);
    assert_int_equal(recognised(&key), 0);
    learn(&key, 8);
    assert_int_equal(recognised(&key), 8);
}

static void more_than_fits_is_not_expected(void **state)
{
    (void)state;
    struct gos_recall_key key = key_at(memory, 40);
    begin_lesson(&key, 7);
    struct gos_recall_lesson *lesson = &recall.lesson;
    assert_false(gos_recall_expect(lesson, key.slot + (UINT64_C(1) << 31), 1, GOS_RECALL_PLACE));
    assert_true(gos_recall_expect(lesson, key.slot - 8, 1, GOS_RECALL_PLACE));
    for (uint32_t i = 1; i < GOS_RECALL_CHECKS; i++)
        assert_true(gos_recall_expect(lesson, key.slot, 1, GOS_RECALL_PLACE));
    assert_false(gos_recall_expect(lesson, key.slot, 1, GOS_RECALL_PLACE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(stack_is_worth_learning_at_its_second_sighting, forget),
        cmocka_unit_test_setup(learned_stack_is_recognised_while_it_lies_there, forget),
        cmocka_unit_test_setup(any_changed_slot_makes_it_another_stack, forget),
        cmocka_unit_test_setup(key_decides_too, forget),
        cmocka_unit_test_setup(many_stacks_of_one_place_are_remembered, forget),
        cmocka_unit_test_setup(stack_that_is_learned_twice_is_there_once, forget),
        cmocka_unit_test_setup(stacks_with_other_places_noted_stand_side_by_side, forget),
        cmocka_unit_test_setup(full_memory_begins_anew, forget),
        cmocka_unit_test_setup(nothing_is_recognised_once_all_is_forgotten, forget),
        cmocka_unit_test_setup(more_than_fits_is_not_expected, forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
