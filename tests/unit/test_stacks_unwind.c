/*
 * Native stacks of this very program.  Its own object is "ours" here, and
 * frames of ours at the top are dropped; so captures are made below lfind,
 * whose frames keep the ones outside it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <search.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../src/base/loss.h"
#include "../../src/base/module.h"
#include "../../src/base/options.h"
#include "../../src/cuda/loader.h"
#include "../../src/track/stack_cache.h"
#include "../../src/track/unwind.h"
#include "../../src/track/unwinder.h"

static struct gos_stack captured;
static uint32_t depth_wanted = GOS_FRAME_MAX;

/* The last capture beside what a plain unwinding says of the same moment. */
static uintptr_t walked[GOS_UNWINDER_MAX];
static size_t walked_count;

static int open_unwinder(void **state)
{
    (void)state;
    gos_options.stack = GOS_STACK_NATIVE;
    gos_options.stack_depth = GOS_FRAME_MAX;
    gos_unwind_open();
    return gos_unwinder_which() != GOS_UNWINDER_LIBUNWIND;
}

static int capture_as_comparison(const void *a, const void *b)
{
    (void)a;
    (void)b;
    gos_unwind_capture(&captured, depth_wanted);
    walked_count = gos_unwinder_walk(walked, GOS_UNWINDER_MAX);
    return 0;
}

static void capture_below_lfind(void)
{
    int one = 1;
    size_t count = 1;
    lfind(&one, &one, &count, sizeof one, capture_as_comparison);
}

static bool is_in(uintptr_t address, const char *module_name)
{
    const struct gos_module *module = gos_module_of(address - 1);
    return module && strcmp(module->name, module_name) == 0;
}

/* The capture is the walk without its first frames, those of ours. */
static void assert_captured_is_walked(void)
{
    size_t own = 0;
    while (own < walked_count && !is_in(walked[own], "libc.so.6"))
        own++;
    size_t left = walked_count - own;
    assert_int_equal(captured.native_count, left < depth_wanted ? left : depth_wanted);
    assert_memory_equal(captured.native, walked + own, captured.native_count * sizeof walked[0]);
}

static void stack_starts_outside_our_own_object(void **state)
{
    (void)state;
    capture_below_lfind();
    assert_true(captured.native_count > 4);
    assert_true(is_in(captured.native[0], "libc.so.6"));
    assert_captured_is_walked();
}

static void depth_bounds_the_frames_that_are_kept(void **state)
{
    (void)state;
    for (depth_wanted = 0; depth_wanted < 5; depth_wanted++) {
        capture_below_lfind();
        assert_int_equal(captured.native_count, depth_wanted);
    }
    depth_wanted = GOS_FRAME_MAX;
}

static void setting_decides_what_is_captured(void **state)
{
    (void)state;
    gos_options.stack = GOS_STACK_OFF;
    capture_below_lfind();
    assert_int_equal(captured.native_count + captured.python_count, 0);
    gos_options.stack = GOS_STACK_PYTHON;
    capture_below_lfind();
    assert_int_equal(captured.native_count, 0);
    gos_options.stack = GOS_STACK_NATIVE;
}

/* --- recognised stacks -------------------------------------------------------------------------
 */

static uint32_t random_state = 1;

static uint32_t random_below(uint32_t limit)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % limit;
}

static void wander(uint32_t left);

/* Frames of several fixed sizes and of variable size, in changing order. */
__attribute__((noinline)) static void wander_small(uint32_t left)
{
    volatile char filler[16] = {0};
    wander(left);
    (void)filler[0];
}

__attribute__((noinline)) static void wander_large(uint32_t left)
{
    volatile char filler[80] = {0};
    wander(left);
    (void)filler[0];
}

__attribute__((noinline)) static void wander_variable(uint32_t left)
{
    volatile char *filler = __builtin_alloca(16 * (1 + random_below(8)));
    filler[0] = 0;
    wander(left);
    (void)filler[0];
}

/* Its end is found through a note in the frame itself. */
__attribute__((noinline)) static void wander_realigned(uint32_t left)
{
    volatile _Alignas(64) char filler[64] = {0};
    volatile char *more = __builtin_alloca(16 * (1 + random_below(8)));
    more[0] = filler[0];
    wander(left);
    (void)more[0];
}

static void wander(uint32_t left)
{
    static void (*const ways[])(uint32_t) = {wander_small, wander_large, wander_variable,
                                             wander_realigned};
    if (left)
        ways[random_below(4)](left - 1);
    else
        capture_below_lfind();
}

static uint32_t recognised_count(void)
{
    struct gos_stack_cache *cache = gos_stack_cache_claim();
    uint32_t count = cache->recall.recognised_count;
    gos_stack_cache_release(cache);
    return count;
}

