#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/base/os.h"
#include "../../src/report/emitter.h"
#include "../../src/report/utf8.h"

static struct gos_scratch scratch;
static struct gos_sink sink;
static struct gos_emitter emitter;
static struct gos_os real_os;

static int begin(void **state)
{
    (void)state;
    memset(&scratch, 0, sizeof scratch);
    real_os = gos_os;
    return 0;
}

static int end(void **state)
{
    (void)state;
    gos_os = real_os;
    gos_scratch_release(&scratch);
    return 0;
}

static void start(enum gos_form form)
{
    gos_sink_open(&sink, &scratch, -1, 1u << 20);
    gos_emitter_init(&emitter, form, &sink);
}

/* What came out, terminated; valid until the next call. */
static const char *output(void)
{
    static char buffer[1 << 16];
    assert_int_equal(gos_sink_finish(&sink), 0);
    assert_true(sink.used < sizeof buffer);
    memcpy(buffer, sink.data, sink.used);
    buffer[sink.used] = '\0';
    return buffer;
}

/* --- strings --- */

static const char *emitted_string(const char *value)
{
    start(GOS_FORM_JSON);
    gos_emitter_array(&emitter, NULL);
    gos_emitter_item(&emitter, value);
    gos_emitter_end(&emitter);
    return output();
}

static void json_escapes_as_the_standard_says(void **state)
{
    (void)state;
    static const char *const table[][2] = {
        {"plain", "plain"},
        {"\"", "\\\""},
        {"\\", "\\\\"},
        {"/", "/"},
        {"\b\f\n\r\t", "\\b\\f\\n\\r\\t"},
        {"\x01\x1f", "\\u0001\\u001f"},
        {"\x7f", "\\u007f"},
        {"\xc3\xa9", "\xc3\xa9"},
        {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
        {"\xff", "\xef\xbf\xbd"},
        {"a\x80z", "a\xef\xbf\xbdz"},
        {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},                                 /* overlong '/' */
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},                 /* surrogate */
        {"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* too large */
        {"\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd"},                                 /* cut short */
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char expected[128];
        snprintf(expected, sizeof expected, "[\n \"%s\"\n]\n", table[i][1]);
        assert_string_equal(emitted_string(table[i][0]), expected);
    }
}

static void random_bytes(char *buffer, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        int kind = rand() % 4;
        buffer[i] = (char)(kind == 0 ? 0x80 + rand() % 0x80 : 1 + rand() % 0x7f);
    }
    buffer[length] = '\0';
}

static bool is_utf8(const char *s)
{
    for (size_t length = 1; *s; s += length) {
        length = gos_utf8_length(s);
        if (length == 0)
            return false;
    }
    return true;
}

/* Whatever goes in, a strict parser reads it; and what was UTF-8 comes back unchanged. */
static void any_bytes_give_json_that_parses(void **state)
{
    (void)state;
    srand(20261130);
    for (int i = 0; i < 20000; i++) {
        char value[64];
        random_bytes(value, (size_t)(rand() % 60));
        json_t *parsed = json_loads(emitted_string(value), 0, NULL);
        assert_non_null(parsed);
        const char *back = json_string_value(json_array_get(parsed, 0));
        if (is_utf8(value))
            assert_string_equal(back, value);
        else
            assert_non_null(strstr(back, "\xef\xbf\xbd"));
        json_decref(parsed);
        end(NULL);
        begin(NULL);
    }
}

static void text_has_no_control_characters(void **state)
{
    (void)state;
    start(GOS_FORM_TEXT);
    gos_emitter_item(&emitter, "a\x1b[31m\r\n\x7f\xc2\x9b"
                               "z");
    assert_string_equal(output(), "  - a?[31m????z\n");
}

/* --- the same calls, two forms --- */

