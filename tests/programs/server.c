/*
 * A server whose request fails while its cache is in use.  It answers others,
 * small ones, and gets the same request again when the cache is idle, which
 * nobody but the server knows.  Sizes in MiB of the written scenario.
 */
#include <unistd.h>

#include "host.h"

static CUdeviceptr cache;
static bool is_idle;
static int calls;

static int give_back(void *arg, int device, uint64_t wanted_bytes)
{
    (void)arg, (void)device, (void)wanted_bytes;
    calls++;
    if (!is_idle)
        return 1;
    is_idle = false;
    return (int)driver.mem_free(cache);
}

static void small_request(void)
{
    CUdeviceptr small;

    MUST(driver.mem_alloc(&small, MIB));
    MUST(driver.mem_free(small));
}

static void large_request(const char *when, size_t bytes)
{
    CUdeviceptr large;

    small_request();
    expect(when, driver.mem_alloc(&large, bytes), CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY);
    fprintf(stderr, "shim: calls=%d\n", calls);
}

static const struct {
    const char *when;
    unsigned wait_us;
} times[] = {{"while the cache is in use", 0}, {"at once", 0}, {"later", 2200000}};

int main(void)
{
    open_device();
    size_t at_start = free_bytes();
    size_t bytes = scaled(at_start, 8192);
    MUST(driver.mem_alloc(&cache, scaled(at_start, 12288)));
    if (gpuoomshim_register_flush)
        gpuoomshim_register_flush("server", give_back, NULL);
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        usleep(times[i].wait_us);
        large_request(times[i].when, bytes); /* all at one line: one place */
        is_idle = true;
    }
    return 0;
}
