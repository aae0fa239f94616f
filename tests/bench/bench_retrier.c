/* Built as libc10_cuda.so: a library of that name is known to free its cache and ask again. */
#include <cuda.h>

CUresult bench_attempt(__typeof__(&cuMemAlloc) alloc, CUdeviceptr *address, size_t bytes);

CUresult bench_attempt(__typeof__(&cuMemAlloc) alloc, CUdeviceptr *address, size_t bytes)
{
    CUresult result = alloc(address, bytes);

    __asm__ volatile("" ::"r"(result)); /* a frame of its own, not a jump */
    return result;
}