static void describe(void)
{
    static const struct gos_field fields[] = {
        {"name", "name", -8}, {"bytes", "size", 10}, {NULL, "GiB", 5}, {"note", NULL, 0}};
    gos_emitter_object(&emitter, NULL);
    gos_emitter_heading(&emitter, "THINGS %d", 1);
    gos_emitter_titles(&emitter, fields, 4);
    gos_emitter_array(&emitter, "things");
    for (int i = 0; i < 2; i++) {
        gos_emitter_row(&emitter, NULL);
        gos_emitter_string(&emitter, &fields[0], i ? "two" : "one");
        gos_emitter_bytes(&emitter, &fields[1], i ? 1u << 30 : 512);
        gos_emitter_string(&emitter, &fields[2], i ? "1.0" : "0.0");
        gos_emitter_string(&emitter, &fields[3], NULL);
        gos_emitter_row_end(&emitter);
    }
    gos_emitter_end(&emitter);
    gos_emitter_bool(&emitter, GOS_FIELD("done", "done"), true);
    gos_emitter_object(&emitter, "nothing");
    gos_emitter_end(&emitter);
    gos_emitter_end(&emitter);
}

static void one_walk_gives_aligned_text(void **state)
{
    (void)state;
    start(GOS_FORM_TEXT);
    describe();
    assert_string_equal(output(), "\nTHINGS 1\n"
                                  "  name            size    GiB\n"
                                  "  one            512 B    0.0\n"
                                  "  two         1.00 GiB    1.0\n"
                                  "  done                          yes\n");
}

static void one_walk_gives_json(void **state)
{
    (void)state;
    start(GOS_FORM_JSON);
    describe();
    assert_string_equal(output(), "{\n"
                                  " \"things\": [\n"
                                  "  {\"name\": \"one\", \"bytes\": 512, \"note\": null},\n"
                                  "  {\"name\": \"two\", \"bytes\": 1073741824, \"note\": null}\n"
                                  " ],\n"
                                  " \"done\": true,\n"
                                  " \"nothing\": {}\n"
                                  "}\n");
}

static void rows_inside_a_row_stay_on_its_line(void **state)
{
    (void)state;
    start(GOS_FORM_JSON);
    gos_emitter_array(&emitter, NULL);
    gos_emitter_row(&emitter, NULL);
    gos_emitter_array(&emitter, "inner");
    gos_emitter_row(&emitter, NULL);
    gos_emitter_count(&emitter, GOS_FIELD("a", NULL), 1);
    gos_emitter_row_end(&emitter);
    gos_emitter_end(&emitter);
    gos_emitter_count(&emitter, GOS_FIELD("b", NULL), 2);
    gos_emitter_row_end(&emitter);
    gos_emitter_row(&emitter, NULL);
    gos_emitter_row_end(&emitter);
    gos_emitter_end(&emitter);
    assert_string_equal(output(), "[\n {\"inner\": [{\"a\": 1}], \"b\": 2},\n {}\n]\n");
}

static void integers_are_exact_to_the_last_digit(void **state)
{
    (void)state;
    start(GOS_FORM_JSON);
    gos_emitter_object(&emitter, NULL);
    gos_emitter_bytes(&emitter, GOS_FIELD("a", NULL), UINT64_MAX);
    gos_emitter_bytes(&emitter, GOS_FIELD("b", NULL), (UINT64_C(1) << 53) + 1);
    gos_emitter_signed(&emitter, GOS_FIELD("c", NULL), INT64_MIN);
    gos_emitter_bytes_if(&emitter, GOS_FIELD("d", NULL), false, 7);
    gos_emitter_end(&emitter);
    assert_string_equal(output(), "{\n \"a\": 18446744073709551615,\n \"b\": 9007199254740993,\n"
                                  " \"c\": -9223372036854775808,\n \"d\": null\n}\n");
}

static void nesting_too_deep_does_not_overflow(void **state)
{
    (void)state;
    start(GOS_FORM_JSON);
    for (int i = 0; i < 100; i++)
        gos_emitter_array(&emitter, NULL);
    assert_true(emitter.depth < GOS_EMITTER_DEPTH_MAX);
    for (int i = 0; i < 100; i++)
        gos_emitter_end(&emitter);
    assert_int_equal(emitter.depth, 0);
}

/* --- sink --- */

static unsigned maps_before_failure;

static void *map_that_fails(size_t bytes)
{
    if (maps_before_failure == 0)
        return NULL;
    maps_before_failure--;
    return real_os.map(bytes);
}

