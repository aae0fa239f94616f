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
    return (struct gos_recall_key){(uintptr_t)slot, 1000, depth};
}

/* Three places: the first, fourth and tenth word. */
static const size_t places[] = {0, 3, 9};
#define PLACES (sizeof places / sizeof places[0])

static void lay_stack(uintptr_t *slot)
{
    for (size_t i = 0; i < PLACES; i++)
        slot[places[i]] = 1000 * (i + 1);
}

/* Learn what lies there now. */
static void learn(const struct gos_recall_key *key, uint64_t hash)
{
    gos_recall_note(&recall, key, hash);
    struct gos_recall_entry *entry = gos_recall_note(&recall, key, hash);
    assert_non_null(entry);
    entry->check_count = 0;
    for (size_t i = 0; i < PLACES; i++) {
        uintptr_t *place = (uintptr_t *)key->slot + places[i];
        assert_true(gos_recall_expect(entry, (uintptr_t)place, *place));
    }
    entry->is_learned = true;
}

static void stack_is_worth_learning_at_its_second_sighting(void **state)
{
    (void)state;
    struct gos_recall_key key = key_at(memory, 40);
    assert_null(gos_recall_note(&recall, &key, 7));
    assert_null(gos_recall_find(&recall, &key));
    assert_null(gos_recall_note(&recall, &key, 8));
    assert_non_null(gos_recall_note(&recall, &key, 7));
    assert_non_null(gos_recall_note(&recall, &key, 8));
}

static void learned_stack_is_recognised_while_it_lies_there(void **state)
{
    (void)state;
    struct gos_recall_key key = key_at(memory, 40);
    lay_stack(memory);
    learn(&key, 7);
    const struct gos_recall_entry *found = gos_recall_find(&recall, &key);
    assert_non_null(found);
    assert_int_equal(found->hash, 7);
}

static void any_changed_slot_makes_it_another_stack(void **state)
{
    (void)state;
    struct gos_recall_key key = key_at(memory, 40);
    lay_stack(memory);
    learn(&key, 7);
    for (size_t i = 0; i < PLACES; i++) {
        memory[places[i]]++;
        assert_null(gos_recall_find(&recall, &key));
        memory[places[i]]--;
    }
    assert_non_null(gos_recall_find(&recall, &key));
}

static void key_decides_too(void **state)
{
    (void)state;
    struct gos_recall_key key = key_at(memory, 40);
    lay_stack(memory);
    learn(&key, 7);
    struct gos_recall_key other_depth = key_at(memory, 20);
    struct gos_recall_key other_slot = key_at(memory + 1, 40);
    struct gos_recall_key other_caller = key;
    other_caller.caller = 1001;
    lay_stack(memory + 1);
    assert_null(gos_recall_find(&recall, &other_depth));
    assert_null(gos_recall_find(&recall, &other_slot));
    assert_null(gos_recall_find(&recall, &other_caller));
}

static void several_stacks_of_one_place_are_remembered(void **state)
{
    (void)state;
    struct gos_recall_key key = key_at(memory, 40);
    for (uintptr_t outer = 0; outer < GOS_RECALL_WAYS; outer++) {
        lay_stack(memory);
        memory[9] = 3000 + outer;
        learn(&key, 100 + outer);
    }
    for (uintptr_t outer = 0; outer < GOS_RECALL_WAYS; outer++) {
        memory[9] = 3000 + outer;
        const struct gos_recall_entry *found = gos_recall_find(&recall, &key);
        assert_non_null(found);
        assert_int_equal(found->hash, 100 + outer);
    }
}

static void replaced_entry_is_not_recognised_any_more(void **state)
{
    (void)state;
    struct gos_recall_key key = key_at(memory, 40);
    lay_stack(memory);
    learn(&key, 7);
    for (uint64_t other = 0; other < GOS_RECALL_WAYS; other++)
        gos_recall_note(&recall, &key, 100 + other);
    assert_null(gos_recall_find(&recall, &key));
}

static void more_than_fits_is_not_expected(void **state)
{
    (void)state;
    struct gos_recall_entry entry = {.key = key_at(memory, 40)};
    assert_false(gos_recall_expect(&entry, entry.key.slot + (UINT64_C(1) << 31), 1));
    assert_true(gos_recall_expect(&entry, entry.key.slot - 8, 1));
    for (uint32_t i = 1; i < GOS_RECALL_CHECKS; i++)
        assert_true(gos_recall_expect(&entry, entry.key.slot, 1));
    assert_false(gos_recall_expect(&entry, entry.key.slot, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(stack_is_worth_learning_at_its_second_sighting, forget),
        cmocka_unit_test_setup(learned_stack_is_recognised_while_it_lies_there, forget),
        cmocka_unit_test_setup(any_changed_slot_makes_it_another_stack, forget),
        cmocka_unit_test_setup(key_decides_too, forget),
        cmocka_unit_test_setup(several_stacks_of_one_place_are_remembered, forget),
        cmocka_unit_test_setup(replaced_entry_is_not_recognised_any_more, forget),
        cmocka_unit_test(more_than_fits_is_not_expected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
