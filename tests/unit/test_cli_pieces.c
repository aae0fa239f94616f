/* Small parts of the command: suggestions, large integers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/cli/json_file.h"
#include "../../src/cli/json_value.h"
#include "../../src/cli/suggest.h"

static json_t *read_text(const char *json)
{
    char path[] = "/tmp/test_cli_pieces.XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, json, strlen(json)), strlen(json));
    close(fd);
    json_t *root = gos_json_read(path);
    unlink(path);
    return root;
}

static void suggestion_is_the_nearest_word(void **state)
{
    (void)state;
    static const char *const words[] = {"run", "show", "options"};
    assert_string_equal(gos_suggest("shwo", words, 3), "show");
    assert_string_equal(gos_suggest("option", words, 3), "options");
    assert_null(gos_suggest("fragmentation", words, 3));
}

static void suggestion_copes_with_long_and_empty_words(void **state)
{
    (void)state;
    static char endless[300];
    const char *words[] = {endless, "run"};
    memset(endless, 'r', sizeof endless - 1);
    assert_string_equal(gos_suggest("rnu", words, 2), "run");
    assert_null(gos_suggest("", words, 1));
    assert_null(gos_suggest(endless, words, 0));
}

static void integer_beyond_two_to_the_63_is_kept(void **state)
{
    (void)state;
    json_t *root = read_text("{\"a\": 18446744073709551615, \"b\": [9223372036854775808, -5],"
                             " \"s\": \"18446744073709551615 \\\" 1\", \"c\": 1e300}");
    assert_non_null(root);
    assert_true(gos_value_number(root, "a", 0) == UINT64_MAX);
    assert_string_equal(gos_value_string(root, "s"), "18446744073709551615 \" 1");
    assert_int_equal(gos_value_number(root, "c", 7), 7);
    json_decref(root);
}

static void missing_values_are_what_the_caller_says(void **state)
{
    (void)state;
    json_t *root = read_text("{\"n\": null, \"i\": -3, \"t\": true}");
    assert_non_null(root);
    assert_int_equal(gos_value_number(root, "n", 42), 42);
    assert_int_equal(gos_value_number(NULL, "n", 42), 42);
    assert_false(gos_value_has(root, "n"));
    assert_int_equal(gos_value_signed(root, "i", 0), -3);
    assert_true(gos_value_bool(root, "t"));
    assert_null(gos_value_string(root, "i"));
    json_decref(root);
}

static void damaged_json_is_refused(void **state)
{
    (void)state;
    static const char *const damaged[] = {"",
                                          "{",
                                          "{\"a\": 1",
                                          "[1,]",
                                          "{\"a\": \"\xff\"}",
                                          "\"",
                                          "18446744073709551616111",
                                          "{\"a\": tru"};
    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++)
        assert_null(read_text(damaged[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(suggestion_is_the_nearest_word),
        cmocka_unit_test(suggestion_copes_with_long_and_empty_words),
        cmocka_unit_test(integer_beyond_two_to_the_63_is_kept),
        cmocka_unit_test(missing_values_are_what_the_caller_says),
        cmocka_unit_test(damaged_json_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
