/* Asks whether there is CUDA by weak names, as some libraries do; linked with none. */
#include <stddef.h>
#include <stdio.h>

__attribute__((weak)) int cuInit(unsigned int flags);
__attribute__((weak)) int cudaMalloc(void **memory, size_t bytes);
__attribute__((weak)) int cudaGetDeviceCount(int *count);

int main(void)
{
    int (*volatile start)(unsigned int) = cuInit;
    int (*volatile allocate)(void **, size_t) = cudaMalloc;
    int (*volatile count)(int *) = cudaGetDeviceCount;
    void *memory = NULL;

    printf("outcome: start %d\n", start == NULL ? -1 : start(0));
    printf("outcome: allocation %d\n", allocate == NULL ? -1 : allocate(&memory, 1));
    printf("outcome: count %d\n", count == NULL ? -1 : 0);
    return 0;
}
