/* What is made of torch's own word; that its own functions still run is for integration. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "../../src/base/loss.h"
#include "../../src/base/thread.h"
#include "../../src/shim/place.h"
#include "../../src/shim/state.h"
#include "../../src/shim/story.h"
#include "../../src/shim/torch_word.h"

/* As torch calls them, with what a register may hold beside the two bytes. */
void _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE(int64_t, uint64_t, uint64_t, uint64_t);
void _ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE(int64_t, int64_t, int64_t, uint64_t);
void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *, int64_t, uint64_t, uint64_t,
                                                           uint64_t);
void _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE(void *, int64_t, int64_t, int64_t,
                                                           uint64_t);
#define refuse _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE
#define tell_block _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE

#define GIB (UINT64_C(1) << 30)
#define DEVICE(type, index) (UINT64_C(0xabcd0000) | (uint8_t)(index) << 8 | (uint8_t)(type))
#define CUDA 1
#define HOST 0

/* --- the rest of the shim --- */

_Atomic int gos_shim_mode_now;
_Atomic bool gos_shim_watches_fork = true;
void gos_shim_notice_fork_slow(void)
{
}

const struct gos_place *gos_place_of_context(void)
{
    static const struct gos_place place = {.device = 3};
    return &place;
}

__thread uint32_t gos_story_open __attribute__((tls_model("initial-exec")));
static uint64_t block_amid_story;

void gos_story_block(uint64_t bytes)
{
    block_amid_story = bytes;
}

static struct gos_word heard;
static unsigned heard_count;
static uint32_t heard_depth;

void gos_failure_word(const struct gos_word *word)
{
    heard = *word;
    heard_count++;
    heard_depth = gos_thread.depth;
    errno = EIO;
}

static int start(void **state)
{
    (void)state;
    gos_shim_mode_now = GOS_SHIM_ACTIVE;
    gos_thread.depth = 0;
    heard_count = 0;
    memset(&heard, 0, sizeof heard);
    return 0;
}

/* --- */

static void refusal_is_told_with_torchs_numbers(void **state)
{
    (void)state;
    refuse((int64_t)(8 * GIB), 100 * GIB, 120 * GIB, DEVICE(CUDA, 2));
    assert_int_equal(heard_count, 1);
    assert_int_equal(heard.asked_bytes, 8 * GIB);
    assert_int_equal(heard.allocated_bytes, 100 * GIB);
    assert_int_equal(heard.reserved_bytes, 120 * GIB);
    assert_int_equal(heard.device, 2);
}

static void only_blocks_handed_out_amid_a_story_answer_it(void **state)
{
    (void)state;
    block_amid_story = 0;
    tell_block(NULL, 512, 0, 0, DEVICE(CUDA, 0));
    gos_story_open = 1;
    tell_block(NULL, -512, 0, 0, DEVICE(CUDA, 0));
    tell_block(NULL, 512, 0, 0, DEVICE(HOST, 0));
    assert_int_equal(block_amid_story, 0);
    tell_block(NULL, 1024, 0, 0, DEVICE(CUDA, 0));
    gos_story_open = 0;
    assert_int_equal(block_amid_story, 1024);
}

static void refusal_of_torch_1_13_is_told_alike(void **state)
{
    (void)state;
    _ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE(5, 6, 7, DEVICE(CUDA, 0));
    assert_int_equal(heard_count, 1);
    assert_int_equal(heard.asked_bytes, 5);
    assert_int_equal(heard.allocated_bytes, 6);
    assert_int_equal(heard.reserved_bytes, 7);
}

static void absurd_size_is_passed_as_it_is(void **state)
{
    (void)state;
    refuse(-1, 0, 0, DEVICE(CUDA, 0));
    assert_int_equal(heard.asked_bytes, UINT64_MAX);
}

static void refusal_without_an_index_is_the_current_devices(void **state)
{
    (void)state;
    refuse(1, 0, 0, DEVICE(CUDA, -1));
    assert_int_equal(heard.device, 3);
}

static void refusal_leaves_depth_and_errno(void **state)
{
    (void)state;
    errno = ENOENT;
    refuse(1, 0, 0, DEVICE(CUDA, 0));
    assert_int_equal(errno, ENOENT);
    assert_int_equal(heard_depth, 1);
    assert_int_equal(gos_thread.depth, 0);
}

