/*
 * NVIDIA's declarations, once, in the shape that we need: every ABI of every
 * name is visible (cuMemAlloc and cuMemAlloc_v2, legacy and _ptsz), and no
 * macro renames the one to the other.  Include this, never <cuda.h>.
 */
#ifndef GOS_CUDA_CUDA_TYPES_H
#define GOS_CUDA_CUDA_TYPES_H

#ifndef __CUDA_API_VERSION_INTERNAL
#error "compile with -D__CUDA_API_VERSION_INTERNAL"
#endif

#include <cuda.h>
#include <cudaTypedefs.h>

#if CUDA_VERSION < 12000
#error "CUDA headers 12.0 or newer are needed"
#endif

#include "newer.h"

#endif
