/* The process itself holds the memory: nothing can help. */
#include "host.h"

int main(void)
{
    CUstream stream;
    CUdeviceptr live, refused = 0;

    open_device();
    size_t at_start = free_bytes();
    MUST(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
    MUST(driver.mem_alloc_async(&live, scaled(at_start, 12288), stream));
    MUST(driver.stream_synchronize(stream));

    CUresult result = driver.mem_alloc_async(&refused, scaled(at_start, 8192), stream);
    expect("allocation beside live memory", result, CUDA_ERROR_OUT_OF_MEMORY,
           CUDA_ERROR_OUT_OF_MEMORY);

    MUST(driver.mem_free_async(live, stream));
    MUST(driver.stream_synchronize(stream));
    MUST(driver.stream_destroy(stream));
    return 0;
}
