/* A free waits behind work that does not end: only the first failure may wait for it. */
#include <time.h>
#include <unistd.h>

#include "host.h"

static void work(void *unused)
{
    (void)unused;
    sleep(100);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(void)
{
    CUdeviceptr live, freed, refused;
    CUstream stream;

    open_device();
    size_t at_start = free_bytes();
    MUST(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
    MUST(driver.mem_alloc(&live, scaled(at_start, 4096)));
    MUST(driver.mem_alloc_async(&freed, scaled(at_start, 8192), stream));
    MUST(driver.launch_host_func(stream, work, NULL));
    MUST(driver.mem_free_async(freed, stream));
    outcome("first", driver.mem_alloc(&refused, scaled(at_start, 8192)));
    double before = seconds();
    for (unsigned i = 1; i <= 10; i++)
        outcome("later", driver.mem_alloc(&refused, scaled(at_start, 8192) + i * 2 * MIB));
    printf("outcome: the later ones waited %d\n", seconds() - before > 1.0);
    fflush(stdout);
    _exit(0); /* the stream is never done */
}
