/* Line tables of CPython, by hand-made tables; real ones are compared in tests/integration. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../src/track/python_lines.h"

#define LINE(format, table, first, offset)                                                         \
    gos_python_line(GOS_PYTHON_LINES_##format, (const uint8_t *)(table), sizeof(table) - 1, first, \
                    offset)

static void lnotab_change_holds_from_its_address_on(void **state)
{
    (void)state;
    const char table[] = "\x06\x01\x08\x02";
    assert_int_equal(LINE(LNOTAB, table, 10, 0), 10);
    assert_int_equal(LINE(LNOTAB, table, 10, 5), 10);
    assert_int_equal(LINE(LNOTAB, table, 10, 6), 11);
    assert_int_equal(LINE(LNOTAB, table, 10, 13), 11);
    assert_int_equal(LINE(LNOTAB, table, 10, 14), 13);
    assert_int_equal(LINE(LNOTAB, table, 10, 4000), 13);
}

static void lnotab_lines_go_back_and_far(void **state)
{
    (void)state;
    /* 255 bytes without a line, then 45 more and +127 +73, then back by 5. */
    const char table[] = "\xff\x00\x2d\x7f\x00\x49\x02\xfb";
    assert_int_equal(LINE(LNOTAB, table, 1, 299), 1);
    assert_int_equal(LINE(LNOTAB, table, 1, 300), 201);
    assert_int_equal(LINE(LNOTAB, table, 1, 302), 196);
}

static void ranges_change_holds_within_its_range(void **state)
{
    (void)state;
    const char table[] = "\x04\x01\x06\x02\x02\xff";
    assert_int_equal(LINE(RANGES, table, 10, 0), 11);
    assert_int_equal(LINE(RANGES, table, 10, 2), 11);
    assert_int_equal(LINE(RANGES, table, 10, 4), 13);
    assert_int_equal(LINE(RANGES, table, 10, 10), 12);
}

static void ranges_without_a_line_give_the_first(void **state)
{
    (void)state;
    const char table[] = "\x02\x05\x04\x80\x02\x01";
    assert_int_equal(LINE(RANGES, table, 10, 0), 15);
    assert_int_equal(LINE(RANGES, table, 10, 2), 10);
    assert_int_equal(LINE(RANGES, table, 10, 6), 16);
}

static void locations_of_every_kind_are_read(void **state)
{
    (void)state;
    /*
     * Two units on the first line (short form), one unit a line further (columns
     * follow), one unit 70 lines further (no columns), one unit back by 3 (long
     * form), one unit without a line.
     */
    const char table[] = "\x81\x11"
                         "\xd8\x01\x05"
                         "\xe8\x4c\x02"
                         "\xf0\x07\x00\x01\x02"
                         "\xf8";
    assert_int_equal(LINE(LOCATIONS, table, 10, 0), 10);
    assert_int_equal(LINE(LOCATIONS, table, 10, 2), 10);
    assert_int_equal(LINE(LOCATIONS, table, 10, 4), 11);
    assert_int_equal(LINE(LOCATIONS, table, 10, 6), 81);
    assert_int_equal(LINE(LOCATIONS, table, 10, 8), 78);
    assert_int_equal(LINE(LOCATIONS, table, 10, 10), 10);
}

static void empty_table_gives_the_first_line(void **state)
{
    (void)state;
    assert_int_equal(LINE(LNOTAB, "", 7, 0), 7);
    assert_int_equal(LINE(RANGES, "", 7, 0), 7);
    assert_int_equal(LINE(LOCATIONS, "", 7, 0), 7);
}

/* Under the address sanitizer a read past the end would be seen. */
static void damaged_tables_are_read_within_their_bounds(void **state)
{
    (void)state;
    uint8_t table[64];
    uint32_t random = 1;
    for (int round = 0; round < 20000; round++) {
        size_t bytes = random % sizeof table;
        for (size_t i = 0; i < bytes; i++) {
            random = random * 1664525u + 1013904223u;
            table[i] = (uint8_t)(random >> 24);
        }
        random = random * 1664525u + 1013904223u;
        for (int format = GOS_PYTHON_LINES_LNOTAB; format <= GOS_PYTHON_LINES_LOCATIONS; format++) {
            uint8_t *exact = test_malloc(bytes + 1);
            for (size_t i = 0; i < bytes; i++)
                exact[i] = table[i];
            int line = gos_python_line((enum gos_python_lines)format, exact, bytes, 1, 1u << 20);
            assert_true(line >= 0);
            test_free(exact);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lnotab_change_holds_from_its_address_on),
        cmocka_unit_test(lnotab_lines_go_back_and_far),
        cmocka_unit_test(ranges_change_holds_within_its_range),
        cmocka_unit_test(ranges_without_a_line_give_the_first),
        cmocka_unit_test(locations_of_every_kind_are_read),
        cmocka_unit_test(empty_table_gives_the_first_line),
        cmocka_unit_test(damaged_tables_are_read_within_their_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
