/* torch's expandable segments, by a stand-in of the same name as torch's library. */
#ifndef STUB_SEGMENTS_H
#define STUB_SEGMENTS_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

#define STUB_SEGMENT_PIECES 16

/* The driver, by whichever way the host found it. */
struct stub_segment_driver {
    CUresult (*create)(CUmemGenericAllocationHandle *handle, size_t bytes,
                       const CUmemAllocationProp *where, unsigned long long flags);
    CUresult (*release)(CUmemGenericAllocationHandle handle);
    CUresult (*map)(CUdeviceptr at, size_t bytes, size_t offset,
                    CUmemGenericAllocationHandle handle, unsigned long long flags);
    CUresult (*unmap)(CUdeviceptr at, size_t bytes);
};

struct stub_segment {
    CUmemGenericAllocationHandle pieces[STUB_SEGMENT_PIECES];
    size_t piece_bytes;
    CUdeviceptr at; /* reserved by the host */
};

/*
 * Makes all pieces, then maps them.  Where one cannot be had, releases the
 * others, calls flush and tries all of it once more.
 */
typedef CUresult stub_segment_grow_function(const struct stub_segment_driver *driver,
                                            struct stub_segment *segment, void (*flush)(void));
stub_segment_grow_function stub_segment_grow;

#endif
