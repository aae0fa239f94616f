/* Resolving frames, with and without a cache; and Python's part where there is no Python. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../src/base/module.h"
#include "../../src/track/frame_cache.h"
#include "../../src/track/frame_table.h"
#include "../../src/track/python_frames.h"
#include "../../src/track/stack_cache.h"

static struct gos_frame_cache cache;

static struct gos_stack mixed_stack(void)
{
    return (struct gos_stack){
        .native_count = 4,
        .native = {(uintptr_t)&lfind + 1, (uintptr_t)&mixed_stack + 1, 0x1234, (uintptr_t)&lsearch},
    };
}

static const struct gos_native_frame *native_frame(const struct gos_frame_numbers *frames,
                                                   uint32_t i)
{
    return &gos_frame_table_get(frames->numbers[i])->native;
}

static void cached_frames_equal_resolved_ones(void **state)
{
    (void)state;
    struct gos_frame_numbers plain, first, again;
    struct gos_stack stack = mixed_stack();
    assert_true(gos_frames_resolve(NULL, &stack, &plain));
    assert_true(gos_frames_resolve(&cache, &stack, &first));
    assert_true(gos_frames_resolve(&cache, &stack, &again));
    assert_int_equal(plain.native_count, stack.native_count);
    assert_int_equal(plain.python_count, 0);
    assert_memory_equal(plain.numbers, first.numbers, sizeof plain.numbers[0] * plain.native_count);
    assert_memory_equal(plain.numbers, again.numbers, sizeof plain.numbers[0] * plain.native_count);
    assert_int_equal(native_frame(&plain, 2)->module, UINT32_MAX);
    assert_int_equal(native_frame(&plain, 2)->offset, 0x1234);
    assert_string_equal(gos_module_at(native_frame(&plain, 0)->module)->name, "libc.so.6");
    assert_int_not_equal(native_frame(&plain, 0)->module, native_frame(&plain, 1)->module);
}

static void frame_has_one_number_however_many_there_are(void **state)
{
    (void)state;
    static uint32_t numbers[3 * 4096];
    const size_t count = sizeof numbers / sizeof numbers[0];
    for (uint32_t round = 0; round < 2; round++) {
        for (size_t i = 0; i < count; i++) {
            union gos_frame frame = {.words = {UINT32_MAX, i, i}};
            uint32_t number = gos_frame_table_number(&frame);
            assert_int_not_equal(number, 0);
            assert_true(round == 0 || number == numbers[i]);
            assert_memory_equal(gos_frame_table_get(number), &frame, sizeof frame);
            numbers[i] = number;
        }
    }
}

/* A call may be the last instruction of its function, and of its library. */
static void return_address_belongs_to_the_call_before_it(void **state)
{
    (void)state;
    const struct gos_module *libc = gos_module_of((uintptr_t)&lfind);
    struct gos_stack stack = {.native_count = 1, .native = {libc->end}};
    struct gos_frame_numbers frames;
    assert_true(gos_frames_resolve(NULL, &stack, &frames));
    assert_int_equal(native_frame(&frames, 0)->module, libc->index);
    assert_int_equal(native_frame(&frames, 0)->offset, libc->end - libc->base);
}

static void load_and_unload(void)
{
    void *handle = dlopen("libthread_db.so.1", RTLD_LAZY); /* in libc's package, needed by nobody */
    assert_non_null(handle);
    dlclose(handle);
    gos_module_refresh();
}

/* Another object may lie at the same addresses next time. */
static void everything_is_forgotten_when_an_object_was_unloaded(void **state)
{
    (void)state;
    uintptr_t slot = 16;
    const struct gos_recall_key key = {.slot = (uintptr_t)&slot, .caller = slot, .depth = 1};
    struct gos_stack stack = {.native_count = 1, .native = {16}};
    struct gos_stack_cache *kept = gos_stack_cache_claim();
    gos_site_cache_put(&kept->sites, &stack, 5, 77);
    kept->frames.native[0][0].address = 16;
    assert_false(gos_recall_note(&kept->recall, &key, 5));
    assert_true(gos_recall_note(&kept->recall, &key, 5));
    assert_true(gos_recall_expect(&kept->recall.lesson, key.slot, slot, GOS_RECALL_FRAME));
    gos_recall_keep(&kept->recall);
    gos_stack_cache_release(kept);

    kept = gos_stack_cache_claim();
    assert_int_equal(gos_site_cache_find(&kept->sites, &stack, 5), 77);
    assert_non_null(gos_recall_find(&kept->recall, &key));
    gos_stack_cache_release(kept);

    load_and_unload();
    kept = gos_stack_cache_claim();
    assert_int_equal(gos_site_cache_find(&kept->sites, &stack, 5), 0);
    assert_int_equal(kept->frames.native[0][0].address, 0);
    assert_null(gos_recall_find(&kept->recall, &key));
    gos_stack_cache_release(kept);
}

static void native_stacks_with_the_same_python_frames_are_told_apart(void **state)
{
    (void)state;
    static struct gos_site_cache sites;
    struct gos_stack stack = {.native_count = 1, .python_count = 2, .python_hash = 7};
    for (uint32_t i = 0; i < 40; i++) {
        stack.native[0] = 16 + i / 2;
        stack.python[1].code = 32 + i % 2; /* one hash, two stacks: they take turns */
        gos_site_cache_put(&sites, &stack, 1000 + i, i + 1);
    }
    for (uint32_t i = 0; i < 40; i++) {
        stack.native[0] = 16 + i / 2;
        stack.python[1].code = 32 + i % 2;
        assert_int_equal(gos_site_cache_find(&sites, &stack, 1000 + i), i + 1);
        stack.python[1].code = 34;
        assert_int_equal(gos_site_cache_find(&sites, &stack, 1000 + i), 0);
    }
}

static void without_an_interpreter_there_are_no_python_frames(void **state)
{
    (void)state;
    struct gos_stack stack;
    memset(&stack, 0xff, sizeof stack);
    assert_false(gos_python_find());
    gos_python_capture(&stack, GOS_FRAME_MAX);
    assert_int_equal(stack.python_count, 0);
    assert_null(gos_python_version());
    assert_null(gos_python_unsupported());
}

static void without_an_interpreter_only_the_mark_is_decoded(void **state)
{
    (void)state;
    struct gos_stack stack = {.python_count = 3, .python = {{.code = 8}, {.code = 0}, {.code = 8}}};
    struct gos_frame_numbers frames;
    assert_true(gos_frames_resolve(&cache, &stack, &frames));
    assert_int_equal(frames.python_count, 1);
    assert_string_equal(gos_frame_table_get(frames.numbers[0])->python.file, GOS_PYTHON_CUT);
    assert_true(gos_frames_resolve(NULL, &stack, &frames));
    assert_int_equal(frames.python_count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cached_frames_equal_resolved_ones),
        cmocka_unit_test(frame_has_one_number_however_many_there_are),
        cmocka_unit_test(return_address_belongs_to_the_call_before_it),
        cmocka_unit_test(everything_is_forgotten_when_an_object_was_unloaded),
        cmocka_unit_test(native_stacks_with_the_same_python_frames_are_told_apart),
        cmocka_unit_test(without_an_interpreter_there_are_no_python_frames),
        cmocka_unit_test(without_an_interpreter_only_the_mark_is_decoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
