/*
 * A program that links cudart: what each failing call answers, leaves in its
 * out-parameter, and leaves as last error.
 */
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdio.h>

static char mark;

static void tell(const char *what, cudaError_t result, const void *out)
{
    const char *left = out == &mark ? "untouched" : out == NULL ? "zero" : "something";

    printf("outcome: %s %d, %s, peek %d", what, (int)result, left, (int)cudaPeekAtLastError());
    printf(", last %d", (int)cudaGetLastError());
    printf(", last %d\n", (int)cudaGetLastError());
}

int main(void)
{
    const size_t absurd = (size_t)1 << 60;
    size_t free_now, total, pitch;
    cudaStream_t stream;
    void *live, *out = &mark;

    if (cudaMemGetInfo(&free_now, &total) != cudaSuccess ||
        cudaStreamCreate(&stream) != cudaSuccess ||
        cudaMalloc(&live, free_now / 4 * 3) != cudaSuccess)
        return 1;
    tell("cudaMalloc", cudaMalloc(&out, free_now / 2), out);
    out = &mark;
    tell("cudaMallocAsync", cudaMallocAsync(&out, free_now / 2, stream), out);
    out = &mark;
    tell("cudaMallocPitch", cudaMallocPitch(&out, &pitch, free_now >> 11, 1 << 10), out);
    out = &mark;
    tell("cudaMallocManaged", cudaMallocManaged(&out, absurd, cudaMemAttachGlobal), out);
    out = &mark;
    tell("cudaHostAlloc", cudaHostAlloc(&out, absurd, cudaHostAllocDefault), out);
    return cudaFree(live) != cudaSuccess;
}
