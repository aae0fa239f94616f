#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>

#include "../../src/base/residence.h"

static void an_object_that_stays_keeps_its_stamp(void **state)
{
    (void)state;
    uint64_t stamp = gos_residence_stamp((const void *)&gos_residence_stamp);

    assert_int_not_equal(stamp, 0);
    assert_int_equal(gos_residence_stamp((const void *)&gos_residence_stamp), stamp);
}

static void an_object_that_was_unloaded_has_another_stamp(void **state)
{
    (void)state;
    void *library = dlopen("libBrokenLocale.so.1", RTLD_NOW);
    if (!library)
        skip();
    const void *function = dlsym(library, "__ctype_get_mb_cur_max");
    assert_non_null(function);
    uint64_t stamp = gos_residence_stamp(function);
    assert_int_not_equal(stamp, 0);

    dlclose(library);
    assert_int_not_equal(gos_residence_stamp(function), stamp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_that_stays_keeps_its_stamp),
        cmocka_unit_test(an_object_that_was_unloaded_has_another_stamp),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
