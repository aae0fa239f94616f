/*
 * Twins of scenario_3.c: memory is pending in stream order and something is
 * asked for that needs it.  Sizes in MiB of the written scenario.
 *   pending_kinds legacy       freed on the legacy default stream
 *   pending_kinds per-thread   freed on the per-thread default stream
 *   pending_kinds own-pool     it is of a pool that the program made
 *   pending_kinds two          half of it on each of two streams, and both halves are needed
 *   pending_kinds thread       freed by another thread, which has ended
 *   pending_kinds in-order     asked for with cuMemAllocAsync, from another pool and stream
 *   pending_kinds physical     asked for with cuMemCreate
 *   pending_kinds rows         asked for with cuMemAllocPitch
 *   pending_kinds device       freed on the first device, asked for on the second: no help there
 */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "host.h"

static const char *how;
static CUcontext context;
static CUstream first, second;
static size_t at_start;
static CUdeviceptr memory[2];

static bool is(const char *word)
{
    return strcmp(how, word) == 0;
}

static void work(void *unused)
{
    (void)unused;
    usleep(200000);
}

static CUmemoryPool make_pool(bool own)
{
    CUmemoryPool pool;
    cuuint64_t keep_all = UINT64_MAX;
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};

    if (own)
        MUST(driver.pool_create(&pool, &properties));
    else
        MUST(driver.pool_default(&pool, 0));
    MUST(driver.pool_set(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep_all));
    return pool;
}

static void free_behind_work(CUdeviceptr pointer, CUstream stream)
{
    MUST(driver.launch_host_func(stream, work, NULL));
    MUST(driver.mem_free_async(pointer, stream));
}

static void *free_elsewhere(void *unused)
{
    (void)unused;
    MUST(driver.context_set(context));
    free_behind_work(memory[0], first);
    return NULL;
}

static void fill(void)
{
    CUmemoryPool pool = make_pool(is("own-pool"));

    for (int i = 0; i < 2; i++)
        MUST(driver.mem_alloc_from_pool(&memory[i], scaled(at_start, 7168), pool, first));
    MUST(driver.stream_synchronize(first));
}

static void free_it(void)
{
    pthread_t thread;

    if (is("thread") && pthread_create(&thread, NULL, free_elsewhere, NULL) == 0)
        pthread_join(thread, NULL);
    else
        free_behind_work(memory[0], first);
    if (is("two"))
        free_behind_work(memory[1], second);
}

static CUresult ask_physical(size_t bytes)
{
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemGenericAllocationHandle handle;
    CUresult result = driver.mem_create(&handle, bytes, &properties, 0);

    if (result == CUDA_SUCCESS)
        MUST(driver.mem_release(handle));
    return result;
}

static CUresult ask(void)
{
    size_t bytes = scaled(at_start, is("two") ? 12288 : 6144), pitch;
    CUdeviceptr wanted = 0;

    if (is("physical"))
        return ask_physical(bytes);
    if (is("rows"))
        return driver.mem_alloc_pitch(&wanted, &pitch, bytes >> 14, 1 << 14, 16);
    if (is("in-order"))
        return driver.mem_alloc_from_pool(&wanted, bytes, make_pool(true), second);
    return driver.mem_alloc(&wanted, bytes);
}

static CUresult ask_on_second_device(void)
{
    CUdeviceptr live, wanted = 0;
    CUcontext there;

    MUST(driver.primary_retain(&there, 1));
    MUST(driver.context_set(there));
    MUST(driver.mem_alloc(&live, scaled(at_start, 12288)));
    return driver.mem_alloc(&wanted, scaled(at_start, 6144));
}

int main(int count, char **words)
{
    how = count > 1 ? words[1] : "legacy";
    open_device();
    MUST(driver.context_get(&context));
    at_start = free_bytes();
    MUST(driver.stream_create(&first, CU_STREAM_NON_BLOCKING));
    MUST(driver.stream_create(&second, CU_STREAM_NON_BLOCKING));
    first = is("legacy") ? CU_STREAM_LEGACY : is("per-thread") ? CU_STREAM_PER_THREAD : first;
    fill();
    free_it();
    CUresult result = is("device") ? ask_on_second_device() : ask();
    expect("asked", result, CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY);
    MUST(driver.context_set(context));
    MUST(driver.stream_synchronize(first));
    MUST(driver.stream_synchronize(second));
    return 0;
}
