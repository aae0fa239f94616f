#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../src/base/log.h"
#include "../../src/base/options.h"
#include "../../src/base/os.h"

static struct gos_os original;
static char said[4096]; /* everything that was written to stderr */

static ssize_t write_kept(int fd, const void *data, size_t bytes)
{
    size_t length = strlen(said);

    (void)fd;
    assert_true(length + bytes < sizeof(said));
    memcpy(said + length, data, bytes);
    said[length + bytes] = '\0';
    return (ssize_t)bytes;
}

static int start(void **state)
{
    (void)state;
    original = gos_os;
    gos_os.write = write_kept;
    said[0] = '\0';
    return 0;
}

static int finish(void **state)
{
    (void)state;
    gos_os = original;
    return 0;
}

/* Load one variable; the number of complaints. */
static int load(const char *variable)
{
    char *environment[] = {"HOME=/root", (char *)(uintptr_t)variable, "PATH=/bin", NULL};

    said[0] = '\0';
    return gos_options_load(environment);
}

static int load_nothing(void)
{
    char *environment[] = {NULL};

    return gos_options_load(environment);
}

static void every_default_can_be_read(void **state)
{
    (void)state;
    assert_int_equal(load_nothing(), 0);
    assert_string_equal(said, "");
    assert_false(gos_options.disable);
    assert_null(gos_options.report_dir);
    assert_int_equal(gos_options.report, GOS_REPORT_TEXT | GOS_REPORT_JSON);
    assert_int_equal(gos_options.report_on, GOS_REPORT_ON_FAILED);
    assert_int_equal(gos_options.retry_budget, 10000000000u);
    assert_int_equal(gos_options.stack, GOS_STACK_BOTH);
    assert_int_equal(gos_options.log, GOS_LOG_NOTICE);
}

static void a_missing_environment_is_an_empty_one(void **state)
{
    (void)state;
    assert_int_equal(gos_options_load(NULL), 0);
    assert_int_equal(gos_options.stack, GOS_STACK_BOTH);
}

static void words_of_the_enums_are_those_of_the_list(void **state)
{
    static const struct {
        const char *variable;
        size_t offset;
        uint32_t expected;
    } rows[] = {
#define ROW(variable, field, expected) {variable, offsetof(struct gos_options, field), expected}
        ROW("GPUOOMSHIM_REPORT=text", report, GOS_REPORT_TEXT),
        ROW("GPUOOMSHIM_REPORT=json", report, GOS_REPORT_JSON),
        ROW("GPUOOMSHIM_REPORT_ON=all", report_on, GOS_REPORT_ON_ALL),
        ROW("GPUOOMSHIM_RETRY=sync", retry, GOS_RETRY_SYNC),
        ROW("GPUOOMSHIM_RETRY=trim", retry, GOS_RETRY_TRIM),
        ROW("GPUOOMSHIM_STACK=off", stack, GOS_STACK_OFF),
        ROW("GPUOOMSHIM_STACK=native", stack, GOS_STACK_NATIVE),
        ROW("GPUOOMSHIM_STACK=python", stack, GOS_STACK_PYTHON),
        ROW("GPUOOMSHIM_LOG=error", log, GOS_LOG_ERROR),
        ROW("GPUOOMSHIM_LOG=notice", log, GOS_LOG_NOTICE),
        ROW("GPUOOMSHIM_LOG=info", log, GOS_LOG_INFO),
        ROW("GPUOOMSHIM_LOG=debug", log, GOS_LOG_DEBUG),
#undef ROW
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t value;

        assert_int_equal(load(rows[i].variable), 0);
        memcpy(&value, (const char *)&gos_options + rows[i].offset, sizeof(value));
        assert_int_equal(value, rows[i].expected);
    }
}

static void flags_understand_the_usual_words(void **state)
{
    static const char *const on[] = {"1", "yes", "on", "TRUE"};
    static const char *const off[] = {"0", "No", "off", "false"};
    char variable[64];

    (void)state;
    for (int i = 0; i < 4; i++) {
        snprintf(variable, sizeof(variable), "GPUOOMSHIM_DISABLE=%s", on[i]);
        assert_int_equal(load(variable), 0);
        assert_true(gos_options.disable);
        snprintf(variable, sizeof(variable), "GPUOOMSHIM_DISABLE=%s", off[i]);
        assert_int_equal(load(variable), 0);
        assert_false(gos_options.disable);
    }
}

