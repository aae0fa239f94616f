/* The process itself holds the memory: nothing can help. */
#include <time.h>

#include "host.h"

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

int main(void)
{
    CUstream stream;
    CUdeviceptr live, refused = 0;

    open_device();
    size_t at_start = free_bytes();
    MUST(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
    MUST(driver.mem_alloc_async(&live, scaled(at_start, 12288), stream));
    MUST(driver.stream_synchronize(stream));

    uint64_t begin = now_ms();
    CUresult result = driver.mem_alloc_async(&refused, scaled(at_start, 8192), stream);
    fprintf(stderr, "shim: took_ms=%" PRIu64 "\n", now_ms() - begin);
    expect("allocation beside live memory", result, CUDA_ERROR_OUT_OF_MEMORY,
           CUDA_ERROR_OUT_OF_MEMORY);

    MUST(driver.mem_free_async(live, stream));
    MUST(driver.stream_synchronize(stream));
    MUST(driver.stream_destroy(stream));
    return 0;
}
