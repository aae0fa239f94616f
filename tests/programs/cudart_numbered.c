/* A libcudart that answers with its number. */
#include <cuda_runtime_api.h>

__attribute__((visibility("default"))) cudaError_t CUDARTAPI cudaMalloc(void **memory, size_t bytes)
{
    (void)bytes;
    *memory = NULL;
    return (cudaError_t)NUMBER;
}
