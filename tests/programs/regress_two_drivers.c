/*
 * Two drivers in one process, each used by itself: the second one from the
 * given path, or "namespace": the usual one again, in a namespace of its own.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define FUNCTION(library, symbol) ((__typeof__(&symbol))(uintptr_t)dlsym(library, #symbol))

static CUresult use(void *library)
{
    CUcontext context;
    CUdeviceptr memory;
    CUresult result = FUNCTION(library, cuInit)(0);

    if (result == CUDA_SUCCESS)
        result = FUNCTION(library, cuDevicePrimaryCtxRetain)(&context, 0);
    if (result == CUDA_SUCCESS)
        result = FUNCTION(library, cuCtxSetCurrent)(context);
    if (result == CUDA_SUCCESS)
        result = FUNCTION(library, cuMemAlloc_v2)(&memory, 1 << 20);
    if (result == CUDA_SUCCESS)
        result = FUNCTION(library, cuMemFree_v2)(memory);
    return result;
}

int main(int count, char **words)
{
    const char *second = count > 1 ? words[1] : "";
    void *libraries[] = {dlopen("libcuda.so.1", RTLD_NOW),
                         strcmp(second, "namespace") == 0
                             ? dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW)
                             : dlopen(second, RTLD_NOW)};

    if (!libraries[0] || !libraries[1] || libraries[0] == libraries[1])
        return 77;
    printf("outcome: second %d\n", (int)use(libraries[1]));
    printf("outcome: first %d\n", (int)use(libraries[0]));
    printf("outcome: second again %d\n", (int)use(libraries[1]));
    return 0;
}
