/* The memory that an array needs, from its descriptor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "../../src/cuda/array_bytes.h"

static CUDA_ARRAY3D_DESCRIPTOR array(size_t width, size_t height, size_t depth, int format,
                                     unsigned int channels)
{
    return (CUDA_ARRAY3D_DESCRIPTOR){.Width = width,
                                     .Height = height,
                                     .Depth = depth,
                                     .Format = (CUarray_format)format,
                                     .NumChannels = channels};
}

static uint64_t bytes(size_t width, size_t height, size_t depth, int format, unsigned int channels)
{
    CUDA_ARRAY3D_DESCRIPTOR descriptor = array(width, height, depth, format, channels);

    return gos_array_bytes(&descriptor);
}

static void missing_dimensions_count_as_one(void **state)
{
    (void)state;
    assert_int_equal(bytes(100, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1), 100);
    assert_int_equal(bytes(100, 7, 0, CU_AD_FORMAT_HALF, 1), 100 * 7 * 2);
    assert_int_equal(bytes(100, 7, 3, CU_AD_FORMAT_FLOAT, 1), 100 * 7 * 3 * 4);
}

static void channels_multiply_simple_formats(void **state)
{
    (void)state;
    assert_int_equal(bytes(10, 10, 0, CU_AD_FORMAT_SIGNED_INT16, 4), 10 * 10 * 2 * 4);
    assert_int_equal(bytes(10, 10, 0, CU_AD_FORMAT_UNSIGNED_INT32, 2), 10 * 10 * 4 * 2);
}

static void packed_formats_include_their_channels(void **state)
{
    (void)state;
    assert_int_equal(bytes(10, 10, 0, 0xc5, 4), 10 * 10 * 8);     /* UNORM_INT16X4 */
    assert_int_equal(bytes(10, 10, 0, 0xc6, 1), 10 * 10);         /* SNORM_INT8X1 */
    assert_int_equal(bytes(16, 16, 0, 0xb0, 3), 16 * 16 * 3 / 2); /* NV12 */
}

static void compressed_formats_take_whole_squares(void **state)
{
    (void)state;
    assert_int_equal(bytes(16, 16, 0, 0x91, 4), 16 / 4 * 16 / 4 * 8);  /* BC1: 8 bytes a square */
    assert_int_equal(bytes(16, 16, 0, 0x9d, 4), 16 / 4 * 16 / 4 * 16); /* BC7: 16 */
    assert_int_equal(bytes(5, 5, 0, 0x91, 4), 2 * 2 * 8);
}

static void unknown_format_counts_a_byte_for_each_channel(void **state)
{
    (void)state;
    assert_int_equal(bytes(10, 10, 0, 0x7777, 4), 400);
}

static void memory_that_comes_by_mapping_is_not_its_own(void **state)
{
    CUDA_ARRAY3D_DESCRIPTOR descriptor = array(64, 64, 0, CU_AD_FORMAT_FLOAT, 1);

    (void)state;
    descriptor.Flags = 0x40; /* sparse */
    assert_int_equal(gos_array_bytes(&descriptor), 0);
    descriptor.Flags = 0x80; /* deferred mapping */
    assert_int_equal(gos_array_bytes(&descriptor), 0);
    assert_int_equal(gos_array_bytes(NULL), 0);
    assert_int_equal(gos_array_mipmapped_bytes(NULL, 3), 0);
}

static void levels_halve_down_to_one_texel(void **state)
{
    CUDA_ARRAY3D_DESCRIPTOR flat = array(8, 4, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1);
    CUDA_ARRAY3D_DESCRIPTOR deep = array(8, 4, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1);

    (void)state;
    assert_int_equal(gos_array_mipmapped_bytes(&flat, 1), 32);
    assert_int_equal(gos_array_mipmapped_bytes(&flat, 4), 32 + 8 + 2 + 1);
    assert_int_equal(gos_array_mipmapped_bytes(&deep, 3), 128 + 16 + 2);
}

static void layers_are_not_halved(void **state)
{
    CUDA_ARRAY3D_DESCRIPTOR layered = array(8, 4, 6, CU_AD_FORMAT_UNSIGNED_INT8, 1);

    (void)state;
    layered.Flags = CUDA_ARRAY3D_LAYERED;
    assert_int_equal(gos_array_mipmapped_bytes(&layered, 2), (32 + 8) * 6);
    layered.Flags = CUDA_ARRAY3D_CUBEMAP;
    assert_int_equal(gos_array_mipmapped_bytes(&layered, 2), (32 + 8) * 6);
}

static void absurd_number_of_levels_ends(void **state)
{
    CUDA_ARRAY3D_DESCRIPTOR flat = array(2, 2, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1);

    (void)state;
    assert_true(gos_array_mipmapped_bytes(&flat, 0xffffffff) < 100);
}

static void extents_beyond_counting_are_large(void **state)
{
    CUDA_ARRAY3D_DESCRIPTOR odd = array(SIZE_MAX, 1, 0, CU_AD_FORMAT_FLOAT, 4);
    CUDA_ARRAY3D_DESCRIPTOR square =
        array((size_t)1 << 32, (size_t)1 << 32, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1);
    CUDA_ARRAY3D_DESCRIPTOR compressed = array(SIZE_MAX, 4, 0, (CUarray_format)0x91, 1);

    (void)state;
    assert_true(gos_array_bytes(&odd) >= 1ull << 61);
    assert_true(gos_array_bytes(&square) >= 1ull << 61);
    assert_true(gos_array_bytes(&compressed) >= 1ull << 61);
    assert_true(gos_array_mipmapped_bytes(&square, 64) >= 1ull << 61);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_dimensions_count_as_one),
        cmocka_unit_test(channels_multiply_simple_formats),
        cmocka_unit_test(packed_formats_include_their_channels),
        cmocka_unit_test(compressed_formats_take_whole_squares),
        cmocka_unit_test(unknown_format_counts_a_byte_for_each_channel),
        cmocka_unit_test(memory_that_comes_by_mapping_is_not_its_own),
        cmocka_unit_test(levels_halve_down_to_one_texel),
        cmocka_unit_test(layers_are_not_halved),
        cmocka_unit_test(absurd_number_of_levels_ends),
        cmocka_unit_test(extents_beyond_counting_are_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
