/* Tags: nesting, limits, and their part in what a site is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "../../src/base/memory.h"
#include "../../src/base/options.h"
#include "../../src/track/site.h"
#include "../../src/track/tag.h"
#include "../../src/track/unwind.h"

static int start_empty(void **state)
{
    (void)state;
    while (gos_tags.depth)
        gos_tag_pop();
    gos_memory_reset_after_fork();
    gos_site_reset_after_fork();
    return 0;
}

static void innermost_tag_counts(void **state)
{
    (void)state;
    assert_null(gos_tag_current());
    gos_tag_push("model");
    gos_tag_push("kv-cache");
    assert_string_equal(gos_tag_current(), "kv-cache");
    gos_tag_pop();
    assert_string_equal(gos_tag_current(), "model");
    gos_tag_pop();
    assert_null(gos_tag_current());
}

static void pop_without_push_does_nothing(void **state)
{
    (void)state;
    gos_tag_pop();
    gos_tag_pop();
    gos_tag_push("one");
    assert_string_equal(gos_tag_current(), "one");
    gos_tag_pop();
    gos_tag_pop();
    assert_null(gos_tag_current());
}

static void tags_beyond_the_limit_are_counted_only(void **state)
{
    char name[16];

    (void)state;
    for (int i = 0; i < GOS_TAG_NEST_MAX + 4; i++) {
        snprintf(name, sizeof name, "t%d", i);
        gos_tag_push(name);
    }
    assert_string_equal(gos_tag_current(), "t15");
    for (int i = 0; i < 4; i++)
        gos_tag_pop();
    assert_string_equal(gos_tag_current(), "t15");
    gos_tag_pop();
    assert_string_equal(gos_tag_current(), "t14");
}

static void nameless_push_repeats_the_tag_around_it(void **state)
{
    (void)state;
    gos_tag_push(NULL);
    assert_null(gos_tag_current());
    gos_tag_push("named");
    gos_tag_push("");
    assert_string_equal(gos_tag_current(), "named");
    gos_tag_pop();
    gos_tag_pop();
    assert_null(gos_tag_current());
    assert_int_equal(gos_tags.depth, 1);
}

static void long_name_is_cut_between_characters(void **state)
{
    char name[80];

    (void)state;
    memset(name, 'a', sizeof name);
    name[79] = '\0';
    gos_tag_push(name);
    assert_int_equal(strlen(gos_tag_current()), GOS_TAG_NAME_MAX);
    strcpy(name + 62, "\xe2\x82\xac"); /* three bytes of which two do not fit */
    gos_tag_push(name);
    assert_int_equal(strlen(gos_tag_current()), 62);
}

static uint32_t site_of(uintptr_t address, const char *tag)
{
    struct gos_stack stack = {.native_count = 1, .native = {address}, .tag = tag};
    return gos_site_intern(&stack);
}

static void same_stack_under_another_tag_is_another_site(void **state)
{
    static const char one[] = "one", two[] = "two";
    uint32_t plain = site_of(64, NULL), tagged = site_of(64, one);

    (void)state;
    assert_int_not_equal(plain, tagged);
    assert_int_not_equal(tagged, site_of(64, two));
    assert_int_equal(tagged, site_of(64, one));
    assert_int_equal(plain, site_of(64, NULL));
    assert_null(gos_site_get(plain)->tag);
    assert_string_equal(gos_site_get(tagged)->tag, "one");
    assert_int_equal(gos_site_get(tagged)->native_count, 1);
}

static void tag_without_frames_is_a_site(void **state)
{
    struct gos_stack stack = {.tag = "alone"};
    uint32_t id = gos_site_intern(&stack);

    (void)state;
    assert_int_not_equal(id, 0);
    assert_string_equal(gos_site_get(id)->tag, "alone");
    assert_int_equal(gos_site_get(id)->native_count + gos_site_get(id)->python_count, 0);
}

static void captured_site_has_the_tag_of_its_thread(void **state)
{
    (void)state;
    gos_options.stack = GOS_STACK_OFF;
    assert_int_equal(gos_unwind_site(), 0);
    gos_tag_push("phase");
    uint32_t id = gos_unwind_site();
    assert_int_not_equal(id, 0);
    assert_string_equal(gos_site_get(id)->tag, "phase");
    gos_tag_pop();
    assert_int_equal(gos_unwind_site(), 0);
}

#define TEST(test) cmocka_unit_test_setup(test, start_empty)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(innermost_tag_counts),
        TEST(pop_without_push_does_nothing),
        TEST(tags_beyond_the_limit_are_counted_only),
        TEST(nameless_push_repeats_the_tag_around_it),
        TEST(long_name_is_cut_between_characters),
        TEST(same_stack_under_another_tag_is_another_site),
        TEST(tag_without_frames_is_a_site),
        TEST(captured_site_has_the_tag_of_its_thread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