/* Here it is wanted even where it does not pay. */
static void keep_learning(void)
{
    struct gos_stack_cache *cache = gos_stack_cache_claim();
    cache->recall.learned_count = 0;
    gos_stack_cache_release(cache);
}

/* Frames of other machines are always unwound; there is less to compare then. */
#if defined(__x86_64__)
enum { recognises = 1 };
#else
enum { recognises = 0 };
#endif

static void assert_wandering_is_recognised(uint32_t rounds_when_recognised)
{
    uint32_t rounds = recognises ? rounds_when_recognised : 2000;
    uint32_t before = recognised_count();
    for (uint32_t round = 0; round < rounds; round++) {
        wander(random_below(5));
        assert_captured_is_walked();
        keep_learning();
    }
    assert_int_equal(gos_loss_get(GOS_LOSS_STACK), 0);
    if (recognises)
        assert_true(recognised_count() - before > rounds / 20);
    else
        assert_int_equal(recognised_count(), before);
}

static void recognised_stacks_are_those_that_unwinding_finds(void **state)
{
    (void)state;
    assert_wandering_is_recognised(300000);
}

/* More stacks than are remembered, each met only after all others: learning them is in vain. */
static void learning_ends_where_nothing_is_recognised(void **state)
{
    (void)state;
    struct gos_stack_cache *cache = gos_stack_cache_claim();
    gos_stack_cache_release(cache);
    keep_learning();
    for (uint32_t round = 0; round < 100000; round++)
        wander(random_below(9));
    if (recognises)
        assert_in_range(cache->recall.learned_count, 1000, 10000);
    keep_learning();
}

static void site_of_one_place_has_one_number(void **state)
{
    (void)state;
    uint32_t ids[8];
    for (uint32_t i = 0; i < 8; i++)
        ids[i] = gos_unwind_site();
    for (uint32_t i = 1; i < 8; i++)
        assert_int_equal(ids[i], ids[0]);
    assert_int_not_equal(gos_unwind_site(), 0);
}

/* --- awkward stacks ----------------------------------------------------------------------------
 */

static void on_signal(int number)
{
    (void)number;
    capture_below_lfind();
}

static void capture_goes_through_a_signal_frame(void **state)
{
    (void)state;
    signal(SIGUSR1, on_signal);
    for (int i = 0; i < 4; i++) {
        captured.native_count = 0;
        raise(SIGUSR1);
        assert_captured_is_walked();
        assert_true(captured.native_count > 6);
    }
    signal(SIGUSR1, SIG_DFL);
}

/* push rbp; mov rbp,rsp; call rdi; pop rbp; ret: nothing tells an unwinder about it. */
static void capture_survives_code_without_unwind_data(void **state)
{
    (void)state;
#if defined(__x86_64__)
    static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
    uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(page, MAP_FAILED);
    memcpy(page, code, sizeof code);
    assert_int_equal(mprotect(page, 4096, PROT_READ | PROT_EXEC), 0);
    for (int i = 0; i < 4; i++) {
        captured.native_count = 0;
        ((void (*)(void (*)(void)))(uintptr_t)page)(capture_below_lfind);
        assert_true(captured.native_count >= 2);
        assert_captured_is_walked();
    }
    munmap(page, 4096);
#else
    skip();
#endif
}

/* The same page with a frame pointer that leads nowhere. */
static void capture_survives_a_ruined_frame_pointer(void **state)
{
    (void)state;
#if defined(__x86_64__)
    static const uint8_t code[] = {0x55, 0x48, 0xc7, 0xc5, 0x10, 0x00,
                                   0x00, 0x00, 0xff, 0xd7, 0x5d, 0xc3};
    uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(page, MAP_FAILED);
    memcpy(page, code, sizeof code);
    assert_int_equal(mprotect(page, 4096, PROT_READ | PROT_EXEC), 0);
    for (int i = 0; i < 4; i++) {
        captured.native_count = 0;
        ((void (*)(void (*)(void)))(uintptr_t)page)(capture_below_lfind);
        assert_true(captured.native_count >= 1);
    }
    munmap(page, 4096);
#else
    skip();
#endif
}

static void *capture_in_thread(void *unused)
{
    (void)unused;
    for (int i = 0; i < 4; i++)
        capture_below_lfind();
    return NULL;
}

/*
 * libunwind gives up its memory of a thread after the thread sanitizer has
 * forgotten the thread, which then falls over libunwind's lock.
 */
#if defined(__SANITIZE_THREAD__)
enum { threads_cannot_end = 1 };
#else
enum { threads_cannot_end = 0 };
#endif

