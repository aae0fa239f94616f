/* A stand-in for a library that needs device memory and knows no way out without it. */
#include <cuda_runtime_api.h>
#include <stddef.h>

#include "stub_nccl.h"

int stub_nccl_ask(size_t bytes)
{
    void *memory = NULL;
    cudaError_t result = cudaMalloc(&memory, bytes);
    if (cudaGetLastError() != result)
        return -1;
    return (int)result;
}

/* While a stream is captured; this thread is in relaxed mode. */
int stub_nccl_ask_in_capture(size_t bytes, int *end)
{
    enum cudaStreamCaptureMode relaxed = cudaStreamCaptureModeRelaxed;
    cudaStream_t stream;
    cudaGraph_t graph = NULL;
    if (cudaStreamCreate(&stream) != cudaSuccess ||
        cudaThreadExchangeStreamCaptureMode(&relaxed) != cudaSuccess ||
        cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) != cudaSuccess)
        return -1;
    int result = stub_nccl_ask(bytes);
    *end = (int)cudaStreamEndCapture(stream, &graph);
    return result;
}

int stub_nccl_pin(size_t bytes)
{
    void *memory = NULL;
    cudaError_t result = cudaHostAlloc(&memory, bytes, cudaHostAllocDefault);
    if (cudaGetLastError() != result)
        return -1;
    return (int)result;
}
