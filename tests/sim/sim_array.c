/* Arrays and mipmapped arrays: whole device blocks, however small they are [H200]. */

#include <stdlib.h>

#include "sim_blocks.h"
#include "sim_call.h"
#include "sim_context.h"
#include "sim_memory.h"

#define EXTENT_MAX 131072u

struct CUarray_st {
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    uint64_t base; /* 0: a level of a mipmapped array */
};

struct CUmipmappedArray_st {
    uint64_t base;
    unsigned level_count;
    struct CUarray_st levels[];
};

static unsigned format_bytes(CUarray_format format)
{
    switch ((int)format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2;
    default:
        return 4;
    }
}

static size_t at_least_one(size_t extent)
{
    return extent != 0 ? extent : 1;
}

static uint64_t bytes_of(const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    return (uint64_t)descriptor->Width * at_least_one(descriptor->Height) *
           at_least_one(descriptor->Depth) * descriptor->NumChannels *
           format_bytes(descriptor->Format);
}

static bool is_valid(const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    return descriptor->Width != 0 && descriptor->Width <= EXTENT_MAX &&
           descriptor->Height <= EXTENT_MAX && descriptor->Depth <= EXTENT_MAX &&
           (descriptor->NumChannels == 1 || descriptor->NumChannels == 2 ||
            descriptor->NumChannels == 4);
}

/* Never a piece of a shared block; what was asked for is what the books show. */
static uint64_t take(uint64_t bytes)
{
    struct sim_range *range =
        sim_memory_take(bytes > SIM_PIECE_MAX_BYTES ? bytes : SIM_PIECE_MAX_BYTES + 1);
    if (range == NULL)
        return 0;
    range->bytes = bytes;
    return range->base;
}

static void give(uint64_t base)
{
    struct sim_range *range = sim_range_at(base);
    if (range != NULL)
        sim_memory_give(range);
}

static CUresult create(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    if (!is_valid(descriptor))
        return CUDA_ERROR_INVALID_VALUE;
    CUarray array = calloc(1, sizeof(*array));
    if (array == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    array->descriptor = *descriptor;
    array->base = take(bytes_of(descriptor));
    if (array->base == 0) {
        free(array);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = array;
    return CUDA_SUCCESS;
}

static CUresult create_flat(CUarray *out, const CUDA_ARRAY_DESCRIPTOR *flat)
{
    CUDA_ARRAY3D_DESCRIPTOR descriptor = {.Width = flat->Width,
                                          .Height = flat->Height,
                                          .Format = flat->Format,
                                          .NumChannels = flat->NumChannels};
    return create(out, &descriptor);
}

static CUresult destroy(CUarray array)
{
    if (array == NULL || array->base == 0)
        return CUDA_ERROR_INVALID_HANDLE;
    give(array->base);
    free(array);
    return CUDA_SUCCESS;
}

static CUresult describe(CUDA_ARRAY3D_DESCRIPTOR *out, CUarray array)
{
    if (array == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    *out = array->descriptor;
    return CUDA_SUCCESS;
}

static CUresult describe_flat(CUDA_ARRAY_DESCRIPTOR *out, CUarray array)
{
    if (array == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    *out = (CUDA_ARRAY_DESCRIPTOR){array->descriptor.Width, array->descriptor.Height,
                                   array->descriptor.Format, array->descriptor.NumChannels};
    return CUDA_SUCCESS;
}

static CUDA_ARRAY3D_DESCRIPTOR halve(CUDA_ARRAY3D_DESCRIPTOR descriptor)
{
    descriptor.Width = at_least_one(descriptor.Width / 2);
    descriptor.Height = descriptor.Height != 0 ? at_least_one(descriptor.Height / 2) : 0;
    descriptor.Depth = descriptor.Depth != 0 ? at_least_one(descriptor.Depth / 2) : 0;
    return descriptor;
}

static uint64_t set_levels(CUmipmappedArray array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    CUDA_ARRAY3D_DESCRIPTOR level = *descriptor;
    uint64_t bytes = 0;
    for (unsigned i = 0; i < array->level_count; i++) {
        array->levels[i].descriptor = level;
        bytes += bytes_of(&level);
        level = halve(level);
    }
    return bytes;
}

static CUresult create_mipmapped(CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
                                 unsigned levels)
{
    if (!is_valid(descriptor) || levels == 0 || levels > 18)
        return CUDA_ERROR_INVALID_VALUE;
    CUmipmappedArray array = calloc(1, sizeof(*array) + levels * sizeof(array->levels[0]));
    if (array == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    array->level_count = levels;
    array->base = take(set_levels(array, descriptor));
    if (array->base == 0) {
        free(array);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = array;
    return CUDA_SUCCESS;
}

static CUresult destroy_mipmapped(CUmipmappedArray array)
{
    if (array == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    give(array->base);
    free(array);
    return CUDA_SUCCESS;
}

static CUresult get_level(CUarray *out, CUmipmappedArray array, unsigned level)
{
    if (array == NULL || level >= array->level_count)
        return CUDA_ERROR_INVALID_VALUE;
    *out = &array->levels[level];
    return CUDA_SUCCESS;
}

CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *descriptor)
{
    return SIM_CALL(cuArrayCreate_v2, SIM_UNSAFE, create_flat(array, descriptor));
}

CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    return SIM_CALL(cuArray3DCreate_v2, SIM_UNSAFE, create(array, descriptor));
}

CUresult cuArrayDestroy(CUarray array)
{
    return SIM_CALL(cuArrayDestroy, SIM_UNSAFE, destroy(array));
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *descriptor, CUarray array)
{
    return SIM_CALL(cuArrayGetDescriptor_v2, SIM_CONTEXT, describe_flat(descriptor, array));
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *descriptor, CUarray array)
{
    return SIM_CALL(cuArray3DGetDescriptor_v2, SIM_CONTEXT, describe(descriptor, array));
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
                                unsigned int levels)
{
    return SIM_CALL(cuMipmappedArrayCreate, SIM_UNSAFE,
                    create_mipmapped(array, descriptor, levels));
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array)
{
    return SIM_CALL(cuMipmappedArrayDestroy, SIM_UNSAFE, destroy_mipmapped(array));
}

CUresult cuMipmappedArrayGetLevel(CUarray *array, CUmipmappedArray mipmapped, unsigned int level)
{
    return SIM_CALL(cuMipmappedArrayGetLevel, SIM_CONTEXT, get_level(array, mipmapped, level));
}