static void sets_are_lists_of_words_or_off(void **state)
{
    (void)state;
    assert_int_equal(load("GPUOOMSHIM_RETRY=trim, Sync"), 0);
    assert_int_equal(gos_options.retry, GOS_RETRY_SYNC | GOS_RETRY_TRIM);
    assert_int_equal(load("GPUOOMSHIM_RETRY=off"), 0);
    assert_int_equal(gos_options.retry, 0);
    assert_int_equal(load("GPUOOMSHIM_RETRY=none"), 0);
    assert_int_equal(gos_options.retry, 0);
}

static void counts_durations_and_paths_are_read(void **state)
{
    char variable[] = "GPUOOMSHIM_REPORT_DIR=/var/tmp/x=y";

    (void)state;
    assert_int_equal(load("GPUOOMSHIM_REPORT_MAX=3"), 0);
    assert_int_equal(gos_options.report_max, 3);
    assert_int_equal(load("GPUOOMSHIM_RETRY_BUDGET=250ms"), 0);
    assert_int_equal(gos_options.retry_budget, 250000000);
    assert_int_equal(load(variable), 0);
    memset(variable, 'z', sizeof(variable) - 1); /* the host changes its block */
    assert_string_equal(gos_options.report_dir, "/var/tmp/x=y");
}

static void sizes_have_units_and_may_be_off(void **state)
{
    (void)state;
    assert_int_equal(load("GPUOOMSHIM_STACK_SAMPLE=4MiB"), 0);
    assert_int_equal(gos_options.stack_sample, 4u << 20);
    assert_int_equal(load("GPUOOMSHIM_STACK_SAMPLE=4096"), 0);
    assert_int_equal(gos_options.stack_sample, 4096);
    assert_int_equal(load("GPUOOMSHIM_STACK_SAMPLE=Off"), 0);
    assert_int_equal(gos_options.stack_sample, 0);
    assert_int_equal(load("GPUOOMSHIM_STACK_SAMPLE=often"), 1);
    assert_int_equal(gos_options.stack_sample, 0);
}

static void an_empty_value_is_no_value(void **state)
{
    (void)state;
    assert_int_equal(load("GPUOOMSHIM_STACK_DEPTH="), 0);
    assert_int_equal(gos_options.stack_depth, 40);
}

static void the_first_of_two_counts(void **state)
{
    char *environment[] = {"GPUOOMSHIM_REPORT_MAX=1", "GPUOOMSHIM_REPORT_MAX=2", NULL};

    (void)state;
    assert_int_equal(gos_options_load(environment), 0);
    assert_int_equal(gos_options.report_max, 1);
}

static void each_bad_value_gives_one_line_and_the_default(void **state)
{
    static const char *const bad[] = {
        "GPUOOMSHIM_DISABLE=maybe",
        "GPUOOMSHIM_REPORT=text,xml",
        "GPUOOMSHIM_REPORT_ON=failed,all",
        "GPUOOMSHIM_REPORT_MAX=-1",
        "GPUOOMSHIM_REPORT_MAX=1.5",
        "GPUOOMSHIM_REPORT_MAX=99999999999999999999",
        "GPUOOMSHIM_RETRY=sync,off",
        "GPUOOMSHIM_RETRY=sync,,trim",
        "GPUOOMSHIM_RETRY_BUDGET=soon",
        "GPUOOMSHIM_STACK_DEPTH=0",
        "GPUOOMSHIM_STACK_DEPTH=65",
        "GPUOOMSHIM_LOG=loud",
        "GPUOOMSHIM_FLUSH=keeper",
        "GPUOOMSHIM_FLUSH=keeper:",
        "GPUOOMSHIM_FLUSH=keeper.f",
        "GPUOOMSHIM_FLUSH=:f",
        "GPUOOMSHIM_FLUSH=keeper:f, two",
        "GPUOOMSHIM_FLUSH=keeper:f..g",
        "GPUOOMSHIM_FLUSH=keeper:f.",
        "GPUOOMSHIM_FLUSH=keeper:()",
        "GPUOOMSHIM_FLUSH=keeper:f(1).g",
        "GPUOOMSHIM_FLUSH=a:b:c",
        "GPUOOMSHIM_FLUSH=,",
    };
    struct gos_options defaults;

    (void)state;
    load_nothing();
    defaults = gos_options;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(load(bad[i]), 1);
        assert_memory_equal(&gos_options, &defaults, sizeof(defaults));
        assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
    }
}

