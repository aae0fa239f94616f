/*
 * One line keeps 8 MiB an iteration, another allocates 512 MiB and frees it;
 * in the end the innocent one fails.
 */
#include "host.h"

__attribute__((noinline)) static CUresult keeps(size_t bytes)
{
    CUdeviceptr kept;
    CUresult result = driver.mem_alloc(&kept, bytes);
    __asm__ volatile("" ::: "memory");
    return result;
}

__attribute__((noinline)) static CUresult uses(size_t bytes)
{
    CUdeviceptr used;
    CUresult result = driver.mem_alloc(&used, bytes);
    if (result == CUDA_SUCCESS)
        MUST(driver.mem_free(used));
    return result;
}

int main(void)
{
    open_device();
    size_t at_start = free_bytes();
    size_t kept_bytes = scaled(at_start, 8), used_bytes = scaled(at_start, 512);

    for (unsigned i = 1; i < 100000; i++) {
        MUST(keeps(kept_bytes));
        CUresult result = uses(used_bytes);
        if (result != CUDA_SUCCESS) {
            printf("outcome: iteration %u\n", i);
            expect("the innocent line", result, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
            return 0;
        }
    }
    printf("outcome: never failed\n");
    return 1;
}
