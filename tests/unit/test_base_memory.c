#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pthread.h>

#include <cmocka.h>

#include "../../src/base/memory.h"
#include "../../src/base/os.h"

static struct gos_os original;
static int maps_until_failure; /* 0: the next one fails; negative: none does */
static int maps, unmaps;

static void *map_counted(size_t bytes)
{
    if (maps_until_failure == 0)
        return NULL;
    maps_until_failure -= maps_until_failure > 0;
    maps++;
    return original.map(bytes);
}

static void unmap_counted(void *memory, size_t bytes)
{
    unmaps++;
    original.unmap(memory, bytes);
}

static int start(void **state)
{
    (void)state;
    original = gos_os;
    gos_os.map = map_counted;
    gos_os.unmap = unmap_counted;
    maps = unmaps = 0;
    maps_until_failure = -1;
    gos_memory_reset_after_fork();
    return 0;
}

static int finish(void **state)
{
    (void)state;
    gos_os = original;
    return 0;
}

static void slab_gives_back_what_was_given(void **state)
{
    struct gos_slab slab = {.object_bytes = 88};
    char *a = gos_slab_take(&slab), *b = gos_slab_take(&slab);

    (void)state;
    assert_non_null(a);
    assert_true(b >= a + 88 || a >= b + 88);
    gos_slab_give(&slab, a);
    gos_slab_give(&slab, b);
    assert_ptr_equal(gos_slab_take(&slab), b);
    assert_ptr_equal(gos_slab_take(&slab), a);
}

static void slab_objects_do_not_overlap(void **state)
{
    enum { COUNT = 5000 };
    static unsigned char *objects[COUNT];
    struct gos_slab slab = {.object_bytes = 24};

    (void)state;
    for (int i = 0; i < COUNT; i++) {
        objects[i] = gos_slab_take(&slab);
        assert_non_null(objects[i]);
        assert_int_equal((uintptr_t)objects[i] % 8, 0);
        memset(objects[i], i % 251, 24);
    }
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < 24; j++)
            assert_int_equal(objects[i][j], i % 251);
}

static void slab_serves_objects_larger_than_its_chunk(void **state)
{
    struct gos_slab slab = {.object_bytes = 3 << 20};
    unsigned char *object = gos_slab_take(&slab);

    (void)state;
    assert_non_null(object);
    memset(object, 1, 3 << 20);
}

static void slab_costs_little_beyond_its_objects(void **state)
{
    struct gos_slab slab = {.object_bytes = 88};
    uint64_t before = gos_memory_mapped_bytes();

    (void)state;
    for (int i = 0; i < 100000; i++)
        assert_non_null(gos_slab_take(&slab));
    assert_true(gos_memory_mapped_bytes() - before <= 100000 * 90 + (1 << 20));
}

static void slab_recovers_after_a_failed_mapping(void **state)
{
    struct gos_slab slab = {.object_bytes = 88};

    (void)state;
    maps_until_failure = 0;
    assert_null(gos_slab_take(&slab));
    maps_until_failure = -1;
    assert_non_null(gos_slab_take(&slab));
}

static void arena_memory_is_zero_and_aligned(void **state)
{
    (void)state;
    for (size_t bytes = 1; bytes < 100000; bytes = bytes * 3 + 1) {
        unsigned char *memory = gos_arena_alloc(bytes);

        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % 8, 0);
        for (size_t i = 0; i < bytes; i++)
            assert_int_equal(memory[i], 0);
        memset(memory, 0xff, bytes);
    }
    assert_null(gos_arena_alloc(SIZE_MAX));
    assert_null(gos_arena_alloc(SIZE_MAX - 8192));
}

/* Only large mappings fail, as they do shortly below a limit on address space. */
static void *map_small_only(size_t bytes)
{
    return bytes > 64 << 10 ? NULL : original.map(bytes);
}

static void unmap_that_makes_room(void *memory, size_t bytes)
{
    gos_os.map = map_counted;
    unmap_counted(memory, bytes);
}

