/* Interned stacks: one number for one stack, whatever cache or thread asks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../src/base/loss.h"
#include "../../src/base/memory.h"
#include "../../src/base/module.h"
#include "../../src/base/os.h"
#include "../../src/base/thread.h"
#include "../../src/track/number_table.h"
#include "../../src/track/site.h"
#include "../../src/track/stack_cache.h"

#define THREADS 8
#define STACKS 6000 /* more than a cache keeps */

/* Addresses of no module, so that a stack can be invented. */
#define NOWHERE UINT64_C(0x1000)

static int start_afresh(void **state)
{
    (void)state;
    gos_memory_reset_after_fork();
    gos_module_reset_after_fork();
    gos_site_reset_after_fork();
    return 0;
}

static struct gos_stack stack_of(uintptr_t first, uint32_t count)
{
    struct gos_stack stack = {.native_count = count};
    for (uint32_t i = 0; i < count; i++)
        stack.native[i] = NOWHERE + first + i;
    return stack;
}

static uint32_t intern(uintptr_t first, uint32_t count)
{
    struct gos_stack stack = stack_of(first, count);
    return gos_site_intern(&stack);
}

static void same_stack_has_one_number(void **state)
{
    (void)state;
    uint32_t one = intern(100, 20);
    assert_int_not_equal(one, 0);
    assert_int_equal(intern(100, 20), one);
    assert_int_equal(gos_site_count(), 1);
}

static void stacks_that_differ_in_any_frame_have_their_own(void **state)
{
    (void)state;
    uint32_t one = intern(100, 20);
    for (uint32_t i = 0; i < 20; i++) {
        struct gos_stack stack = stack_of(100, 20);
        stack.native[i] += 1000;
        assert_int_equal(gos_site_intern(&stack), one + i + 1);
    }
    assert_int_equal(intern(100, 19), one + 21);
}

static void empty_stack_has_no_number(void **state)
{
    (void)state;
    assert_int_equal(intern(0, 0), 0);
    assert_null(gos_site_get(0));
    assert_null(gos_site_get(1));
    assert_null(gos_site_get(UINT32_MAX));
}

static void site_gives_back_the_frames(void **state)
{
    (void)state;
    const struct gos_site *site = gos_site_get(intern(500, 64));
    assert_non_null(site);
    assert_int_equal(site->native_count, 64);
    assert_int_equal(site->python_count, 0);
    for (uint32_t i = 0; i < 64; i++) {
        assert_int_equal(site->native[i].address, NOWHERE + 500 + i);
        assert_int_equal(site->native[i].offset, NOWHERE + 500 + i);
        assert_int_equal(site->native[i].module, UINT32_MAX);
    }
}

static void frame_of_a_library_is_kept_as_module_and_offset(void **state)
{
    (void)state;
    struct gos_stack stack = {.native_count = 1, .native = {(uintptr_t)&lfind + 1}};
    const struct gos_site *site = gos_site_get(gos_site_intern(&stack));
    assert_non_null(site);
    const struct gos_module *module = gos_module_at(site->native[0].module);
    assert_non_null(module);
    assert_string_equal(module->name, "libc.so.6");
    assert_int_equal(module->base + site->native[0].offset, (uintptr_t)&lfind + 1);
}

static void numbers_stay_when_the_cache_overflows(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < STACKS; i++)
        assert_int_equal(intern(i * 100, 40), i + 1);
    for (uint32_t i = 0; i < STACKS; i++)
        assert_int_equal(intern(i * 100, 40), i + 1);
    assert_int_equal(gos_site_count(), STACKS);
    assert_int_equal(gos_site_get(STACKS)->native[0].address, NOWHERE + (STACKS - 1) * 100);
}

static void claimed_cache_is_done_without(void **state)
{
    (void)state;
    uint32_t one = intern(100, 20);
    struct gos_stack_cache *cache = gos_stack_cache_claim();
    assert_non_null(cache);
    assert_null(gos_stack_cache_claim());
    assert_int_equal(intern(100, 20), one);
    assert_int_equal(intern(200, 20), one + 1);
    gos_stack_cache_release(cache);
    assert_int_equal(intern(200, 20), one + 1);
}