static void functions_are_kept_as_they_were_written(void **state)
{
    static const char *const good[] = {"keeper:f", "a.b:c().d, x:y", " keeper:get().all() ,"};
    char variable[64];

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        snprintf(variable, sizeof(variable), "GPUOOMSHIM_FLUSH=%s", good[i]);
        assert_int_equal(load(variable), 0);
        assert_string_equal(gos_options.flush, good[i]);
    }
}

static void a_bad_value_is_shown_without_control_characters(void **state)
{
    (void)state;
    assert_int_equal(load("GPUOOMSHIM_LOG=\033[2Jx\nfake line"), 1);
    assert_null(strchr(said, '\033'));
    assert_null(strstr(said, "fake line"));
    assert_non_null(strstr(said, "GPUOOMSHIM_LOG= cannot be used"));
}

static void limits_of_a_range_are_inside(void **state)
{
    (void)state;
    assert_int_equal(load("GPUOOMSHIM_STACK_DEPTH=1"), 0);
    assert_int_equal(gos_options.stack_depth, 1);
    assert_int_equal(load("GPUOOMSHIM_STACK_DEPTH=64"), 0);
    assert_int_equal(gos_options.stack_depth, 64);
}

static void an_unknown_name_brings_the_nearest_known_one(void **state)
{
    (void)state;
    assert_int_equal(load("GPUOOMSHIM_RETRI=off"), 1);
    assert_non_null(strstr(said, "did you mean GPUOOMSHIM_RETRY?"));
    assert_int_equal(load("GPUOOMSHIM_REPORTDIR=/x"), 1);
    assert_non_null(strstr(said, "did you mean GPUOOMSHIM_REPORT_DIR?"));
    assert_int_equal(load("GPUOOMSHIM_STACKDEPHT=/x"), 1);
    assert_non_null(strstr(said, "did you mean GPUOOMSHIM_STACK_DEPTH?"));
}

static void a_name_like_none_is_answered_with_where_to_look(void **state)
{
    (void)state;
    assert_int_equal(load("GPUOOMSHIM_XYZZY_QUUX=1"), 1);
    assert_non_null(strstr(said, "gpuoomshim options"));
    assert_null(strstr(said, "did you mean"));
    assert_int_equal(
        load("GPUOOMSHIM_A_NAME_THAT_IS_LONGER_THAN_ANY_SETTING_CAN_POSSIBLY_BE_OR_BECOME=1"), 1);
}

static void a_set_has_at_most_as_many_words_as_bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < gos_option_row_count; i++) {
        const struct gos_option_row *row = &gos_option_rows[i];
        int words = 1;

        for (const char *c = row->values; *c; c++)
            words += *c == '|';
        assert_true(row->type != GOS_OPTION_SET || words <= 32);
        assert_true(strlen(row->name) <= 32);
        assert_true(strlen(row->help) > 0);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_default_can_be_read),
        TEST(a_missing_environment_is_an_empty_one),
        TEST(words_of_the_enums_are_those_of_the_list),
        TEST(flags_understand_the_usual_words),
        TEST(sets_are_lists_of_words_or_off),
        TEST(counts_durations_and_paths_are_read),
        TEST(sizes_have_units_and_may_be_off),
        TEST(an_empty_value_is_no_value),
        TEST(the_first_of_two_counts),
        TEST(each_bad_value_gives_one_line_and_the_default),
        TEST(functions_are_kept_as_they_were_written),
        TEST(a_bad_value_is_shown_without_control_characters),
        TEST(limits_of_a_range_are_inside),
        TEST(an_unknown_name_brings_the_nearest_known_one),
        TEST(a_name_like_none_is_answered_with_where_to_look),
        TEST(a_set_has_at_most_as_many_words_as_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
