/*
 * The runtime layer: exported for programs that link libcudart dynamically.
 * It notes what the programmer wrote and forwards to the libcudart that its
 * caller would have reached; recording and retrying happen in the driver layer
 * below, so cudart's own last error stays true.
 */
#ifndef GOS_SHIM_CUDART_H
#define GOS_SHIM_CUDART_H

#include <cuda_runtime_api.h>

#include "../cuda/entrypoint.h"

/* Some of what we stand in for is deprecated; it is called all the same. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* Not declared by every toolkit from 12.0 on. */
cudaError_t CUDARTAPI cudaMallocAsync_ptsz(void **pointer, size_t bytes, cudaStream_t stream);
cudaError_t CUDARTAPI cudaMallocFromPoolAsync_ptsz(void **pointer, size_t bytes, cudaMemPool_t pool,
                                                   cudaStream_t stream);
cudaError_t CUDARTAPI cudaGetDriverEntryPoint_ptsz(const char *symbol, void **function,
                                                   unsigned long long flags,
                                                   enum cudaDriverEntryPointQueryResult *status);
cudaError_t CUDARTAPI cudaGetDriverEntryPointByVersion(
    const char *symbol, void **function, unsigned int version, unsigned long long flags,
    enum cudaDriverEntryPointQueryResult *status);
cudaError_t CUDARTAPI cudaGetDriverEntryPointByVersion_ptsz(
    const char *symbol, void **function, unsigned int version, unsigned long long flags,
    enum cudaDriverEntryPointQueryResult *status);
/* Around one forward: what gos_thread.api was before. */
struct gos_api_mark {
    const char *outer_api;
    const void *outer_caller;
    void *real;
};

/* caller: the hook's return address. */
struct gos_api_mark gos_api_enter(enum gos_entrypoint entry, const void *caller);
void gos_api_leave(const struct gos_api_mark *mark);

#endif
