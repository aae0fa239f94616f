/* What newer CUDA headers declare and hosts need, for the older ones. */
#ifndef HOST_NEWER_H
#define HOST_NEWER_H

#include <cuda.h>

#if CUDA_VERSION < 12020
#define CU_MEM_LOCATION_TYPE_HOST ((CUmemLocationType)2)
#define CU_MEM_LOCATION_TYPE_HOST_NUMA ((CUmemLocationType)3)
#endif

struct CUctxCreateParams_st;

#endif
