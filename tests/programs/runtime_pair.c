/* A program that links cudart dynamically: allocates, frees, runs out, sees a clean last error. */
#include <cuda_runtime_api.h>
#include <gpuoomshim.h>
#include <inttypes.h>
#include <stdio.h>

static int check(const char *what, cudaError_t result, cudaError_t expected)
{
    printf("outcome: %s %d\n", what, (int)result);
    fflush(stdout);
    return result == expected ? 0 : 1;
}

static void tell_live(void)
{
    if (gpuoomshim_live_bytes != NULL)
        fprintf(stderr, "shim: live_bytes=%" PRIu64 "\n", gpuoomshim_live_bytes(0));
}

int main(void)
{
    void *small, *half, *refused = NULL;
    size_t free_now, total;
    int wrong = 0;

    wrong |= check("cudaMalloc", cudaMalloc(&small, 1 << 20), cudaSuccess);
    wrong |= check("cudaMemGetInfo", cudaMemGetInfo(&free_now, &total), cudaSuccess);
    wrong |= check("cudaMalloc of most", cudaMalloc(&half, free_now / 4 * 3), cudaSuccess);
    wrong |=
        check("cudaMalloc of half", cudaMalloc(&refused, free_now / 2), cudaErrorMemoryAllocation);
    wrong |= check("last error", cudaGetLastError(), cudaErrorMemoryAllocation);
    wrong |= check("last error again", cudaGetLastError(), cudaSuccess);
    tell_live();
    wrong |= check("cudaFree", cudaFree(half), cudaSuccess);
    wrong |= check("cudaFree", cudaFree(small), cudaSuccess);
    tell_live();
    return wrong;
}