static void small_mappings_are_tried_when_large_ones_fail(void **state)
{
    struct gos_scratch scratch = {0};

    (void)state;
    gos_os.map = map_small_only;
    assert_non_null(gos_arena_alloc(1000));
    assert_non_null(gos_scratch_alloc(&scratch, 1000));
    assert_null(gos_scratch_alloc(&scratch, 1 << 20));
    gos_scratch_release(&scratch);
}

static void equal_texts_are_interned_once(void **state)
{
    static const char *kept[3000];
    char text[32];

    (void)state;
    for (int i = 0; i < 3000; i++) {
        int length = snprintf(text, sizeof(text), "word %d", i);

        kept[i] = gos_arena_intern(text, (size_t)length);
        assert_string_equal(kept[i], text);
    }
    for (int i = 0; i < 3000; i++) {
        int length = snprintf(text, sizeof(text), "word %d", i);

        assert_ptr_equal(gos_arena_intern(text, (size_t)length), kept[i]);
    }
}

static void interned_texts_differ_by_length_and_may_be_empty(void **state)
{
    const char *one = gos_arena_intern("libcuda.so", 7),
               *other = gos_arena_intern("libcuda.so", 10);

    (void)state;
    assert_string_equal(one, "libcuda");
    assert_string_equal(other, "libcuda.so");
    assert_string_equal(gos_arena_intern("x", 0), "");
}

/* The n-th mapping fails, for n from 1 until all are made. */
static void interning_survives_every_failure_of_memory(void **state)
{
    bool is_complete = false;

    (void)state;
    for (int n = 0; !is_complete; n++) {
        gos_memory_reset_after_fork();
        maps_until_failure = n;
        is_complete = true;
        for (int i = 0; i < 20000; i++) {
            char text[32];
            int length = snprintf(text, sizeof(text), "%d", i);
            const char *kept = gos_arena_intern(text, (size_t)length);

            is_complete &= kept != NULL;
            if (kept)
                assert_string_equal(kept, text);
        }
        assert_true(n < 50);
    }
    maps_until_failure = -1;
}

static void tables_are_zero_when_reused(void **state)
{
    unsigned char *first = gos_memory_alloc(1000), *second;

    (void)state;
    memset(first, 0xff, 1000);
    gos_memory_free(first, 1000);
    second = gos_memory_alloc(900);
    assert_ptr_equal(first, second);
    for (int i = 0; i < 900; i++)
        assert_int_equal(second[i], 0);
}

static void large_tables_are_unmapped(void **state)
{
    uint64_t before = gos_memory_mapped_bytes();
    void *table = gos_memory_alloc(10 << 20);

    (void)state;
    assert_non_null(table);
    assert_true(gos_memory_mapped_bytes() >= before + (10 << 20));
    gos_memory_free(table, 10 << 20);
    assert_int_equal(gos_memory_mapped_bytes(), before);
    assert_int_equal(unmaps, 1);
    gos_memory_free(NULL, 12);
    assert_null(gos_memory_alloc(SIZE_MAX));
}

static void tables_of_every_size_hold_their_bytes(void **state)
{
    (void)state;
    for (size_t bytes = 1; bytes < 1 << 20; bytes = bytes * 2 + 1) {
        unsigned char *a = gos_memory_alloc(bytes), *b = gos_memory_alloc(bytes);

        memset(a, 1, bytes);
        memset(b, 2, bytes);
        assert_int_equal(a[0] + a[bytes - 1], 2);
        assert_int_equal(b[0] + b[bytes - 1], 4);
        gos_memory_free(a, bytes);
        gos_memory_free(b, bytes);
    }
}

static void scratch_is_released_as_a_whole(void **state)
{
    struct gos_scratch scratch = {0};
    uint64_t before = gos_memory_mapped_bytes();

    (void)state;
    for (size_t bytes = 1; bytes < 2 << 20; bytes = bytes * 2 + 3) {
        unsigned char *memory = gos_scratch_alloc(&scratch, bytes);

        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % 16, 0);
        for (size_t i = 0; i < bytes; i++)
            assert_int_equal(memory[i], 0);
        memset(memory, 0xff, bytes);
    }
    assert_true(gos_memory_mapped_bytes() > before);
    gos_scratch_release(&scratch);
    assert_int_equal(gos_memory_mapped_bytes(), before);
    assert_int_equal(maps, unmaps);
    assert_null(scratch.chunk);
}

