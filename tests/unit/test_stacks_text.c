/* Python strings, read from memory laid out as CPython 3.12 does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../src/track/python_guard.h"
#include "../../src/track/python_layout.h"
#include "../../src/track/python_text.h"

enum { ASCII = 1u << 6, COMPACT = 1u << 5 };

struct string {
    uint64_t header[2];
    uint64_t length;
    uint64_t hash;
    uint32_t state;
    uint32_t padding;
    char ascii[16];     /* at 40 */
    char compact[4000]; /* at 56 */
};

static struct gos_python_layout layout;

static int use_layout(void **state)
{
    (void)state;
    return gos_python_layout_find(0x030c01f0, NULL, &layout) != NULL;
}

static struct string string_of(unsigned kind, const void *data, size_t length)
{
    struct string string = {.length = length, .hash = UINT64_MAX, .state = COMPACT | kind << 2};
    memcpy(string.compact, data, length * kind);
    return string;
}

static const char *text_of(const struct string *string)
{
    return gos_python_text(&layout, (uintptr_t)string);
}

static void ascii_is_taken_as_it_is(void **state)
{
    (void)state;
    struct string string = {.length = 5, .state = COMPACT | ASCII | 1u << 2, .ascii = "hello"};
    assert_string_equal(text_of(&string), "hello");
}

/* In a byte of its own, as free-threaded builds have it from 3.14 on. */
static void interned_in_a_byte_is_no_part_of_the_kind(void **state)
{
    (void)state;
    struct string string = {
        .length = 5, .state = (COMPACT | ASCII | 1u << 2) << 6 | 3, .ascii = "hello"};
    assert_string_equal(text_of(&string), "hello");
    string.state = (COMPACT | ASCII | 1u << 2) | 3;
    assert_string_equal(text_of(&string), "hello");
}

static void wide_characters_become_utf8(void **state)
{
    (void)state;
    const uint8_t latin[] = {'c', 'a', 'f', 0xe9};
    const uint16_t two[] = {0x65e5, 'x', 0x7ff};
    const uint32_t four[] = {0x1f40d, 0x10ffff, 'y'};
    struct string strings[] = {string_of(1, latin, 4), string_of(2, two, 3), string_of(4, four, 3)};
    assert_string_equal(text_of(&strings[0]), "caf\xc3\xa9");
    assert_string_equal(text_of(&strings[1]), "\xe6\x97\xa5x\xdf\xbf");
    assert_string_equal(text_of(&strings[2]), "\xf0\x9f\x90\x8d\xf4\x8f\xbf\xbfy");
}

static void lone_surrogates_are_replaced(void **state)
{
    (void)state;
    const uint16_t path[] = {'/', 0xdcff, 'a'};
    struct string string = string_of(2, path, 3);
    assert_string_equal(text_of(&string), "/\xef\xbf\xbd"
                                          "a");
}

static void long_text_is_cut_between_characters(void **state)
{
    (void)state;
    uint16_t data[1500];
    for (size_t i = 0; i < 1500; i++)
        data[i] = 0x65e5;
    struct string string = string_of(2, data, 1500);
    size_t length = strlen(text_of(&string));
    assert_true(length > 1000 && length <= 1024);
    assert_int_equal(length % 3, 0);
}

static void what_is_not_compact_or_absent_is_a_question_mark(void **state)
{
    (void)state;
    struct string old = {.length = 3, .state = 1u << 2};
    struct string odd = {.length = 3, .state = COMPACT | 3u << 2};
    assert_string_equal(text_of(&old), "?");
    assert_string_equal(text_of(&odd), "?");
    assert_string_equal(gos_python_text(&layout, 0), "?");
}

/* --- guards: code objects laid out as CPython 3.10 does -----------------------------------------
 */

struct code {
    char before_firstline[40];
    uint32_t firstline;
    char before_names[60];
    const struct string *file;
    const struct string *name;
    uintptr_t lines;
};

static uint32_t guard_of(const struct code *code)
{
    struct gos_python_layout old;
    assert_null(gos_python_layout_find(0x030a0df0, NULL, &old));
    return gos_python_guard(&old, (uintptr_t)code);
}

static struct string name_of(uint64_t hash)
{
    return (struct string){.hash = hash, .length = 1, .state = COMPACT | ASCII | 1u << 2};
}

/* 3.10 keeps ASCII at 48. */
static struct string file_of(const char *name)
{
    struct string file = name_of(UINT64_MAX);
    file.length = strlen(name);
    memcpy((char *)&file + 48, name, strlen(name));
    return file;
}

static void guard_tells_names_files_and_first_lines_apart(void **state)
{
    (void)state;
    struct string name = name_of(111), other_name = name_of(112);
    struct string file = file_of("/tmp/cells/cell-17.py"),
                  other_file = file_of("/tmp/cells/cell-18.py");
    struct string hashed = file_of("/tmp/cells/cell-17.py");
    hashed.hash = 5;
    struct code code = {.firstline = 3, .file = &file, .name = &name, .lines = 64};
    struct code same = code, variants[] = {code, code, code, code, code};
    variants[0].firstline = 4;
    variants[1].name = &other_name;
    variants[2].file = &other_file;
    variants[3].lines = 128;
    variants[4].file = &hashed;
    assert_int_equal(guard_of(&code), guard_of(&same));
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
        assert_int_not_equal(guard_of(&code), guard_of(&variants[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ascii_is_taken_as_it_is),
        cmocka_unit_test(interned_in_a_byte_is_no_part_of_the_kind),
        cmocka_unit_test(wide_characters_become_utf8),
        cmocka_unit_test(lone_surrogates_are_replaced),
        cmocka_unit_test(long_text_is_cut_between_characters),
        cmocka_unit_test(what_is_not_compact_or_absent_is_a_question_mark),
        cmocka_unit_test(guard_tells_names_files_and_first_lines_apart),
    };
    return cmocka_run_group_tests(tests, use_layout, NULL);
}
