#include "stub_segments.h"

static CUresult make_pieces(const struct stub_segment_driver *driver, struct stub_segment *segment)
{
    CUmemAllocationProp where = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};

    for (int i = 0; i < STUB_SEGMENT_PIECES; i++) {
        CUresult result = driver->create(&segment->pieces[i], segment->piece_bytes, &where, 0);
        if (result == CUDA_SUCCESS)
            continue;
        while (i-- > 0)
            driver->release(segment->pieces[i]);
        return result;
    }
    return CUDA_SUCCESS;
}

static CUresult map_pieces(const struct stub_segment_driver *driver, struct stub_segment *segment)
{
    CUresult result = CUDA_SUCCESS;

    for (int i = 0; i < STUB_SEGMENT_PIECES && result == CUDA_SUCCESS; i++)
        result = driver->map(segment->at + (size_t)i * segment->piece_bytes, segment->piece_bytes,
                             0, segment->pieces[i], 0);
    return result;
}

CUresult stub_segment_grow(const struct stub_segment_driver *driver, struct stub_segment *segment,
                           void (*flush)(void))
{
    CUresult result = make_pieces(driver, segment);

    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        flush();
        result = make_pieces(driver, segment);
    }
    return result == CUDA_SUCCESS ? map_pieces(driver, segment) : result;
}
