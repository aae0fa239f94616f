#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "../../src/base/text.h"

#define ROUNDS 20000

static char ours[256], theirs[256];

/* The same format and arguments through both; the format is not a literal on purpose. */
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
__attribute__((format(printf, 2, 3))) static void check_same(size_t size, const char *format, ...)
{
    struct gos_text text = gos_text_on(ours, size);
    va_list args;
    int length;

    va_start(args, format);
    gos_text_vformat(&text, format, args);
    va_end(args);
    va_start(args, format);
    length = vsnprintf(theirs, size, format, args);
    va_end(args);
    assert_string_equal(ours, theirs);
    assert_int_equal(text.length, strlen(theirs));
    assert_int_equal(text.truncated, (size_t)length >= size);
}

static uint64_t random_state = 88172645463325252u;

static uint64_t random_number(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* Of any magnitude, small ones as often as large ones. */
static uint64_t random_value(void)
{
    uint64_t bits = random_number() % 65;

    return bits == 64 ? random_number() : random_number() & ((1ull << bits) - 1);
}

static void make_format(char *format, size_t size, const char *length, char letter)
{
    static const char *const flags[] = {"", "-", "0"};
    static const char *const widths[] = {"", "1", "5", "20", "40"};

    snprintf(format, size, "<%%%s%s%s%c|%%d>", flags[random_number() % 3],
             widths[random_number() % 5], length, letter);
}

static void integers_look_as_printf_writes_them(void **state)
{
    char format[32];

    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        char letter = "dux"[random_number() % 3];
        size_t size = random_number() % 8 ? sizeof(ours) : random_number() % 40 + 1;
        uint64_t value = random_value();

        make_format(format, sizeof(format), "", letter);
        check_same(size, format, (int)value, i);
        make_format(format, sizeof(format), "h", letter);
        check_same(size, format, (int)value, i);
        make_format(format, sizeof(format), "hh", letter);
        check_same(size, format, (int)value, i);
        make_format(format, sizeof(format), "l", letter);
        check_same(size, format, (long)value, i);
        make_format(format, sizeof(format), "ll", letter);
        check_same(size, format, (long long)value, i);
        make_format(format, sizeof(format), "z", letter);
        check_same(size, format, (size_t)value, i);
        make_format(format, sizeof(format), "j", letter);
        check_same(size, format, (uintmax_t)value, i);
    }
}

static void extreme_integers_look_as_printf_writes_them(void **state)
{
    (void)state;
    check_same(256, "%ld %lu %d %x %hhd", INT64_MIN, UINT64_MAX, INT32_MIN, UINT32_MAX, -128);
    check_same(256, "%025ld|%-25ld|%25ld", INT64_MIN, INT64_MIN, INT64_MIN);
    check_same(256, "%i %li %jd %lld", -1, -1l, INTMAX_MIN, LLONG_MIN);
}

static void strings_look_as_printf_writes_them(void **state)
{
    static const char word[] = "the quick brown fox";

    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        size_t size = random_number() % 60 + 1;
        int width = (int)(random_number() % 40) - 20, precision = (int)(random_number() % 25) - 2;

        check_same(size, "[%*s]", width, word);
        check_same(size, "[%.*s]", precision, word);
        check_same(size, "[%*.*s]%c", width, precision, word, 'a' + i % 26);
        check_same(size, "[%-30s|%.3s|%5c]", word, word, 'x');
    }
}

static void pointers_percent_and_plain_text_pass(void **state)
{
    (void)state;
    check_same(256, "100%% of %p %20p %s", (void *)ours, (void *)theirs, "it");
    check_same(256, "plain");
    check_same(256, "%s", "");
}

static void a_precision_protects_text_without_an_end(void **state)
{
    char raw[4] = {'a', 'b', 'c', 'd'};
    struct gos_text text = gos_text_on(ours, sizeof(ours));

    (void)state;
    gos_text_format(&text, "%.*s", 4, raw);
    assert_string_equal(ours, "abcd");
}

static void a_missing_string_is_shown_not_followed(void **state)
{
    struct gos_text text = gos_text_on(ours, sizeof(ours));
    const char *volatile missing = NULL;

    (void)state;
    gos_text_format(&text, "%s", missing);
    assert_string_equal(ours, "(null)");
}

