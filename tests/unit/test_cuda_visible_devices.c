/* Which ordinal a device of NVML gets from CUDA_VISIBLE_DEVICES. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../src/cuda/visible_devices.h"

#define UUID "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"
#define HIDDEN (-1)

/* Of the device that NVML calls 1. */
static int ordinal_by(const char *visible)
{
    uint32_t ordinal = 77;

    return gos_visible_ordinal(visible, 1, UUID, &ordinal) ? (int)ordinal : HIDDEN;
}

static void without_the_variable_it_is_nvmls_number(void **state)
{
    (void)state;
    assert_int_equal(ordinal_by(NULL), 1);
}

static void place_in_the_list_is_the_ordinal(void **state)
{
    (void)state;
    assert_int_equal(ordinal_by("1"), 0);
    assert_int_equal(ordinal_by("0,1"), 1);
    assert_int_equal(ordinal_by(" 3, 2 ,1"), 2);
    assert_int_equal(ordinal_by("10,1"), 1);
}

static void uuid_or_its_beginning_names_a_device(void **state)
{
    (void)state;
    assert_int_equal(ordinal_by("0," UUID), 1);
    assert_int_equal(ordinal_by("GPU-1234,GPU-8932f937"), 1);
    assert_int_equal(ordinal_by("GPU-1234"), HIDDEN);
}

static void device_that_is_not_in_the_list_is_hidden(void **state)
{
    static const char *const values[] = {"", "0", "0,2", "11", "1x", "GPU-", ","};

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        assert_int_equal(ordinal_by(values[i]), HIDDEN);
}

static void list_ends_at_what_names_no_device(void **state)
{
    (void)state;
    assert_int_equal(ordinal_by("0,-1,1"), HIDDEN);
    assert_int_equal(ordinal_by("MIG-8932f937,1"), HIDDEN);
    assert_int_equal(ordinal_by("1,-1"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_the_variable_it_is_nvmls_number),
        cmocka_unit_test(place_in_the_list_is_the_ordinal),
        cmocka_unit_test(uuid_or_its_beginning_names_a_device),
        cmocka_unit_test(device_that_is_not_in_the_list_is_hidden),
        cmocka_unit_test(list_ends_at_what_names_no_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
