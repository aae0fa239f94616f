/*
 * Words that come from outside, damaged at random: settings, what frameworks
 * answer, and names of functions.  Whatever is made of them is within its bounds.  The damage is
 * the same in each run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "../../src/base/cxx_name.h"
#include "../../src/base/options.h"
#include "../../src/base/os.h"
#include "../../src/observe/frameworks.h"

#define ROUNDS 20000
#define WORDS_MAX 600

static uint64_t state_of_chance;

static size_t below(size_t end)
{
    state_of_chance = state_of_chance * 6364136223846793005u + 1442695040888963407u;
    return end ? (size_t)(state_of_chance >> 33) % end : 0;
}

/* --- damage --- */

static void put(char *words, size_t at, const char *piece)
{
    size_t length = strlen(words), more = strlen(piece);
    if (length + more >= WORDS_MAX)
        return;
    memmove(words + at + more, words + at, length - at + 1);
    memcpy(words + at, piece, more);
}

static void damage_once(char *words)
{
    static const char *const pieces[] = {",",  ":",     "=",   "-1", "18446744073709551616", "GiB",
                                         "0x", "nth=2", "off", " ",  "\n+ torch 0 used=",    "%s"};
    size_t length = strlen(words), at = below(length + 1);
    switch (below(4)) {
    case 0:
        words[at] = '\0';
        break;
    case 1:
        if (at < length)
            words[at] = (char)(1 + below(255));
        break;
    case 2:
        if (at < length)
            memmove(words + at, words + at + 1, length - at);
        break;
    default:
        put(words, at, pieces[below(sizeof pieces / sizeof pieces[0])]);
    }
}

static void damage(char *words)
{
    for (size_t times = 1 + below(4); times > 0; times--)
        damage_once(words);
}

/* --- settings --- */

static ssize_t write_nowhere(int fd, const void *data, size_t bytes)
{
    (void)fd;
    (void)data;
    return (ssize_t)bytes;
}

static struct gos_os original;

static int silence(void **state)
{
    (void)state;
    state_of_chance = 1;
    original = gos_os;
    gos_os.write = write_nowhere;
    return 0;
}

static int speak(void **state)
{
    (void)state;
    gos_os = original;
    return 0;
}

static int load(const struct gos_option_row *row, const char *value)
{
    char variable[WORDS_MAX + 64] = "GPUOOMSHIM_";
    char *environment[] = {variable, NULL};
    strcat(strcat(strcat(variable, row->name), "="), value);
    return gos_options_load(environment);
}

static uint32_t word_count(const char *values)
{
    uint32_t count = 1;
    for (; *values; values++)
        count += *values == '|';
    return count;
}

static uint64_t number_of(const struct gos_option_row *row)
{
    const char *field = (const char *)&gos_options + row->offset;
    uint64_t wide = 0;
    uint32_t narrow = 0;
    if (row->type == GOS_OPTION_SET || row->type == GOS_OPTION_CHOICE)
        memcpy(&narrow, field, sizeof narrow);
    else if (row->type != GOS_OPTION_FLAG)
        memcpy(&wide, field, sizeof wide);
    return row->type == GOS_OPTION_FLAG ? *(const unsigned char *)field : wide | narrow;
}

static void assert_within_its_type(const struct gos_option_row *row)
{
    uint64_t number = number_of(row);
    if (row->type == GOS_OPTION_FLAG)
        assert_in_range(number, 0, 1);
    if (row->type == GOS_OPTION_CHOICE)
        assert_in_range(number, 0, word_count(row->values) - 1);
    if (row->type == GOS_OPTION_SET)
        assert_in_range(number, 0, (1u << word_count(row->values)) - 1);
    assert_in_range(gos_options.stack_depth, 1, 64);
}

static bool is_number(const struct gos_option_row *row)
{
    return row->type != GOS_OPTION_PATH && row->type != GOS_OPTION_FUNCTIONS &&
           row->type != GOS_OPTION_LIMIT && row->type != GOS_OPTION_INJECT;
}

