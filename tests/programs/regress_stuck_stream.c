/*
 * A stream works without end, and what is freed behind that cannot come back.
 *   regress_stuck_stream tiny    2 are freed behind it, and the program keeps 12,288 idle
 *   regress_stuck_stream other   40 are freed behind it, and 12,288 on a stream that is done
 *   regress_stuck_stream enough  6144 are freed behind it, and the program keeps 8192 idle
 *   regress_stuck_stream both    the stream does end, after 300 ms; 4096 are freed behind it, and
 *                                the program keeps 4096 idle and 4096 in use: neither would do
 * Then 7168 are asked for (both: 9216).  Sizes in MiB of the written scenario; what is idle is
 * given back by a callback.
 */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "host.h"

static const char *how;
static size_t at_start;
static CUdeviceptr idle;
static CUmemoryPool pool;

static bool is(const char *word)
{
    return strcmp(how, word) == 0;
}

static void work(void *unused)
{
    (void)unused;
    if (is("both"))
        usleep(300000);
    else
        sleep(100);
}

static int give_back(void *arg, int device, uint64_t wanted_bytes)
{
    (void)arg, (void)device, (void)wanted_bytes;
    CUresult result = idle ? driver.mem_free(idle) : CUDA_SUCCESS;
    idle = 0;
    return result;
}

static void keep_idle(unsigned mib)
{
    MUST(driver.mem_alloc(&idle, scaled(at_start, mib)));
    if (gpuoomshim_register_flush)
        gpuoomshim_register_flush("keeper", give_back, NULL);
}

static void free_in_order(size_t bytes, bool at_work)
{
    CUdeviceptr freed;
    CUstream stream;

    MUST(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
    MUST(driver.mem_alloc_async(&freed, bytes, stream));
    MUST(driver.stream_synchronize(stream));
    if (at_work)
        MUST(driver.launch_host_func(stream, work, NULL));
    MUST(driver.mem_free_async(freed, stream));
}

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void set_up(void)
{
    if (is("tiny") || is("both"))
        keep_idle(is("tiny") ? 12288 : 4096);
    if (is("enough"))
        keep_idle(8192);
    if (is("other"))
        free_in_order(scaled(at_start, 12288), false);
    if (is("both")) {
        CUdeviceptr live;
        MUST(driver.mem_alloc(&live, scaled(at_start, 4096)));
        free_in_order(scaled(at_start, 4096), true);
    } else if (is("enough")) {
        free_in_order(scaled(at_start, 6144), true);
    } else {
        free_in_order((is("tiny") ? 2 : 40) * MIB, true);
    }
}

int main(int count, char **words)
{
    CUdeviceptr memory;
    cuuint64_t keep_all = UINT64_MAX;

    how = count > 1 ? words[1] : "tiny";
    open_device();
    at_start = free_bytes();
    MUST(driver.pool_default(&pool, 0));
    MUST(driver.pool_set(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep_all));
    set_up();
    uint64_t began_ms = now_ms();
    expect("asked", driver.mem_alloc(&memory, scaled(at_start, is("both") ? 9216 : 7168)),
           CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY);
    fprintf(stderr, "shim: took_ms=%" PRIu64 "\n", now_ms() - began_ms);
    fflush(stdout);
    _exit(0); /* the stream is never done */
}
