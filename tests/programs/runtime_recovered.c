/* Scenario 3 through cudart: after a rescue the last error is clean. */
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void must(cudaError_t result, const char *what)
{
    if (result == cudaSuccess)
        return;
    printf("outcome: %s gave %d where it must not\n", what, (int)result);
    exit(1);
}
#define MUST(call) must((call), #call)

static void work(void *unused)
{
    (void)unused;
    usleep(200000);
}

int main(void)
{
    cudaStream_t stream;
    cudaMemPool_t pool;
    void *big, *second = NULL;
    uint64_t keep_all = UINT64_MAX;
    size_t free_now, total;

    MUST(cudaMemGetInfo(&free_now, &total));
    MUST(cudaDeviceGetDefaultMemPool(&pool, 0));
    MUST(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep_all));
    MUST(cudaStreamCreate(&stream));
    MUST(cudaMallocAsync(&big, free_now / 4 * 3, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaLaunchHostFunc(stream, work, NULL));
    MUST(cudaFreeAsync(big, stream));
    cudaError_t result = cudaMalloc(&second, free_now / 2);
    printf("outcome: allocation behind a pending free %d\n", (int)result);
    printf("outcome: last error agrees %d\n", cudaGetLastError() == result);
    return result == cudaSuccess || result == cudaErrorMemoryAllocation ? 0 : 1;
}