static void text_is_cut_at_every_size_and_never_beyond(void **state)
{
    (void)state;
    for (size_t size = 1; size < 12; size++) {
        struct gos_text text;

        memset(ours, '#', sizeof(ours));
        text = gos_text_on(ours, size);
        gos_text_put(&text, "abc");
        gos_text_char(&text, 'd');
        gos_text_format(&text, "%5d", 42);
        assert_int_equal(text.truncated, size < 10);
        assert_int_equal(text.length, size < 10 ? size - 1 : 9);
        assert_memory_equal(ours, "abcd   42", text.length);
        assert_int_equal(ours[text.length], '\0');
        assert_int_equal(ours[size], '#');
    }
}

static void a_buffer_of_no_size_is_left_alone(void **state)
{
    struct gos_text text = gos_text_on(NULL, 0);

    (void)state;
    gos_text_format(&text, "%d", 1);
    assert_true(text.truncated);
    assert_int_equal(text.length, 0);
}

struct shown {
    uint64_t value;
    const char *expected;
};

static void check_shown(void (*show)(struct gos_text *, uint64_t), const struct shown *rows,
                        size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct gos_text text = gos_text_on(ours, sizeof(ours));

        show(&text, rows[i].value);
        assert_string_equal(ours, rows[i].expected);
    }
}

#define CHECK_SHOWN(show, rows) check_shown(show, rows, sizeof(rows) / sizeof(rows[0]))

static void sizes_are_shown_for_people(void **state)
{
    static const struct shown rows[] = {
        {0, "0 B"},
        {512, "512 B"},
        {1023, "1023 B"},
        {1024, "1 KiB"},
        {1536, "1.5 KiB"},
        {700 << 10, "700 KiB"},
        {(1 << 20) - 1, "1.0 MiB"},
        {1 << 20, "1.0 MiB"},
        {(1 << 20) + 512, "1.0 MiB"},
        {512 << 20, "512.0 MiB"},
        {(1ull << 30) - 1, "1.00 GiB"},
        {4ull << 30, "4.00 GiB"},
        {143771ull << 20, "140.40 GiB"},
        {(1ull << 40) - 1, "1.00 TiB"},
        {125ull << 40, "125.00 TiB"},
        {UINT64_MAX, "16777216.00 TiB"},
    };

    (void)state;
    CHECK_SHOWN(gos_text_bytes, rows);
}

static void gibibytes_are_rounded_half_up(void **state)
{
    static const struct shown rows[] = {
        {0, "0.0"},
        {1, "0.0"},
        {53687091, "0.0"},
        {53687092, "0.1"},
        {(1ull << 30) - 1, "1.0"},
        {143771ull << 20, "140.4"},
        {UINT64_MAX, "17179869184.0"},
    };

    (void)state;
    CHECK_SHOWN(gos_text_gib, rows);
}

static void durations_are_shown_for_people(void **state)
{
    static const struct shown rows[] = {
        {0, "0 ns"},
        {999, "999 ns"},
        {85000, "85 us"},
        {85499, "85 us"},
        {85500, "86 us"},
        {999499, "999 us"},
        {999500, "1 ms"},
        {412000000, "412 ms"},
        {999500000, "1.0 s"},
        {1249999999, "1.2 s"},
        {1250000000, "1.3 s"},
        {75000000000, "75.0 s"},
        {UINT64_MAX, "18446744073.7 s"},
    };

    (void)state;
    CHECK_SHOWN(gos_text_duration, rows);
}

static void times_agree_with_the_c_library(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t wall_ns = random_number() % (300ull * 366 * 86400 * 1000000000u);
        time_t seconds = (time_t)(wall_ns / 1000000000u);
        struct gos_text text = gos_text_on(ours, sizeof(ours));
        struct tm parts;

        gos_text_time(&text, wall_ns);
        strftime(theirs, sizeof(theirs), "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&seconds, &parts));
        assert_string_equal(ours, theirs);
    }
}

struct parsed {
    const char *string;
    int error;
    uint64_t value;
};

static void check_parsed(int (*parse)(const char *, uint64_t *), const struct parsed *rows,
                         size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t value = 4711;
        int error = parse(rows[i].string, &value);

        if (error != rows[i].error)
            fail_msg("'%s' gave %d", rows[i].string, error);
        assert_int_equal(value, error ? 4711 : rows[i].value);
    }
}