static void *intern_all(void *ids)
{
    for (uint32_t i = 0; i < STACKS; i++)
        ((uint32_t *)ids)[i] = intern(i * 100, 24);
    return NULL;
}

static void threads_agree_on_numbers(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    static uint32_t ids[THREADS][STACKS];
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, intern_all, ids[i]), 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(gos_site_count(), STACKS);
    for (size_t i = 1; i < THREADS; i++)
        assert_memory_equal(ids[0], ids[i], sizeof ids[0]);
}

static void *show_all(void *frames)
{
    for (uint32_t id = 1; id <= STACKS; id++)
        ((const struct gos_native_frame **)frames)[id - 1] = gos_site_get(id)->native;
    return NULL;
}

static void threads_are_shown_the_same_frames(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    static const struct gos_native_frame *frames[THREADS][STACKS];
    for (uint32_t i = 0; i < STACKS; i++)
        assert_int_equal(intern(i * 100, 24), i + 1);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, show_all, frames[i]), 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (uint32_t i = 0; i < STACKS; i++)
        assert_int_equal(frames[0][i][23].address, NOWHERE + i * 100 + 23);
    for (size_t i = 1; i < THREADS; i++)
        assert_memory_equal(frames[0], frames[i], sizeof frames[0]);
}

static void *no_memory(size_t bytes)
{
    (void)bytes;
    return NULL;
}

static void want_of_memory_is_counted_and_gives_no_number(void **state)
{
    (void)state;
    void *(*map)(size_t) = gos_os.map;
    uint64_t lost = gos_loss_get(GOS_LOSS_MEMORY);
    gos_os.map = no_memory;
    assert_int_equal(intern(100, 20), 0);
    gos_os.map = map;
    assert_true(gos_loss_get(GOS_LOSS_MEMORY) > lost);
    assert_int_equal(intern(100, 20), 1);
}

static void showing_a_site_needs_no_memory(void **state)
{
    (void)state;
    void *(*map)(size_t) = gos_os.map;
    for (uint32_t i = 0; i < STACKS; i++)
        assert_int_equal(intern(i * 100, 24), i + 1);
    gos_os.map = no_memory;
    for (uint32_t i = 0; i < STACKS; i++)
        assert_int_equal(gos_site_get(i + 1)->native[23].address, NOWHERE + i * 100 + 23);
    gos_os.map = map;
}

static int maps_left;
static void *(*real_map)(size_t);

static void *map_some(size_t bytes)
{
    return maps_left-- > 0 ? real_map(bytes) : NULL;
}

/* Whichever mapping is the first that fails: never a wrong number, and well again afterwards. */
static void each_failing_mapping_is_survived(void **state)
{
    real_map = gos_os.map;
    for (int allowed = 0; allowed < 12; allowed++) {
        start_afresh(state);
        maps_left = allowed;
        gos_os.map = map_some;
        for (uint32_t i = 0; i < 2000; i++) {
            uint32_t id = intern(i * 100, 40);
            assert_true(id == 0 || gos_site_get(id)->native[0].address == NOWHERE + i * 100);
        }
        gos_os.map = real_map;
        for (uint32_t i = 0; i < 2000; i++)
            assert_int_equal(gos_site_get(intern(i * 100, 40))->native[0].address,
                             NOWHERE + i * 100);
    }
}

static void *map_small(size_t bytes)
{
    return bytes <= 100 << 10 ? real_map(bytes) : NULL;
}

/* Frames that are known, in ever new stacks. */
static uint32_t intern_pair(uint32_t number)
{
    struct gos_stack stack = {.native_count = 2,
                              .native = {NOWHERE + number / 100, NOWHERE + number % 100}};
    return gos_site_intern(&stack);
}

