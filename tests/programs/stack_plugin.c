/* A library that allocates by the function it is given. */
#include <cuda.h>

CUresult allocate_in_library(CUresult (*real)(CUdeviceptr *, size_t), CUdeviceptr *address,
                             size_t bytes);

CUresult allocate_in_library(CUresult (*real)(CUdeviceptr *, size_t), CUdeviceptr *address,
                             size_t bytes)
{
    CUresult result = real(address, bytes);

    return result == CUDA_SUCCESS ? result : CUDA_ERROR_UNKNOWN; /* not a jump out of here */
}
