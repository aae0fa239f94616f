/*
 * Device memory is short, and each step of recovery has its situation:
 *   recovery full [HOW]     512 MiB are free and 1024 asked with cuMemAlloc
 *   recovery async [HOW]    the same with cuMemAllocAsync on a stream
 *   recovery idle           a pool keeps 8192 idle, and the next request is refused (by order)
 *   recovery pending        12,288 are freed behind work of 300 ms, and 8192 asked
 *   recovery hopeless       2048 are freed in stream order, and more is asked than that makes free
 *   recovery again          full; then room is made, and a moment later memory is used
 * HOW the memory is freed in the end: free, free_async, free_behind_work.
 * Sizes in MiB of the written scenario.  After each request the thread must be
 * as it was: context (and so device), mode of capture.
 */
#include <string.h>
#include <unistd.h>

#include "host.h"

static CUcontext context;
static CUstream stream;

static void be_somewhere(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;

    open_device();
    MUST(driver.context_get(&context));
    MUST(driver.capture_mode(&mode));
    MUST(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
}

static void tell_where(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    CUcontext now;

    MUST(driver.context_get(&now));
    MUST(driver.capture_mode(&mode));
    printf("outcome: still there: context %d, mode %d\n", now == context,
           mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

static CUresult ask(CUdeviceptr *memory, size_t bytes, bool in_order)
{
    CUresult result =
        in_order ? driver.mem_alloc_async(memory, bytes, stream) : driver.mem_alloc(memory, bytes);
    expect("asked", result, CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY);
    tell_where();
    return result;
}

static void work(void *unused)
{
    (void)unused;
    usleep(300000);
}

/* The work may still run when the free has returned. */
static void give_back(CUdeviceptr memory, const char *how)
{
    CUresult result;

    if (strcmp(how, "free") == 0) {
        result = driver.mem_free(memory);
    } else {
        if (strcmp(how, "free_behind_work") == 0)
            MUST(driver.launch_host_func(stream, work, NULL));
        result = driver.mem_free_async(memory, stream);
    }
    outcome(how, result);
    MUST(driver.stream_synchronize(stream));
    tell_where();
}

/* The first allocation is small: what is to be held back is held back then. */
static size_t fill(CUdeviceptr *small, CUdeviceptr *live)
{
    size_t at_start = free_bytes();

    MUST(driver.mem_alloc(small, 2 * MIB));
    MUST(driver.mem_alloc(live, free_bytes() - scaled(at_start, 512)));
    return at_start;
}

static void full(bool in_order, const char *how)
{
    CUdeviceptr small, live, memory = 0;
    size_t at_start = fill(&small, &live);

    if (ask(&memory, scaled(at_start, 1024), in_order) == CUDA_SUCCESS) {
        tell_live();
        give_back(memory, how);
    }
    MUST(driver.mem_free(small)); /* also a moment at which late frees are done */
    tell_live();
    MUST(driver.mem_free(live));
}

static void idle(void)
{
    CUmemoryPool pool;
    CUdeviceptr big, memory = 0;
    cuuint64_t keep_all = UINT64_MAX;
    size_t at_start = free_bytes();

    MUST(driver.pool_default(&pool, 0));
    MUST(driver.pool_set(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep_all));
    MUST(driver.mem_alloc_async(&big, scaled(at_start, 8192), stream));
    MUST(driver.mem_free_async(big, stream));
    MUST(driver.stream_synchronize(stream));
    ask(&memory, scaled(at_start, 1024), false);
}

static void pending(unsigned live_mib, unsigned freed_mib, unsigned asked_mib, bool at_work)
{
    CUmemoryPool pool;
    CUdeviceptr live, big, memory = 0;
    cuuint64_t keep_all = UINT64_MAX;
    size_t at_start = free_bytes();

    MUST(driver.pool_default(&pool, 0));
    MUST(driver.pool_set(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep_all));
    MUST(driver.mem_alloc(&live, scaled(at_start, live_mib)));
    MUST(driver.mem_alloc_async(&big, scaled(at_start, freed_mib), stream));
    MUST(driver.stream_synchronize(stream));
    if (at_work)
        MUST(driver.launch_host_func(stream, work, NULL));
    MUST(driver.mem_free_async(big, stream));
    ask(&memory, scaled(at_start, asked_mib), false);
    MUST(driver.stream_synchronize(stream));
}

static void again(void)
{
    CUdeviceptr small, live, memory = 0;
    size_t at_start = fill(&small, &live);

    ask(&memory, scaled(at_start, 1024), false);
    MUST(driver.mem_free(live));
    for (int i = 0; i < 24; i++) {
        usleep(50000);
        MUST(driver.mem_alloc(&live, 4 * MIB));
        MUST(driver.mem_free(live));
    }
}

int main(int count, char **words)
{
    const char *situation = count > 1 ? words[1] : "full";
    const char *how = count > 2 ? words[2] : "free";

    be_somewhere();
    if (strcmp(situation, "idle") == 0)
        idle();
    else if (strcmp(situation, "pending") == 0)
        pending(512, 12288, 8192, true);
    else if (strcmp(situation, "hopeless") == 0)
        pending(4096, 2048, 12000, false);
    else if (strcmp(situation, "again") == 0)
        again();
    else
        full(strcmp(situation, "async") == 0, how);
    return 0;
}
