/* What is read from a framework's answer, and what is not believed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "../../src/observe/frameworks.h"

#define GIB ((uint64_t)1 << 30)

static void read_into(struct gos_evidence *evidence, const char *answer)
{
    memset(evidence, 0, sizeof *evidence);
    evidence->devices[0].driver_known = true;
    evidence->devices[0].driver_total_bytes = 16 * GIB;
    gos_frameworks_read(evidence, answer, false);
}

static void release(struct gos_evidence *evidence)
{
    gos_scratch_release(&evidence->scratch);
}

static const char whole_answer[] =
    "+ torch 0 reserved=4096 used=1024 active=2048 split=512 map=1 segments=3 pinned=1 pieces=2 "
    "free_blocks=6 "
    "piece_bytes=512 fitting=700 largest=900 releasable=1000 backend=native "
    "settings=expandable_segments:True expandable=1 max_split=0 collects=1 "
    "limited=0 pools=0\n"
    "+ cupy 3 reserved=10 used=10 pinned_free=4 limited=1 limit=20\n"
    "* jax 0 arrays 8192 3 train.py:8 <module>\n"
    "* jax 0 programs 5 1 compiled programs\n"
    "= /tmp/x.torch.pickle\n"
    ".";

static void each_number_arrives(void **state)
{
    (void)state;
    struct gos_evidence evidence;
    read_into(&evidence, whole_answer);
    assert_int_equal(evidence.framework_count, 2);
    const struct gos_framework_evidence *torch = &evidence.frameworks[0];
    assert_string_equal(torch->name, "torch");
    assert_int_equal(torch->reserved_bytes, 4096);
    assert_int_equal(torch->used_bytes, 1024);
    assert_int_equal(torch->active_bytes, 2048);
    assert_int_equal(torch->inactive_split_bytes, 512);
    assert_true(torch->map_known && torch->releasable_known);
    assert_int_equal(torch->segment_count, 3);
    assert_int_equal(torch->pinned_segment_count, 1);
    assert_int_equal(torch->piece_count, 2);
    assert_int_equal(torch->free_block_count, 6);
    assert_int_equal(torch->piece_bytes, 512);
    assert_int_equal(torch->fitting_bytes, 700);
    assert_int_equal(torch->largest_free_bytes, 900);
    assert_int_equal(torch->releasable_bytes, 1000);
    assert_string_equal(torch->backend, "native");
    assert_string_equal(torch->settings, "expandable_segments:True");
    assert_int_equal(torch->expandable, GOS_SETTING_ON);
    assert_int_equal(torch->max_split, GOS_SETTING_OFF);
    assert_int_equal(torch->collects, GOS_SETTING_ON);
    assert_int_equal(torch->limited, GOS_SETTING_OFF);
    assert_int_equal(evidence.frameworks[1].limited, GOS_SETTING_ON);
    assert_int_equal(evidence.frameworks[1].device, 3);
    assert_int_equal(evidence.frameworks[1].pinned_free_count, 4);
    assert_int_equal(evidence.frameworks[1].expandable, GOS_SETTING_UNKNOWN);
    assert_string_equal(evidence.torch_snapshot, "/tmp/x.torch.pickle");
    assert_int_equal(evidence.incomplete_count, 0);
    release(&evidence);
}

static void lines_of_the_program_arrive(void **state)
{
    (void)state;
    struct gos_evidence evidence;
    read_into(&evidence, whole_answer);
    assert_int_equal(evidence.frameworks[1].limit_bytes, 20);
    assert_int_equal(evidence.framework_line_count, 2);
    const struct gos_framework_line *line = evidence.framework_lines;
    assert_string_equal(line->framework, "jax");
    assert_int_equal(line->device, 0);
    assert_int_equal(line->part, GOS_PART_ARRAYS);
    assert_int_equal(line->bytes, 8192);
    assert_int_equal(line->count, 3);
    assert_string_equal(line->label, "train.py:8 <module>");
    assert_int_equal(line[1].part, GOS_PART_PROGRAMS);
    release(&evidence);
}

static void lines_that_are_damaged_are_left_out(void **state)
{
    (void)state;
    struct gos_evidence evidence;
    read_into(&evidence, "* jax 0 arrays 8192 3\n* jax 0 rays 1 1 x\n* jax x arrays 1 1 x\n"
                         "* mine 0 arrays 1 1 x\n* jax 9999 arrays 1 1 x\n* jax 0 arrays 1\n"
                         "* jax 0 rest 1 1 x\n.");
    assert_int_equal(evidence.framework_line_count, 1);
    assert_int_equal(evidence.framework_lines[0].part, GOS_PART_REST);
    release(&evidence);
}

static void what_cannot_be_is_said_and_left_out(void **state)
{
    (void)state;
    static const char *const answers[] = {
        "+ torch 0 reserved=10 used=11",
        "+ torch 0 reserved=17179869185 used=0", /* one byte more than the device has */
        "+ torch 0 reserved=10",
        "+ torch 0 used=10",
        "+ torch 0 reserved=-5 used=0",
        "+ torch 0 reserved=1e3 used=0",
        "+ torch 0 reserved=99999999999999999999 used=0",
        "+ torch 0 reserved=10 used=0 releasable=11",
        "+ torch 0 reserved=10 used=0 largest=11",
        "+ torch 0 reserved=10 used=5 piece_bytes=6",
        "+ torch 64 reserved=10 used=0",
        "+ torch x reserved=10 used=0",
        "+ tensorflow 0 reserved=10 used=0",
        "+ torch",
    };
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        struct gos_evidence evidence;
        read_into(&evidence, answers[i]);
        assert_int_equal(evidence.framework_count, 0);
        assert_int_equal(evidence.incomplete_count, 1);
        assert_non_null(strstr(evidence.incomplete[0], "make no sense"));
        release(&evidence);
    }
}

