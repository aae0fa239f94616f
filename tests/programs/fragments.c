/*
 * Unused memory in pieces, in amounts that can be reckoned by head (README.md
 * does): 256 half-empty blocks of 2 MiB, a pool in which every other of 64
 * buffers of 16 MiB was freed, a pool of 256 MiB that is all idle, and 256 MiB
 * that are free.  Then a picture, before anything fails.
 *   fragments PREFIX
 */
#include "host.h"

#define SMALLS 512
#define BUFFERS 64

static CUmemoryPool make_pool(void)
{
    cuuint64_t no_limit = UINT64_MAX;
    CUmemoryPool pool;
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};

    MUST(driver.pool_create(&pool, &properties));
    MUST(driver.pool_set(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &no_limit));
    return pool;
}

static void fill_blocks(void)
{
    static CUdeviceptr small[SMALLS];

    for (size_t i = 0; i < SMALLS; i++)
        MUST(driver.mem_alloc(&small[i], MIB));
    for (size_t i = 0; i < SMALLS; i += 2)
        MUST(driver.mem_free(small[i]));
}

static void fill_pool(CUstream stream)
{
    static CUdeviceptr buffer[BUFFERS];
    CUmemoryPool pool = make_pool();

    for (size_t i = 0; i < BUFFERS; i++)
        MUST(driver.mem_alloc_from_pool(&buffer[i], 16 * MIB, pool, stream));
    for (size_t i = 0; i < BUFFERS; i += 2)
        MUST(driver.mem_free_async(buffer[i], stream));
}

static void fill_idle_pool(CUstream stream)
{
    CUdeviceptr once;

    MUST(driver.mem_alloc_from_pool(&once, 256 * MIB, make_pool(), stream));
    MUST(driver.mem_free_async(once, stream));
}

int main(int count, char **words)
{
    CUdeviceptr rest, refused = 0;
    CUstream stream;

    open_device();
    MUST(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
    fill_blocks();
    fill_pool(stream);
    fill_idle_pool(stream);
    MUST(driver.stream_synchronize(stream));
    MUST(driver.mem_alloc(&rest, free_bytes() - 256 * MIB));
    snapshot(count > 1 ? words[1] : NULL);
    /* The idle pool is given up for it, which is not enough; the pieces are not. */
    expect("768 MiB where 512 MiB can be had", driver.mem_alloc(&refused, 768 * MIB),
           CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
    return 0;
}