#define CHECK_PARSED(parse, rows) check_parsed(parse, rows, sizeof(rows) / sizeof(rows[0]))

static void sizes_are_parsed(void **state)
{
    static const struct parsed rows[] = {
        {"0", 0, 0},
        {"512", 0, 512},
        {"512B", 0, 512},
        {"4k", 0, 4096},
        {"4 KB", 0, 4096},
        {"4KiB", 0, 4096},
        {"4kIb", 0, 4096},
        {"3M", 0, 3 << 20},
        {"3 mib", 0, 3 << 20},
        {"2GB", 0, 2ull << 30},
        {"1T", 0, 1ull << 40},
        {"18446744073709551615", 0, UINT64_MAX},
        {"18446744073709551616", -ERANGE, 0},
        {"99999999999999999999999", -ERANGE, 0},
        {"16777215T", 0, 16777215ull << 40},
        {"16777216T", -ERANGE, 0},
        {"", -EINVAL, 0},
        {" 1", -EINVAL, 0},
        {"-1", -EINVAL, 0},
        {"+1", -EINVAL, 0},
        {"1 ", -EINVAL, 0},
        {"1  K", -EINVAL, 0},
        {"1K ", -EINVAL, 0},
        {"1Ki", -EINVAL, 0},
        {"1.5G", -EINVAL, 0},
        {"0x10", -EINVAL, 0},
        {"G", -EINVAL, 0},
        {"1P", -EINVAL, 0},
    };

    (void)state;
    CHECK_PARSED(gos_text_parse_bytes, rows);
}

static void durations_are_parsed(void **state)
{
    static const struct parsed rows[] = {
        {"0", 0, 0},
        {"10", 0, 10000000000},
        {"10s", 0, 10000000000},
        {"250ms", 0, 250000000},
        {"1.5s", 0, 1500000000},
        {"0.25", 0, 250000000},
        {"85us", 0, 85000},
        {"7ns", 0, 7},
        {"7.9ns", 0, 7},
        {"2m", 0, 120000000000},
        {"1.5h", 0, 5400000000000},
        {"1H", 0, 3600000000000},
        {"0.9999999999999s", 0, 999999999},
        {"5124095h", 0, 18446742000000000000u},
        {"5124096h", -ERANGE, 0},
        {"18446744073709551616ns", -ERANGE, 0},
        {"", -EINVAL, 0},
        {"s", -EINVAL, 0},
        {".5s", -EINVAL, 0},
        {"1.s", -EINVAL, 0},
        {"1.5.5s", -EINVAL, 0},
        {"-1s", -EINVAL, 0},
        {"1d", -EINVAL, 0},
        {"1 s", -EINVAL, 0},
        {"1s ", -EINVAL, 0},
    };

    (void)state;
    CHECK_PARSED(gos_text_parse_duration, rows);
}

static void words_are_compared_without_case(void **state)
{
    (void)state;
    assert_true(gos_text_is_word("Trim,sync", 4, "trim"));
    assert_false(gos_text_is_word("Trim,sync", 5, "trim"));
    assert_false(gos_text_is_word("tri", 3, "trim"));
    assert_false(gos_text_is_word("trims", 5, "trim"));
    assert_true(gos_text_is_word("", 0, ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_look_as_printf_writes_them),
        cmocka_unit_test(extreme_integers_look_as_printf_writes_them),
        cmocka_unit_test(strings_look_as_printf_writes_them),
        cmocka_unit_test(pointers_percent_and_plain_text_pass),
        cmocka_unit_test(a_precision_protects_text_without_an_end),
        cmocka_unit_test(a_missing_string_is_shown_not_followed),
        cmocka_unit_test(text_is_cut_at_every_size_and_never_beyond),
        cmocka_unit_test(a_buffer_of_no_size_is_left_alone),
        cmocka_unit_test(sizes_are_shown_for_people),
        cmocka_unit_test(gibibytes_are_rounded_half_up),
        cmocka_unit_test(durations_are_shown_for_people),
        cmocka_unit_test(times_agree_with_the_c_library),
        cmocka_unit_test(sizes_are_parsed),
        cmocka_unit_test(durations_are_parsed),
        cmocka_unit_test(words_are_compared_without_case),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