static void stacks_that_find_no_room_use_up_no_memory(void **state)
{
    (void)state;
    uint32_t kept = 0;
    real_map = gos_os.map;
    gos_os.map = map_small;
    while (intern_pair(kept))
        kept++;
    uint64_t mapped = gos_memory_mapped_bytes();
    for (uint32_t i = kept; i < 10000; i++)
        assert_int_equal(intern_pair(i), 0);
    assert_int_equal(gos_memory_mapped_bytes(), mapped);
    assert_int_equal(gos_site_get(intern_pair(kept - 1))->native[1].address,
                     NOWHERE + (kept - 1) % 100);
    gos_os.map = real_map;
    assert_int_not_equal(intern_pair(kept), 0);
}

static void table_that_cannot_grow_keeps_looks_short(void **state)
{
    (void)state;
    struct gos_number_table table = {0};
    uint32_t number = 0;
    real_map = gos_os.map;
    gos_os.map = map_small;
    for (; gos_number_table_has_room(&table); number++)
        gos_number_table_add(&table, number * 2654435761u, number + 1);
    gos_os.map = real_map;
    assert_in_range(number, 7000, 8000);
    for (uint32_t hash = 1; hash < 100; hash++) {
        uint32_t step = 0;
        while (gos_number_table_next(&table, hash, &step))
            ;
        assert_true(step < 1000);
    }
}

static void child_after_fork_starts_with_none(void **state)
{
    intern(100, 20);
    intern(200, 20);
    start_afresh(state);
    assert_int_equal(gos_site_count(), 0);
    assert_null(gos_site_get(1));
    assert_int_equal(intern(200, 20), 1);
}

static uint32_t requester_of(const uintptr_t *addresses, uint32_t count)
{
    struct gos_stack stack = {.native_count = count};
    memcpy(stack.native, addresses, count * sizeof addresses[0]);
    return gos_site_requester_module(gos_site_get(gos_site_intern(&stack)));
}

static void requester_is_neither_ours_nor_the_c_library(void **state)
{
    (void)state;
    uintptr_t own = (uintptr_t)&gos_site_intern + 1;
    uintptr_t libc = (uintptr_t)&lfind + 1;
    uintptr_t other = (uintptr_t)&cmocka_set_message_output + 1;
    assert_int_equal(requester_of((uintptr_t[]){own, libc}, 2), UINT32_MAX);
    uint32_t module = requester_of((uintptr_t[]){own, NOWHERE, libc, other, libc}, 5);
    assert_int_not_equal(module, UINT32_MAX);
    assert_non_null(strstr(gos_module_at(module)->name, "libcmocka"));
    assert_int_equal(gos_site_requester_module(NULL), UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(same_stack_has_one_number, start_afresh),
        cmocka_unit_test_setup(stacks_that_differ_in_any_frame_have_their_own, start_afresh),
        cmocka_unit_test_setup(empty_stack_has_no_number, start_afresh),
        cmocka_unit_test_setup(site_gives_back_the_frames, start_afresh),
        cmocka_unit_test_setup(frame_of_a_library_is_kept_as_module_and_offset, start_afresh),
        cmocka_unit_test_setup(numbers_stay_when_the_cache_overflows, start_afresh),
        cmocka_unit_test_setup(claimed_cache_is_done_without, start_afresh),
        cmocka_unit_test_setup(threads_agree_on_numbers, start_afresh),
        cmocka_unit_test_setup(threads_are_shown_the_same_frames, start_afresh),
        cmocka_unit_test_setup(want_of_memory_is_counted_and_gives_no_number, start_afresh),
        cmocka_unit_test_setup(showing_a_site_needs_no_memory, start_afresh),
        cmocka_unit_test_setup(each_failing_mapping_is_survived, start_afresh),
        cmocka_unit_test_setup(stacks_that_find_no_room_use_up_no_memory, start_afresh),
        cmocka_unit_test_setup(table_that_cannot_grow_keeps_looks_short, start_afresh),
        cmocka_unit_test_setup(child_after_fork_starts_with_none, start_afresh),
        cmocka_unit_test_setup(requester_is_neither_ours_nor_the_c_library, start_afresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
