/*
 * A stand-in for an allocator without a cache of its own, in a library of a
 * framework's name: it asks once.
 */
#include <cuda.h>

CUresult stub_once_take(CUresult (*allocate)(CUdeviceptr *, size_t, CUstream), CUdeviceptr *memory,
                        size_t bytes);

CUresult stub_once_take(CUresult (*allocate)(CUdeviceptr *, size_t, CUstream), CUdeviceptr *memory,
                        size_t bytes)
{
    CUresult result = allocate(memory, bytes, NULL);

    return result; /* no tail call: this library is to be on the stack */
}