static void refusal_is_not_ours(void **state)
{
    (void)state;
    refuse(1, 0, 0, DEVICE(HOST, -1));
    gos_thread.depth = 1;
    refuse(1, 0, 0, DEVICE(CUDA, 0));
    assert_int_equal(gos_thread.depth, 1);
    gos_thread.depth = 0;
    gos_shim_mode_now = GOS_SHIM_UNSTARTED;
    refuse(1, 0, 0, DEVICE(CUDA, 0));
    gos_shim_mode_now = GOS_SHIM_PASSIVE;
    refuse(1, 0, 0, DEVICE(CUDA, 0));
    assert_int_equal(heard_count, 0);
}

/* Comes first of those that tell blocks: that one was told is never forgotten. */
static void word_can_come_once_a_block_of_cuda_was_told(void **state)
{
    (void)state;
    tell_block(&heard, 512, 512, 2048, DEVICE(HOST, -1));
    gos_shim_mode_now = GOS_SHIM_UNSTARTED;
    tell_block(&heard, 512, 512, 2048, DEVICE(CUDA, 0));
    assert_false(gos_word_can_come());
    gos_shim_mode_now = GOS_SHIM_ACTIVE;
    tell_block(&heard, 512, 512, 2048, DEVICE(CUDA, 0));
    assert_true(gos_word_can_come());
}

static void last_totals_of_each_device_are_kept(void **state)
{
    uint64_t allocated, reserved;
    (void)state;

    tell_block(&heard, 512, 1000, 2000, DEVICE(CUDA, 1));
    _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE(&heard, -512, 488, 1999, DEVICE(CUDA, 1));
    tell_block(&heard, 512, 5, 6, DEVICE(CUDA, 4));
    assert_true(gos_torch_totals(1, &allocated, &reserved));
    assert_int_equal(allocated, 488);
    assert_int_equal(reserved, 1999);
    assert_false(gos_torch_totals(7, &allocated, &reserved));
    assert_false(gos_torch_totals(-1, &allocated, &reserved));
    tell_block(&heard, 512, 5, 6, DEVICE(CUDA, 127));
    tell_block(&heard, 512, 5, 6, DEVICE(CUDA, -1));
}

static void block_that_a_flush_frees_is_told(void **state)
{
    uint64_t allocated, reserved;
    (void)state;

    gos_thread.depth = 1;
    tell_block(&heard, -512, 77, 88, DEVICE(CUDA, 5));
    assert_true(gos_torch_totals(5, &allocated, &reserved));
    assert_int_equal(allocated, 77);
}

/* One place in the code, several calls: the second one goes by what is remembered. */
static void call_at_one_place(int round)
{
    errno = round;
    refuse(1, 0, 0, DEVICE(HOST, -1));
    assert_int_equal(errno, round);
}

static void missing_function_is_counted_where_it_was_looked_for(void **state)
{
    uint64_t before = gos_loss_get(GOS_LOSS_WORD);
    (void)state;

    gos_torch_unload_begin();
    gos_torch_unload_end();
    for (int round = 1; round <= 3; round++)
        call_at_one_place(round);
    assert_int_equal(gos_loss_get(GOS_LOSS_WORD), before + 1);
    gos_torch_unload_begin();
    call_at_one_place(4);
    call_at_one_place(5);
    gos_torch_unload_end();
    call_at_one_place(6);
    assert_int_equal(gos_loss_get(GOS_LOSS_WORD), before + 4);
}

static void names_are_known(void **state)
{
    (void)state;
    assert_ptr_equal(gos_torch_wrapper("_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE"),
                     (void *)refuse);
    assert_null(gos_torch_wrapper("_ZN3c1027reportOutOfMemoryToProfiler"));
    assert_null(gos_torch_wrapper("cuInit"));
    assert_null(gos_torch_wrapper(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(word_can_come_once_a_block_of_cuda_was_told, start),
        cmocka_unit_test_setup(refusal_is_told_with_torchs_numbers, start),
        cmocka_unit_test_setup(only_blocks_handed_out_amid_a_story_answer_it, start),
        cmocka_unit_test_setup(refusal_of_torch_1_13_is_told_alike, start),
        cmocka_unit_test_setup(absurd_size_is_passed_as_it_is, start),
        cmocka_unit_test_setup(refusal_without_an_index_is_the_current_devices, start),
        cmocka_unit_test_setup(refusal_leaves_depth_and_errno, start),
        cmocka_unit_test_setup(refusal_is_not_ours, start),
        cmocka_unit_test_setup(last_totals_of_each_device_are_kept, start),
        cmocka_unit_test_setup(block_that_a_flush_frees_is_told, start),
        cmocka_unit_test_setup(missing_function_is_counted_where_it_was_looked_for, start),
        cmocka_unit_test_setup(names_are_known, start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
