#include "array_bytes.h"

#include <stddef.h>

/* Numbers, because the headers learned the names one after the other (cuda.h, CUarray_format). */
static const struct {
    uint8_t first, last; /* a run of formats of one size */
    uint8_t bits;        /* of a texel with all its channels, or of one channel */
    bool per_channel;
} formats[] = {
    {0x01, 0x01, 8, true},   {0x02, 0x02, 16, true},  {0x03, 0x03, 32, true},  /* unsigned */
    {0x08, 0x08, 8, true},   {0x09, 0x09, 16, true},  {0x0a, 0x0a, 32, true},  /* signed */
    {0x10, 0x10, 16, true},  {0x20, 0x20, 32, true},                           /* half, float */
    {0x50, 0x50, 32, false},                                                   /* 10-10-10-2 */
    {0x91, 0x92, 4, false},  {0x93, 0x96, 8, false},                           /* BC1 to BC3 */
    {0x97, 0x98, 4, false},  {0x99, 0x9e, 8, false},                           /* BC4 to BC7 */
    {0xc0, 0xc0, 8, false},  {0xc1, 0xc1, 16, false}, {0xc2, 0xc2, 32, false}, /* unorm 8 */
    {0xc3, 0xc3, 16, false}, {0xc4, 0xc4, 32, false}, {0xc5, 0xc5, 64, false}, /* unorm 16 */
    {0xc6, 0xc6, 8, false},  {0xc7, 0xc7, 16, false}, {0xc8, 0xc8, 32, false}, /* snorm 8 */
    {0xc9, 0xc9, 16, false}, {0xca, 0xca, 32, false}, {0xcb, 0xcb, 64, false}, /* snorm 16 */
    {0xb0, 0xb0, 12, false}, {0x53, 0x53, 12, false}, {0x59, 0x59, 12, false}, /* 4:2:0, 8 bits */
    {0x9f, 0xa1, 24, false}, {0x54, 0x54, 24, false}, {0x5a, 0x5a, 24, false}, /* 4:2:0, 16 bits */
    {0xa2, 0xa2, 16, false}, {0xa5, 0xa5, 16, false}, {0x51, 0x51, 16, false}, /* 4:2:2, 8 bits */
    {0x55, 0x55, 16, false}, {0x5b, 0x5b, 16, false}, {0xa3, 0xa4, 32, false},
    {0xa6, 0xa7, 32, false}, {0x56, 0x56, 32, false}, /* 4:2:2, 16 bits */
    {0x5c, 0x5c, 32, false}, {0xa8, 0xa9, 32, false}, {0x52, 0x52, 32, false},
    {0xb1, 0xb1, 64, false},                                                   /* 4:4:4, packed */
    {0xb2, 0xb2, 24, false}, {0x57, 0x57, 24, false}, {0x5d, 0x5d, 24, false}, /* planar, 8 bits */
    {0xb3, 0xb3, 48, false}, {0x58, 0x58, 48, false}, {0x5e, 0x5e, 48, false}, /* planar, 16 bits */
};

#define NOT_ITS_OWN (0x40 | 0x80) /* CUDA_ARRAY3D_SPARSE, _DEFERRED_MAPPING: not in all headers */

static bool is_compressed(unsigned int format)
{
    return format >= 0x91 && format <= 0x9e;
}

static uint64_t bits_of(unsigned int format, unsigned int channels)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (format >= formats[i].first && format <= formats[i].last)
            return formats[i].per_channel ? (uint64_t)formats[i].bits * channels : formats[i].bits;
    return (uint64_t)8 * channels;
}

static uint64_t at_least_one(size_t extent)
{
    return extent ? extent : 1;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product;

    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* Compressed texels come in squares of four by four. */
static uint64_t texels(size_t extent, bool compressed)
{
    return compressed ? plus(at_least_one(extent), 3) / 4 * 4 : at_least_one(extent);
}

uint64_t gos_array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    if (!descriptor || descriptor->Flags & NOT_ITS_OWN)
        return 0;
    unsigned int format = (unsigned int)descriptor->Format;
    bool compressed = is_compressed(format);
    uint64_t area =
        times(texels(descriptor->Width, compressed), texels(descriptor->Height, compressed));
    uint64_t bits = times(times(area, at_least_one(descriptor->Depth)),
                          bits_of(format, descriptor->NumChannels));
    return bits / 8 + (bits % 8 != 0);
}

/* Layers stay as many as they are; what is deep gets half as deep. */
static void halve(CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    descriptor->Width = at_least_one(descriptor->Width / 2);
    descriptor->Height = at_least_one(descriptor->Height / 2);
    if (!(descriptor->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)))
        descriptor->Depth = at_least_one(descriptor->Depth / 2);
}

uint64_t gos_array_mipmapped_bytes(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned int levels)
{
    uint64_t bytes = 0;

    if (!descriptor)
        return 0;
    CUDA_ARRAY3D_DESCRIPTOR level = *descriptor;
    for (unsigned int i = 0; i < levels && i < 8 * sizeof(size_t); i++) {
        bytes = plus(bytes, gos_array_bytes(&level));
        halve(&level);
    }
    return bytes;
}
