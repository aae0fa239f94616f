/* libc's functions are found without asking anybody who could be somebody else. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../src/base/libc_symbol.h"

static void libc_symbol_is_what_dlsym_of_libc_says(void **state)
{
    static const char *const names[] = {"dlsym", "dlvsym", "dl_iterate_phdr", "mmap"};
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);

    (void)state;
    assert_non_null(libc);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        void *wanted = dlsym(libc, names[i]);
        if (wanted != NULL) /* dlsym was in libdl before glibc 2.34 */
            assert_int_equal(gos_libc_symbol(names[i]), (uintptr_t)wanted);
    }
    assert_true(gos_libc_symbol("dlsym") != 0);
}

static void libc_symbol_of_an_unknown_name_is_zero(void **state)
{
    (void)state;
    assert_int_equal(gos_libc_symbol("no_such_function_anywhere"), 0);
    assert_int_equal(gos_libc_symbol(""), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(libc_symbol_is_what_dlsym_of_libc_says),
        cmocka_unit_test(libc_symbol_of_an_unknown_name_is_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
