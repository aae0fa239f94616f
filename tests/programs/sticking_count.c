/*
 * A block of a pool is freed by cuMemFree, which is legal, and the pool's count
 * of what is in use keeps it.  Then ordinary traffic, and the device fills.
 *   sticking_count full      all that was freed is back: the program itself has it all
 *   sticking_count pending   what was freed last waits for a stream that still works
 */
#include <string.h>
#include <unistd.h>

#include "host.h"

static void work(void *unused)
{
    (void)unused;
    usleep(200000);
}

static void free_by_the_other_function(CUstream stream, size_t bytes)
{
    CUdeviceptr block;

    MUST(driver.mem_alloc_async(&block, bytes, stream));
    MUST(driver.stream_synchronize(stream));
    MUST(driver.mem_free(block));
}

static void free_in_stream_order(CUstream stream, size_t bytes, CUhostFn late)
{
    CUdeviceptr block;

    MUST(driver.mem_alloc_async(&block, bytes, stream));
    if (late != NULL)
        MUST(driver.launch_host_func(stream, late, NULL));
    MUST(driver.mem_free_async(block, stream));
    if (late == NULL)
        MUST(driver.stream_synchronize(stream));
}

int main(int count, char **words)
{
    bool is_pending = count > 1 && strcmp(words[1], "pending") == 0;
    CUdeviceptr block, last;
    CUstream stream;

    open_device();
    size_t at_start = free_bytes();
    MUST(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
    free_by_the_other_function(stream, scaled(at_start, 4096));
    if (!is_pending)
        free_in_stream_order(stream, scaled(at_start, 4096), NULL);
    MUST(driver.mem_alloc(&block, scaled(at_start, 11264)));
    if (is_pending)
        free_in_stream_order(stream, scaled(at_start, 4096), work);
    CUresult result = driver.mem_alloc(&last, scaled(at_start, is_pending ? 4096 : 5120));
    expect("allocation", result, CUDA_ERROR_OUT_OF_MEMORY,
           is_pending ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
    MUST(driver.stream_synchronize(stream));
    return 0;
}
