/*
 * A launch finds no room for its kernel's code.  What gives memory back ends the
 * context as well, so a second launch would meet another error than the first.
 */
#include "host.h"

static int end_context(void *arg, int ordinal, uint64_t wanted_bytes)
{
    (void)arg;
    (void)wanted_bytes;
    MUST(driver.primary_release(ordinal));
    fprintf(stderr, "shim: ended=1\n");
    return 0;
}

static void fill_device(void)
{
    CUdeviceptr unused;

    for (size_t bytes = free_bytes(); bytes >= MIB; bytes /= 2)
        while (driver.mem_alloc(&unused, bytes) == CUDA_SUCCESS)
            continue;
}

int main(void)
{
    static int kernel;

    open_device();
    fill_device();
    if (gpuoomshim_register_flush != NULL)
        gpuoomshim_register_flush("context", end_context, NULL);
    expect("launch on a full device",
           driver.launch_kernel((CUfunction)&kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
           CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
    return 0;
}
