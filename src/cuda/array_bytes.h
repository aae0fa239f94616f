/*
 * How much memory an array needs, from its descriptor: elements times their
 * size, without the driver's padding.  What no 64 bits can count is at least
 * 2^61.  Pure; hook context.
 *
 * 0 where that memory is not the array's own: sparse arrays and those with
 * deferred mapping get theirs by cuMemMapArrayAsync.  A format that is newer
 * than the list here counts one byte for each channel.
 */
#ifndef GOS_CUDA_ARRAY_BYTES_H
#define GOS_CUDA_ARRAY_BYTES_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda_types.h"

/* NULL gives 0. */
uint64_t gos_array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *descriptor);
/* All levels together; levels beyond 1 x 1 count as that. */
uint64_t gos_array_mipmapped_bytes(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned int levels);

#endif