/* The outermost frame lies right below an unmapped page, the innermost near another. */
static void capture_stays_within_a_small_stack_between_guard_pages(void **state)
{
    (void)state;
    size_t guard = 4096, bytes = 64 * 1024, least = (size_t)sysconf(_SC_THREAD_STACK_MIN);
    if (threads_cannot_end)
        skip();
    bytes = bytes < least ? least : bytes;
    char *memory = mmap(NULL, bytes + 2 * guard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    assert_int_equal(mprotect(memory + guard, bytes, PROT_READ | PROT_WRITE), 0);
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    assert_int_equal(pthread_attr_setstack(&attributes, memory + guard, bytes), 0);
    assert_int_equal(pthread_create(&thread, &attributes, capture_in_thread, NULL), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    assert_captured_is_walked();
    munmap(memory, bytes + 2 * guard);
}

static void *site_in_thread(void *id)
{
    for (int i = 0; i < 20000; i++)
        *(uint32_t *)id = gos_unwind_site();
    return NULL;
}

static void threads_at_one_place_share_the_number(void **state)
{
    (void)state;
    pthread_t threads[4];
    uint32_t ids[4];
    if (threads_cannot_end)
        skip();
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, site_in_thread, &ids[i]), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (int i = 1; i < 4; i++)
        assert_int_equal(ids[i], ids[0]);
}

/* --- which unwinder: each in a child, for a process opens them once ------------------------------
 */

static struct gos_loader real_loader;
static const char *missing;

static void *open_but(const char *name, int flags)
{
    return missing && strstr(name, missing) ? NULL : real_loader.open(name, flags);
}

static int child_opens_without(const char *library)
{
    missing = library;
    real_loader = gos_loader;
    gos_loader.open = open_but;
    gos_options.stack = GOS_STACK_NATIVE;
    gos_unwind_open();
    capture_below_lfind();
    return (int)gos_unwinder_which() * 16 + (captured.native_count > 4);
}

static int child_wanders_by_libgcc(const char *library)
{
    if (child_opens_without(library) != GOS_UNWINDER_LIBGCC * 16 + 1)
        return 1;
    assert_wandering_is_recognised(100000);
    return 0;
}

static int in_child(int (*run)(const char *), const char *library)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(run(library));
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void libgcc_stands_in_for_a_missing_libunwind(void **state)
{
    (void)state;
    assert_int_equal(in_child(child_opens_without, "libunwind"), GOS_UNWINDER_LIBGCC * 16 + 1);
}

static void libgcc_s_stacks_are_recognised_too(void **state)
{
    (void)state;
    assert_int_equal(in_child(child_wanders_by_libgcc, "libunwind"), 0);
}

static void libgcc_is_not_needed_beside_libunwind(void **state)
{
    (void)state;
    assert_int_equal(in_child(child_opens_without, "libgcc"), GOS_UNWINDER_LIBUNWIND * 16 + 1);
}

static void without_unwinders_stacks_are_empty(void **state)
{
    (void)state;
    assert_int_equal(in_child(child_opens_without, "lib"), GOS_UNWINDER_NONE * 16);
}

static int child_resets(const char *unused)
{
    (void)unused;
    gos_unwind_reset_after_fork();
    capture_below_lfind();
    return (int)gos_unwinder_which() * 16 + (int)captured.native_count;
}

static void child_of_a_process_with_an_unwinder_has_none(void **state)
{
    (void)state;
    assert_int_equal(in_child(child_resets, NULL), GOS_UNWINDER_NONE * 16);
}

int main(void)
{
    const struct CMUnitTest before_open[] = {
        cmocka_unit_test(libgcc_stands_in_for_a_missing_libunwind),
        cmocka_unit_test(libgcc_s_stacks_are_recognised_too),
        cmocka_unit_test(libgcc_is_not_needed_beside_libunwind),
        cmocka_unit_test(without_unwinders_stacks_are_empty),
    };
    const struct CMUnitTest after_open[] = {
        cmocka_unit_test(stack_starts_outside_our_own_object),
        cmocka_unit_test(depth_bounds_the_frames_that_are_kept),
        cmocka_unit_test(setting_decides_what_is_captured),
        cmocka_unit_test(recognised_stacks_are_those_that_unwinding_finds),
        cmocka_unit_test(learning_ends_where_nothing_is_recognised),
        cmocka_unit_test(site_of_one_place_has_one_number),
        cmocka_unit_test(capture_goes_through_a_signal_frame),
        cmocka_unit_test(capture_survives_code_without_unwind_data),
        cmocka_unit_test(capture_survives_a_ruined_frame_pointer),
        cmocka_unit_test(capture_stays_within_a_small_stack_between_guard_pages),
        cmocka_unit_test(threads_at_one_place_share_the_number),
        cmocka_unit_test(child_of_a_process_with_an_unwinder_has_none),
    };
    return cmocka_run_group_tests_name("before opening", before_open, NULL, NULL) +
           cmocka_run_group_tests_name("after opening", after_open, open_unwinder, NULL);
}
