/* Rows that not every toolkit declares. */
#ifndef DECLARATIONS_H
#define DECLARATIONS_H

#include <cuda_runtime_api.h>

#include "../../src/cuda/newer.h"

cudaError_t cudaMallocAsync_ptsz(void **pointer, size_t bytes, cudaStream_t stream);
cudaError_t cudaMallocFromPoolAsync_ptsz(void **pointer, size_t bytes, cudaMemPool_t pool,
                                         cudaStream_t stream);
cudaError_t cudaGetDriverEntryPoint_ptsz(const char *symbol, void **function,
                                         unsigned long long flags,
                                         enum cudaDriverEntryPointQueryResult *status);
cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function,
                                             unsigned int version, unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *status);
cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char *symbol, void **function,
                                                  unsigned int version, unsigned long long flags,
                                                  enum cudaDriverEntryPointQueryResult *status);

#endif