static char *read_back(int fd, size_t bytes)
{
    char *data = malloc(bytes + 1);
    assert_non_null(data);
    assert_int_equal(pread(fd, data, bytes + 1, 0), bytes);
    return data;
}

/* A file gets everything even when memory for the buffer runs out at any point. */
static void file_sink_loses_nothing_without_memory(void **state)
{
    (void)state;
    gos_os.map = map_that_fails;
    for (unsigned maps = 0; maps < 6; maps++) {
        FILE *file = tmpfile();
        assert_non_null(file);
        struct gos_scratch poor = {0};
        maps_before_failure = maps;
        gos_sink_open(&sink, &poor, fileno(file), GOS_SINK_FILE_BYTES);
        for (unsigned i = 0; i < 200000; i++)
            gos_sink_put(&sink, "0123456789" + i % 5, 5);
        assert_int_equal(gos_sink_finish(&sink), 0);
        char *data = read_back(fileno(file), 1000000);
        for (unsigned i = 0; i < 200000; i++)
            assert_memory_equal(data + 5u * i, "0123456789" + i % 5, 5);
        free(data);
        gos_scratch_release(&poor);
        fclose(file);
    }
}

static void memory_sink_says_when_it_is_full(void **state)
{
    (void)state;
    gos_sink_open(&sink, &scratch, -1, 1000);
    for (int i = 0; i < 100; i++)
        gos_sink_put(&sink, "twelve bytes", 12);
    assert_int_equal(gos_sink_finish(&sink), -EFBIG);
    assert_int_equal(sink.used, 1000);
}

static ssize_t write_to_full_disk(int fd, const void *data, size_t bytes)
{
    (void)fd;
    (void)data;
    (void)bytes;
    return -ENOSPC;
}

static void first_error_is_kept_and_later_output_dropped(void **state)
{
    (void)state;
    gos_os.write = write_to_full_disk;
    gos_sink_open(&sink, &scratch, 2, 1024);
    for (int i = 0; i < 1000; i++)
        gos_sink_put(&sink, "twelve bytes", 12);
    assert_int_equal(gos_sink_finish(&sink), -ENOSPC);
}

static int limit_of_1000(int resource, uint64_t *soft, uint64_t *hard)
{
    (void)resource;
    *soft = 1000;
    *hard = 1000;
    return 0;
}

/* The kernel would end the process with SIGXFSZ. */
static void file_size_limit_is_never_run_into(void **state)
{
    (void)state;
    FILE *file = tmpfile();
    assert_non_null(file);
    gos_os.limit = limit_of_1000;
    gos_sink_open(&sink, &scratch, fileno(file), 512);
    for (int i = 0; i < 100; i++)
        gos_sink_put(&sink, "twelve bytes", 12);
    assert_int_equal(gos_sink_finish(&sink), -EFBIG);
    assert_true(lseek(fileno(file), 0, SEEK_END) <= 1000);
    fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(json_escapes_as_the_standard_says, begin, end),
        cmocka_unit_test_setup_teardown(any_bytes_give_json_that_parses, begin, end),
        cmocka_unit_test_setup_teardown(text_has_no_control_characters, begin, end),
        cmocka_unit_test_setup_teardown(one_walk_gives_aligned_text, begin, end),
        cmocka_unit_test_setup_teardown(one_walk_gives_json, begin, end),
        cmocka_unit_test_setup_teardown(rows_inside_a_row_stay_on_its_line, begin, end),
        cmocka_unit_test_setup_teardown(integers_are_exact_to_the_last_digit, begin, end),
        cmocka_unit_test_setup_teardown(nesting_too_deep_does_not_overflow, begin, end),
        cmocka_unit_test_setup_teardown(file_sink_loses_nothing_without_memory, begin, end),
        cmocka_unit_test_setup_teardown(memory_sink_says_when_it_is_full, begin, end),
        cmocka_unit_test_setup_teardown(first_error_is_kept_and_later_output_dropped, begin, end),
        cmocka_unit_test_setup_teardown(file_size_limit_is_never_run_into, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
