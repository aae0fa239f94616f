/* One failure is rescued, another is survived by the host itself. */
#include <unistd.h>

#include "host.h"

static void work(void *unused)
{
    (void)unused;
    usleep(50000);
}

int main(void)
{
    CUdeviceptr first, second, refused;
    CUstream stream;

    open_device();
    size_t at_start = free_bytes();
    MUST(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
    MUST(driver.mem_alloc_async(&first, scaled(at_start, 12288), stream));
    MUST(driver.launch_host_func(stream, work, NULL));
    MUST(driver.mem_free_async(first, stream));
    expect("rescued", driver.mem_alloc(&second, scaled(at_start, 8192)), CUDA_SUCCESS,
           CUDA_ERROR_OUT_OF_MEMORY);
    if (gpuoomshim_survived_count)
        fprintf(stderr, "shim: survived=%" PRIu64 "\n", gpuoomshim_survived_count());
    outcome("refused", driver.mem_alloc(&refused, scaled(at_start, 10001)));
    MUST(driver.mem_free(second));
    outcome("asked again", driver.mem_alloc(&second, scaled(at_start, 10001)));
    if (gpuoomshim_survived_count)
        fprintf(stderr, "shim: survived=%" PRIu64 "\n", gpuoomshim_survived_count());
    return 0;
}
