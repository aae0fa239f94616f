#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../src/cuda/cuda_types.h"
#include "../../src/cuda/error.h"

static void codes_have_the_header_names(void **state)
{
    (void)state;
    assert_string_equal(gos_cuda_error_name(CUDA_SUCCESS), "CUDA_SUCCESS");
    assert_string_equal(gos_cuda_error_name(2), "CUDA_ERROR_OUT_OF_MEMORY");
    assert_string_equal(gos_cuda_error_name(209), "CUDA_ERROR_NO_BINARY_FOR_GPU");
    assert_string_equal(gos_cuda_error_name(719), "CUDA_ERROR_LAUNCH_FAILED");
    assert_string_equal(gos_cuda_error_name(901), "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED");
    assert_string_equal(gos_cuda_error_name(999), "CUDA_ERROR_UNKNOWN");
}

static void codes_that_are_not_listed_say_so(void **state)
{
    (void)state;
    assert_string_equal(gos_cuda_error_name(9), "CUDA_ERROR_<unknown>");
    assert_string_equal(gos_cuda_error_name(-1), "CUDA_ERROR_<unknown>");
    assert_string_equal(gos_cuda_error_text(12345), "an error that is not listed");
    assert_false(gos_cuda_error_is_sticky(12345));
}

static void out_of_memory_is_in_plain_words(void **state)
{
    (void)state;
    assert_string_equal(gos_cuda_error_text(2), "out of memory");
}

static void each_name_and_text_occurs_once(void **state)
{
    (void)state;
    for (int a = 0; a < 1000; a++) {
        if (strcmp(gos_cuda_error_name(a), "CUDA_ERROR_<unknown>") == 0)
            continue;
        for (int b = a + 1; b < 1000; b++) {
            assert_string_not_equal(gos_cuda_error_name(a), gos_cuda_error_name(b));
            if (strcmp(gos_cuda_error_name(b), "CUDA_ERROR_<unknown>") != 0)
                assert_string_not_equal(gos_cuda_error_text(a), gos_cuda_error_text(b));
        }
    }
}

static void only_errors_that_cost_the_context_are_sticky(void **state)
{
    static const int sticky[] = {214, 700, 702, 710, 714, 715, 716, 717, 718, 719};
    static const int others[] = {0, 1, 2, 3, 4, 201, 209, 304, 600, 701, 800, 801, 900, 901, 999};

    (void)state;
    for (size_t i = 0; i < sizeof(sticky) / sizeof(sticky[0]); i++)
        assert_true(gos_cuda_error_is_sticky(sticky[i]));
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_false(gos_cuda_error_is_sticky(others[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_have_the_header_names),
        cmocka_unit_test(codes_that_are_not_listed_say_so),
        cmocka_unit_test(out_of_memory_is_in_plain_words),
        cmocka_unit_test(each_name_and_text_occurs_once),
        cmocka_unit_test(only_errors_that_cost_the_context_are_sticky),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
