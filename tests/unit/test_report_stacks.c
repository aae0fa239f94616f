/* Looking up the stacks of a report: real modules of this process, made-up call stacks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/os.h"
#include "../../src/report/stacks.h"

#define PLENTY_NS UINT64_C(60000000000)

static struct gos_evidence evidence;
static struct gos_diagnosis diagnosis;
static struct gos_scratch scratch;
static struct gos_stacks stacks;
static struct gos_site_use uses[8];
static struct gos_os real_os;

static int begin(void **state)
{
    (void)state;
    real_os = gos_os;
    memset(&evidence, 0, sizeof evidence);
    memset(&diagnosis, 0, sizeof diagnosis);
    memset(&scratch, 0, sizeof scratch);
    diagnosis.evidence = &evidence;
    evidence.uses = uses;
    evidence.request.requester_module = UINT32_MAX;
    return 0;
}

static int end(void **state)
{
    (void)state;
    gos_os = real_os;
    gos_scratch_release(&scratch);
    return 0;
}

/* A stack inside a64l and l64a of the C library, told apart by `more` bytes. */
static uint32_t site_in_libc(unsigned more)
{
    static struct gos_stack stack;
    memset(&stack, 0, sizeof stack);
    stack.native_count = 2;
    stack.native[0] = (uintptr_t)&a64l + 1 + more;
    stack.native[1] = (uintptr_t)&l64a + 1;
    return gos_site_intern(&stack);
}

static void use_site(uint32_t site)
{
    uses[evidence.use_count++] = (struct gos_site_use){.site = site, .live_bytes = 1};
}

static void frames_have_library_symbol_and_distance(void **state)
{
    (void)state;
    uint32_t site = site_in_libc(3);
    use_site(site);
    gos_stacks_resolve(&stacks, &scratch, &diagnosis, GOS_STACKS_MAX, PLENTY_NS);
    const struct gos_shown_stack *stack = gos_stacks_find(&stacks, site);
    assert_non_null(stack);
    assert_int_equal(stack->native_count, 2);
    assert_memory_equal(stack->native[0].module->name, "libc.so", 7);
    assert_string_equal(stack->native[0].symbol, "a64l");
    assert_int_equal(stack->native[0].symbol_offset, 4);
    assert_string_equal(stack->native[1].symbol, "l64a");
    assert_int_equal(stacks.module_count, 1);
}

static void call_at_the_end_of_a_function_is_not_the_next_function(void **state)
{
    (void)state;
    static struct gos_stack stack;
    stack.native_count = 1;
    stack.native[0] = (uintptr_t)&a64l; /* returns to where a64l begins: not a call in a64l */
    uint32_t site = gos_site_intern(&stack);
    use_site(site);
    gos_stacks_resolve(&stacks, &scratch, &diagnosis, GOS_STACKS_MAX, PLENTY_NS);
    const char *symbol = gos_stacks_find(&stacks, site)->native[0].symbol;
    if (symbol)
        assert_string_not_equal(symbol, "a64l");
}

static void without_time_frames_have_library_and_offset_only(void **state)
{
    (void)state;
    uint32_t site = site_in_libc(5);
    use_site(site);
    gos_stacks_resolve(&stacks, &scratch, &diagnosis, GOS_STACKS_MAX, 0);
    const struct gos_shown_stack *stack = gos_stacks_find(&stacks, site);
    assert_null(stack->native[0].symbol);
    assert_int_equal(stack->native[0].symbol_offset, 0);
    assert_non_null(stack->native[0].module);
    assert_true(stack->native[0].offset > 0);
}

static void each_site_is_there_once_and_can_be_found(void **state)
{
    (void)state;
    uint32_t sites[4];
    for (unsigned i = 0; i < 4; i++)
        sites[i] = site_in_libc(10 + i);
    evidence.request.site = sites[2];
    diagnosis.fragmentation[3].pin_count = 1;
    diagnosis.fragmentation[3].pins[0].site = sites[3];
    use_site(sites[1]);
    use_site(sites[0]);
    use_site(sites[1]);
    use_site(0);
    use_site(UINT32_MAX);
    gos_stacks_resolve(&stacks, &scratch, &diagnosis, GOS_STACKS_MAX, PLENTY_NS);
    assert_int_equal(stacks.count, 4);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(gos_stacks_find(&stacks, sites[i])->site, sites[i]);
    assert_null(gos_stacks_find(&stacks, 0));
    assert_null(gos_stacks_find(&stacks, UINT32_MAX));
}

static unsigned maps_before_failure;

static void *map_that_fails(size_t bytes)
{
    if (maps_before_failure == 0)
        return NULL;
    maps_before_failure--;
    return real_os.map(bytes);
}

static void without_memory_there_are_fewer_stacks_but_no_harm(void **state)
{
    (void)state;
    uint32_t site = site_in_libc(20);
    use_site(site);
    gos_os.map = map_that_fails;
    for (maps_before_failure = 0;; maps_before_failure++) {
        unsigned before = maps_before_failure;
        gos_stacks_resolve(&stacks, &scratch, &diagnosis, GOS_STACKS_MAX, PLENTY_NS);
        bool complete = maps_before_failure > 0;
        (void)gos_stacks_find(&stacks, site);
        gos_scratch_release(&scratch);
        memset(&scratch, 0, sizeof scratch);
        maps_before_failure = before;
        if (complete)
            break;
        assert_true(before < 20);
    }
}

static void requester_is_known_only_for_a_failure(void **state)
{
    (void)state;
    const struct gos_module *libc = gos_module_named("libc.so");
    assert_non_null(libc);
    evidence.request.requester_module = libc->index;
    gos_stacks_resolve(&stacks, &scratch, &diagnosis, GOS_STACKS_MAX, 0);
    assert_null(stacks.requester);
    evidence.request.api = "cudaMalloc";
    gos_stacks_resolve(&stacks, &scratch, &diagnosis, GOS_STACKS_MAX, 0);
    assert_ptr_equal(stacks.requester, libc);
}

static void interpreter_and_shim_are_noise_and_others_are_not(void **state)
{
    (void)state;
    static const char *const noise[] = {"libgpuoomshim.so", "libpython3.12.so.1.0", "python",
                                        "python3.12"};
    static const char *const others[] = {"libtorch_python.so", "pythonic", "libcudart.so.13",
                                         "python3.12-helper"};
    struct gos_module module = {0};
    struct gos_shown_frame frame = {.module = &module};
    for (size_t i = 0; i < 4; i++) {
        module.name = noise[i];
        assert_true(gos_frame_is_noise(&frame));
        module.name = others[i];
        assert_false(gos_frame_is_noise(&frame));
    }
    frame.module = NULL;
    assert_false(gos_frame_is_noise(&frame));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
        TEST(frames_have_library_symbol_and_distance),
        TEST(call_at_the_end_of_a_function_is_not_the_next_function),
        TEST(without_time_frames_have_library_and_offset_only),
        TEST(each_site_is_there_once_and_can_be_found),
        TEST(without_memory_there_are_fewer_stacks_but_no_harm),
        TEST(requester_is_known_only_for_a_failure),
        TEST(interpreter_and_shim_are_noise_and_others_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