static void scratch_has_the_ballast_when_nothing_else_can_be_had(void **state)
{
    struct gos_scratch scratch = {0};

    (void)state;
    assert_true(gos_memory_keep_ballast());
    gos_os.map = map_small_only;
    gos_os.unmap = unmap_that_makes_room;
    assert_non_null(gos_scratch_alloc(&scratch, 1 << 20));
    assert_false(gos_memory_drop_ballast());
    gos_scratch_release(&scratch);
}

static void ballast_is_had_again_once_there_is_room(void **state)
{
    (void)state;
    assert_true(gos_memory_keep_ballast());
    assert_true(gos_memory_keep_ballast());
    assert_int_equal(maps, 1);
    assert_true(gos_memory_drop_ballast());
    maps_until_failure = 0;
    assert_false(gos_memory_keep_ballast());
    maps_until_failure = -1;
    assert_true(gos_memory_keep_ballast());
    assert_true(gos_memory_drop_ballast());
    assert_int_equal(unmaps, 2);
}

static void scratch_copies_and_terminates(void **state)
{
    struct gos_scratch scratch = {0};
    char *copy = gos_scratch_copy(&scratch, "abcdef", 3);

    (void)state;
    assert_string_equal(copy, "abc");
    assert_null(gos_scratch_alloc(&scratch, SIZE_MAX));
    assert_null(gos_scratch_copy(&scratch, "", SIZE_MAX - 1));
    gos_scratch_release(&scratch);
}

static void *hammer(void *arg)
{
    for (size_t i = 1; i < 2000; i++) {
        size_t bytes = i % 500 + 1;
        unsigned char *memory = gos_memory_alloc(bytes);
        char text[16];

        memset(memory, (int)(intptr_t)arg, bytes);
        snprintf(text, sizeof(text), "%zu", i % 100);
        if (strcmp(gos_arena_intern(text, strlen(text)), text) != 0)
            return "a wrong text";
        for (size_t j = 0; j < bytes; j++)
            if (memory[j] != (unsigned char)(intptr_t)arg)
                return "a block of two owners";
        gos_memory_free(memory, bytes);
    }
    return NULL;
}

static void threads_do_not_get_the_same_memory(void **state)
{
    pthread_t threads[4];

    (void)state;
    for (intptr_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hammer, (void *)(i + 1)), 0);
    for (int i = 0; i < 4; i++) {
        void *complaint;

        pthread_join(threads[i], &complaint);
        assert_null(complaint);
    }
}

static int child_checks(const char *word)
{
    gos_memory_reset_after_fork();
    if (strcmp(word, "before fork") != 0)
        return 1;
    if (strcmp(gos_arena_intern("before fork", 11), "before fork") != 0)
        return 2;
    return gos_memory_alloc(100) ? 0 : 3;
}

static void a_forked_child_starts_afresh_and_keeps_old_texts(void **state)
{
    const char *word = gos_arena_intern("before fork", 11);
    int status = -1;
    pid_t child = fork();

    (void)state;
    if (child == 0)
        _exit(child_checks(word));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(slab_gives_back_what_was_given),
        TEST(slab_objects_do_not_overlap),
        TEST(slab_serves_objects_larger_than_its_chunk),
        TEST(slab_costs_little_beyond_its_objects),
        TEST(slab_recovers_after_a_failed_mapping),
        TEST(arena_memory_is_zero_and_aligned),
        TEST(small_mappings_are_tried_when_large_ones_fail),
        TEST(equal_texts_are_interned_once),
        TEST(interned_texts_differ_by_length_and_may_be_empty),
        TEST(interning_survives_every_failure_of_memory),
        TEST(tables_are_zero_when_reused),
        TEST(large_tables_are_unmapped),
        TEST(tables_of_every_size_hold_their_bytes),
        TEST(scratch_is_released_as_a_whole),
        TEST(scratch_has_the_ballast_when_nothing_else_can_be_had),
        TEST(ballast_is_had_again_once_there_is_room),
        TEST(scratch_copies_and_terminates),
        TEST(threads_do_not_get_the_same_memory),
        TEST(a_forked_child_starts_afresh_and_keeps_old_texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
