/*
 * The device is full and the host refuses as well: what each failing call
 * answers and what it leaves in its out-parameters.
 */
#include "host.h"

#define MARK 0x4d41524bu

static const char *left(uint64_t out)
{
    if (out == MARK)
        return "untouched";
    return out == 0 ? "zero" : "something";
}

static void tell(const char *what, CUresult result, uint64_t out)
{
    printf("outcome: %s %d, %s\n", what, (int)result, left(out));
    fflush(stdout);
}

static void tell_ordered(size_t bytes)
{
    CUdeviceptr memory = MARK;
    CUmemoryPool pool;
    CUstream stream;

    MUST(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
    tell("in stream order", driver.mem_alloc_async(&memory, bytes, stream), memory);
    MUST(driver.pool_default(&pool, 0));
    memory = MARK;
    tell("from a pool", driver.mem_alloc_from_pool(&memory, bytes, pool, stream), memory);
    MUST(driver.stream_destroy(stream));
}

static void tell_physical(size_t bytes)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemGenericAllocationHandle handle = MARK;

    tell("physical", driver.mem_create(&handle, bytes, &prop, 0), handle);
}

static void tell_other(void)
{
    size_t absurd = (size_t)1 << 60;
    CUdeviceptr memory = MARK;
    void *pinned = (void *)(uintptr_t)MARK; /* NOLINT: a mark, not an address */

    tell("managed", driver.mem_alloc_managed(&memory, absurd, CU_MEM_ATTACH_GLOBAL), memory);
    tell("pinned", driver.mem_host_alloc(&pinned, absurd, 0), (uint64_t)(uintptr_t)pinned);
    memory = MARK;
    tell("addresses", driver.mem_reserve(&memory, absurd, 0, 0, 0), memory);
}

int main(void)
{
    CUdeviceptr live, memory = MARK;
    size_t pitch = MARK;

    open_device();
    size_t at_start = free_bytes(), bytes = scaled(at_start, 8192);
    MUST(driver.mem_alloc(&live, scaled(at_start, 12288)));
    tell("device", driver.mem_alloc(&memory, bytes), memory);
    memory = MARK;
    CUresult result = driver.mem_alloc_pitch(&memory, &pitch, bytes >> 10, 1 << 10, 16);
    tell("rows", result, memory);
    tell("pitch of rows", result, pitch);
    tell_ordered(bytes);
    tell_physical(bytes);
    tell_other();
    MUST(driver.mem_free(live));
    return 0;
}
