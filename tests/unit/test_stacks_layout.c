/* Which layouts of CPython are known, and what the interpreter's own word is worth. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../src/track/python_layout.h"

#define HEX(minor) (0x03000000u | (uint32_t)(minor) << 16 | 0x00f0u)

static struct gos_python_layout layout_of(uint32_t version, const void *runtime)
{
    struct gos_python_layout layout;
    memset(&layout, 0xff, sizeof layout);
    assert_null(gos_python_layout_find(version, runtime, &layout));
    return layout;
}

static void every_version_from_3_8_to_3_14_is_known(void **state)
{
    (void)state;
    for (unsigned minor = 8; minor <= 14; minor++) {
        struct gos_python_layout layout = layout_of(HEX(minor), NULL);
        assert_int_equal(layout.has_frame_objects, minor <= 10);
        assert_int_equal(layout.has_cframe, minor == 11 || minor == 12);
        assert_int_equal(layout.lines, minor <= 9    ? GOS_PYTHON_LINES_LNOTAB
                                       : minor == 10 ? GOS_PYTHON_LINES_RANGES
                                                     : GOS_PYTHON_LINES_LOCATIONS);
    }
}

static void other_versions_are_refused_by_name(void **state)
{
    (void)state;
    struct gos_python_layout layout;
    assert_string_equal(gos_python_layout_find(HEX(15), NULL, &layout),
                        "CPython 3.15 is not known");
    assert_string_equal(gos_python_layout_find(HEX(7), NULL, &layout), "CPython 3.7 is not known");
    assert_string_equal(gos_python_layout_find(0x04000000, NULL, &layout),
                        "CPython 4.0 is not known");
    assert_non_null(gos_python_layout_find(0x02071200, NULL, &layout));
}

struct runtime {
    char cookie[8];
    uint64_t words[99];
};

static struct runtime runtime_of(uint32_t version)
{
    struct runtime runtime = {.cookie = {'x', 'd', 'e', 'b', 'u', 'g', 'p', 'y'}};
    runtime.words[0] = version;
    return runtime;
}

static void self_description_goes_before_the_table(void **state)
{
    (void)state;
    struct runtime runtime = runtime_of(HEX(13));
    memset(&runtime.words[2], 0, sizeof runtime - 24);
    runtime.words[184 / 8 - 1] = 80;  /* thread state: current frame */
    runtime.words[232 / 8 - 1] = 16;  /* frame: previous */
    runtime.words[344 / 8 - 1] = 216; /* code: instructions */
    struct gos_python_layout layout = layout_of(HEX(13), &runtime);
    assert_int_equal(layout.thread_frame, 80);
    assert_int_equal(layout.frame_previous, 16);
    assert_int_equal(layout.code_instructions, 216);
}

static void nonsense_in_the_description_leaves_the_table(void **state)
{
    (void)state;
    struct runtime runtime = runtime_of(HEX(14));
    memset(&runtime.words[2], 0xff, sizeof runtime - 24);
    struct gos_python_layout described = layout_of(HEX(14), &runtime);
    struct gos_python_layout table = layout_of(HEX(14), NULL);
    assert_memory_equal(&described, &table, sizeof table);
}

static void description_of_another_version_is_not_believed(void **state)
{
    (void)state;
    struct runtime runtime = runtime_of(HEX(12));
    runtime.words[184 / 8 - 1] = 80;
    assert_int_equal(layout_of(HEX(13), &runtime).thread_frame, 72);
    runtime = runtime_of(HEX(13));
    runtime.words[184 / 8 - 1] = 80;
    runtime.cookie[0] = 'y';
    assert_int_equal(layout_of(HEX(13), &runtime).thread_frame, 72);
}

static void without_a_larger_header_objects_are_as_they_always_were(void **state)
{
    (void)state;
    for (unsigned minor = 8; minor <= 14; minor++) {
        struct gos_python_layout layout = layout_of(HEX(minor), NULL);
        assert_false(layout.is_free_threaded || layout.has_copies);
        assert_int_equal(layout.object_type, 8);
        assert_int_equal(layout.object_size, 16);
        assert_int_equal(layout.bytes_data, 32);
        assert_int_equal(layout.text_length, 16);
        assert_int_equal(layout.text_hash, 24);
        assert_int_equal(layout.text_state, 32);
    }
}

/* What a build of 3.13.5 with --disable-gil says of itself. */
static const struct {
    size_t position;
    uint64_t word;
} said_by_3_13t[] = {{16, 1},   {184, 72},  {232, 8},   {240, 0},   {248, 56},
                     {264, 70}, {280, 128}, {288, 136}, {296, 144}, {304, 152},
                     {312, 84}, {344, 216}, {352, 32}};

static void free_threaded_build_says_where_its_objects_lie(void **state)
{
    (void)state;
    struct runtime runtime = runtime_of(HEX(13));
    for (size_t i = 0; i < sizeof said_by_3_13t / sizeof said_by_3_13t[0]; i++)
        runtime.words[said_by_3_13t[i].position / 8 - 1] = said_by_3_13t[i].word;
    struct gos_python_layout layout = layout_of(HEX(13), &runtime);
    assert_true(layout.is_free_threaded);
    assert_false(layout.has_copies);
    assert_int_equal(layout.object_type, 24);
    assert_int_equal(layout.object_size, 32);
    assert_int_equal(layout.bytes_data, 48);
    assert_int_equal(layout.text_length, 32);
    assert_int_equal(layout.text_hash, 40);
    assert_int_equal(layout.text_state, 48);
    assert_int_equal(layout.text_ascii, 56);
    assert_int_equal(layout.text_compact, 72);
    assert_int_equal(layout.code_name, 136);
    assert_int_equal(layout.code_version, 108);
    assert_int_equal(layout.code_instructions, 216);
}

static void free_threaded_3_14_has_copies_of_its_bytecode(void **state)
{
    (void)state;
    struct runtime runtime = runtime_of(HEX(14));
    runtime.words[1] = 1;
    runtime.words[400 / 8 - 1] = 32;
    struct gos_python_layout layout = layout_of(HEX(14), &runtime);
    assert_true(layout.is_free_threaded && layout.has_copies);
    assert_int_equal(layout.code_version, 108);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_version_from_3_8_to_3_14_is_known),
        cmocka_unit_test(other_versions_are_refused_by_name),
        cmocka_unit_test(self_description_goes_before_the_table),
        cmocka_unit_test(nonsense_in_the_description_leaves_the_table),
        cmocka_unit_test(description_of_another_version_is_not_believed),
        cmocka_unit_test(without_a_larger_header_objects_are_as_they_always_were),
        cmocka_unit_test(free_threaded_build_says_where_its_objects_lie),
        cmocka_unit_test(free_threaded_3_14_has_copies_of_its_bytecode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
