/* Which Python frames are kept of a stack that is too deep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../src/track/python_cut.h"

/* Frame i of a stack of `count`, newest first, has code i + 1; 0 is the mark. */
static void cut_of(struct gos_python_ref *refs, uint32_t max, uint32_t count)
{
    struct gos_python_further further = {.count = 0};
    for (uint32_t i = 0; i < count && further.count < GOS_PYTHON_FURTHER_MAX; i++) {
        struct gos_python_ref ref = {.code = i + 1};
        if (i < max)
            refs[i] = ref;
        else
            gos_python_further_add(&further, &ref);
    }
    gos_python_cut(refs, max, &further);
}

static void check(const struct gos_python_ref *refs, uint32_t max, uint32_t count, uint32_t outer)
{
    uint32_t newest = max - 1 - outer;
    for (uint32_t i = 0; i < newest; i++)
        assert_int_equal(refs[i].code, i + 1);
    assert_int_equal(refs[newest].code, 0);
    for (uint32_t i = 0; i < outer; i++)
        assert_int_equal(refs[max - 1 - i].code, count - i);
}

static void newest_and_outermost_are_kept_with_a_mark_between(void **state)
{
    static const uint32_t depths[][2] = {{64, 8}, {40, 8}, {32, 8}, {31, 7}, {12, 3}, {4, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++) {
        uint32_t max = depths[i][0];
        for (uint32_t count = max + 1; count < max + GOS_PYTHON_FURTHER_MAX; count++) {
            struct gos_python_ref refs[GOS_FRAME_MAX];
            cut_of(refs, max, count);
            check(refs, max, count, depths[i][1]);
        }
    }
}

static void of_an_endless_stack_only_the_newest_are_kept(void **state)
{
    struct gos_python_ref refs[GOS_FRAME_MAX];
    (void)state;
    cut_of(refs, 40, 40 + GOS_PYTHON_FURTHER_MAX);
    check(refs, 40, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(newest_and_outermost_are_kept_with_a_mark_between),
        cmocka_unit_test(of_an_endless_stack_only_the_newest_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
