/*
 * A stand-in for XLA's allocator, in a library of the same name: it asks for
 * nine tenths of what it was refused until it gets something.
 */
#include <cuda.h>

int stub_xla_take(CUresult (*allocate)(CUdeviceptr *, size_t), CUdeviceptr *memory, size_t bytes);

/* How often it was refused; -1: another error. */
int stub_xla_take(CUresult (*allocate)(CUdeviceptr *, size_t), CUdeviceptr *memory, size_t bytes)
{
    int refused = 0;
    CUresult result;

    while ((result = allocate(memory, bytes)) == CUDA_ERROR_OUT_OF_MEMORY) {
        bytes = bytes / 10 * 9 / ((size_t)2 << 20) * ((size_t)2 << 20);
        refused++;
    }
    return result == CUDA_SUCCESS ? refused : -1;
}
