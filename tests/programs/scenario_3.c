/*
 * Memory freed in stream order behind work that is still running: the driver
 * cannot give it to cuMemAlloc until the host has seen the work complete.
 */
#include <unistd.h>

#include "host.h"

static void work(void *unused)
{
    (void)unused;
    usleep(200000);
}

int main(void)
{
    CUstream stream;
    CUmemoryPool pool;
    CUdeviceptr big, second;
    cuuint64_t keep_all = UINT64_MAX;

    open_device();
    size_t at_start = free_bytes();
    MUST(driver.pool_default(&pool, 0));
    MUST(driver.pool_set(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep_all));
    MUST(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
    MUST(driver.mem_alloc_async(&big, scaled(at_start, 12288), stream));
    MUST(driver.stream_synchronize(stream));

    MUST(driver.launch_host_func(stream, work, NULL));
    MUST(driver.mem_free_async(big, stream));
    CUresult first = driver.mem_alloc(&second, scaled(at_start, 8192));
    expect("allocation behind a pending free", first, CUDA_ERROR_OUT_OF_MEMORY, CUDA_SUCCESS);

    MUST(driver.stream_synchronize(stream));
    if (first != CUDA_SUCCESS)
        MUST(driver.mem_alloc(&second, scaled(at_start, 8192)));
    MUST(driver.mem_free(second));
    MUST(driver.stream_destroy(stream));
    outcome("after synchronizing", CUDA_SUCCESS);
    return 0;
}
