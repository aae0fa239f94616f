/*
 * XLA asks for all there is, then for less and less, until something fits.
 *   xla_shape LIBRARY ROUNDS      LIBRARY: the stand-in for XLA
 */
#include <time.h>

#include "host.h"

typedef int take_function(CUresult (*)(CUdeviceptr *, size_t), CUdeviceptr *, size_t);

static uint64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

int main(int count, char **words)
{
    CUdeviceptr live, memory = 0;
    take_function *take;
    uint64_t fastest_us = UINT64_MAX;
    int refused = 0;

    if (count < 3)
        return 1;
    open_device();
    *(void **)&take = function_of(words[1], "stub_xla_take");
    size_t at_start = free_bytes();
    MUST(driver.mem_alloc(&live, scaled(at_start, 4096)));
    for (int round = atoi(words[2]); round > 0; round--) {
        uint64_t begin = now_us();
        refused = take(driver.mem_alloc, &memory, scaled(at_start, 15872));
        uint64_t took_us = now_us() - begin;
        if (refused < 1)
            return 1;
        fastest_us = took_us < fastest_us ? took_us : fastest_us;
        MUST(driver.mem_free(memory));
    }
    printf("outcome: refused %d times before something fits\n", refused);
    fprintf(stderr, "shim: fastest_us=%" PRIu64 "\n", fastest_us);
    if (gpuoomshim_survived_count)
        fprintf(stderr, "shim: survived=%" PRIu64 "\n", gpuoomshim_survived_count());
    MUST(driver.mem_free(live));
    return 0;
}