static void damaged_setting_is_within_its_type_or_the_default(void **state)
{
    (void)state;
    static const char *const seeds[] = {"1",
                                        "text,json",
                                        "4GiB",
                                        "250ms",
                                        "0:24GiB,1:16GiB",
                                        "sync,trim,flush",
                                        "all",
                                        "python",
                                        "64",
                                        "off",
                                        "keeper:get().free, other:f",
                                        "share=0.01,seed=7,kind=async,min=1MiB,site=a.py:41"};
    int refused = 0;
    for (size_t i = 0; i < ROUNDS; i++) {
        const struct gos_option_row *row = &gos_option_rows[i % gos_option_row_count];
        char value[WORDS_MAX + 1];
        strcpy(value, seeds[below(sizeof seeds / sizeof seeds[0])]);
        damage(value);
        int complaints = load(row, value);
        assert_in_range(complaints, 0, 1);
        refused += complaints;
        if (!is_number(row))
            continue;
        assert_within_its_type(row);
        uint64_t number = number_of(row);
        assert_int_equal(load(row, row->fallback), 0);
        if (complaints)
            assert_int_equal(number, number_of(row));
    }
    assert_in_range(refused, ROUNDS / 10, ROUNDS - ROUNDS / 10); /* both kinds were met */
}

/* --- answers of frameworks --- */

#define GIB ((uint64_t)1 << 30)

static void assert_believable(const struct gos_framework_evidence *one)
{
    assert_non_null(one->name);
    assert_in_range(one->device, 0, GOS_DEVICE_MAX - 1);
    assert_true(one->used_bytes <= one->reserved_bytes);
    if (one->device == 0)
        assert_in_range(one->reserved_bytes, 0, 16 * GIB);
}

/* How many were believed. */
static size_t read_answer(const char *answer)
{
    static struct gos_evidence evidence; /* too large for the stack */
    memset(&evidence, 0, sizeof evidence);
    evidence.devices[0].driver_known = true;
    evidence.devices[0].driver_total_bytes = 16 * GIB;
    gos_frameworks_read(&evidence, answer, false);
    assert_in_range(evidence.incomplete_count, 0,
                    sizeof evidence.incomplete / sizeof evidence.incomplete[0]);
    for (size_t i = 0; i < evidence.framework_count; i++)
        assert_believable(&evidence.frameworks[i]);
    size_t count = evidence.framework_count;
    gos_scratch_release(&evidence.scratch);
    return count;
}

static void damaged_answer_of_a_framework_is_believed_only_where_it_can_be_true(void **state)
{
    (void)state;
    static const char whole[] =
        "+ torch 0 reserved=4096 used=1024 active=2048 split=512 map=1 segments=3 pinned=1 "
        "pieces=2 free_blocks=6 piece_bytes=512 fitting=700 largest=900 releasable=1000 "
        "backend=native settings=expandable_segments:True expandable=1 max_split=0 pools=0\n"
        "+ cupy 3 reserved=10 used=10 pinned_free=4\n= /tmp/x.torch.pickle\n.";
    size_t believed = 0;
    assert_int_equal(read_answer(whole), 2);
    for (size_t i = 0; i < ROUNDS; i++) {
        char answer[WORDS_MAX + 1];
        strcpy(answer, whole);
        damage(answer);
        believed += read_answer(answer);
    }
    assert_in_range(believed, ROUNDS / 10, 2 * ROUNDS); /* neither all nor nothing is refused */
}

/* --- names of functions --- */

static void damaged_name_of_a_function_is_read_within_its_bounds(void **state)
{
    static const char *const symbols[] = {
        "_ZZN1a1fERKSt6vectorIiSaIiEEENKUlPKcE0_clES6_",
        "_ZN2at6native10gpu_kernelILi4EJdPFvvEN3c104HalfEELb0EEEvRT_T0_",
        "_ZN12_GLOBAL__N_15LayerIMN1a1bEFivEA4_cEC2EDpT_"};
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        char symbol[WORDS_MAX];
        char name[WORDS_MAX];
        struct gos_text text = gos_text_on(name, sizeof name);
        strcpy(symbol, symbols[below(sizeof symbols / sizeof symbols[0])]);
        damage(symbol);
        gos_cxx_name_put(&text, symbol);
        assert_true(strcmp(name, symbol) == 0 || (text.length > 0 && text.length < 256));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_name_of_a_function_is_read_within_its_bounds),
        cmocka_unit_test_setup_teardown(damaged_setting_is_within_its_type_or_the_default, silence,
                                        speak),
        cmocka_unit_test_setup_teardown(
            damaged_answer_of_a_framework_is_believed_only_where_it_can_be_true, silence, speak),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