static void a_reason_is_passed_on(void **state)
{
    (void)state;
    struct gos_evidence evidence;
    read_into(&evidence, "- cupy KeyError: 'x'\n.");
    assert_int_equal(evidence.incomplete_count, 1);
    assert_string_equal(evidence.incomplete[0], "what cupy says it holds (KeyError: 'x')");
    release(&evidence);
}

static void a_line_is_taken_back_when_it_was_seen_after_all(void **state)
{
    (void)state;
    struct gos_evidence evidence = {.pid = 0};
    gos_evidence_incomplete(&evidence, "one");
    gos_evidence_incomplete(&evidence, "two");
    gos_evidence_incomplete(&evidence, "two");
    gos_evidence_incomplete(&evidence, "three");
    gos_evidence_complete(&evidence, "two");
    gos_evidence_complete(&evidence, "four");
    assert_int_equal(evidence.incomplete_count, 2);
    assert_string_equal(evidence.incomplete[0], "one");
    assert_string_equal(evidence.incomplete[1], "three");
}

static void row_that_is_told_again_counts_once(void **state)
{
    (void)state;
    static char answer[GOS_FRAMEWORKS_ANSWER_BYTES];
    static const char row[] = "+ jax 0 reserved=2 used=1\n";
    struct gos_evidence evidence;
    for (size_t at = 0; at + sizeof row < sizeof answer; at += sizeof row - 1)
        memcpy(answer + at, row, sizeof row);
    read_into(&evidence, answer);
    assert_int_equal(evidence.framework_count, 1);
    release(&evidence);
}

static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* Whatever the answer, what is believed fits together. */
static void garbled_answers_give_nothing_that_cannot_be(void **state)
{
    (void)state;
    uint64_t seed = 88172645463325252u;
    for (int round = 0; round < 20000; round++) {
        char answer[sizeof whole_answer];
        struct gos_evidence evidence;
        memcpy(answer, whole_answer, sizeof answer);
        for (uint64_t changes = next_random(&seed) % 6; changes > 0; changes--)
            answer[next_random(&seed) % (sizeof answer - 1)] =
                "0123456789= +-.\n\x7f\xff"[next_random(&seed) % 18];
        answer[next_random(&seed) % sizeof answer] = '\0';
        read_into(&evidence, answer);
        for (size_t i = 0; i < evidence.framework_count; i++) {
            const struct gos_framework_evidence *row = &evidence.frameworks[i];
            assert_true(row->used_bytes <= row->reserved_bytes);
            assert_true(row->releasable_bytes <= row->reserved_bytes - row->used_bytes);
            assert_true(row->device < GOS_DEVICE_MAX);
        }
        release(&evidence);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_number_arrives),
        cmocka_unit_test(lines_of_the_program_arrive),
        cmocka_unit_test(lines_that_are_damaged_are_left_out),
        cmocka_unit_test(what_cannot_be_is_said_and_left_out),
        cmocka_unit_test(a_reason_is_passed_on),
        cmocka_unit_test(a_line_is_taken_back_when_it_was_seen_after_all),
        cmocka_unit_test(row_that_is_told_again_counts_once),
        cmocka_unit_test(garbled_answers_give_nothing_that_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
