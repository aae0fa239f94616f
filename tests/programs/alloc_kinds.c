/*
 * One allocation of every kind, all alive at once, then all freed.
 *   alloc_kinds [prefix of a snapshot to take while all are alive]
 */
#include "host.h"

static CUstream stream;

struct kinds {
    CUdeviceptr device, pitched, managed, ordered, pooled, mapped;
    void *pinned, *pinned_flags, *registered;
    CUmemoryPool pool;
    CUmemGenericAllocationHandle handle;
    size_t mapped_bytes;
};

static CUmemLocation device_0(void)
{
    CUmemLocation location = {0};
    location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return location;
}

static void make_device(struct kinds *kinds)
{
    size_t pitch;
    MUST(driver.mem_alloc(&kinds->device, 3 * MIB));
    MUST(driver.mem_alloc_pitch(&kinds->pitched, &pitch, 1000, 100, 4));
    MUST(driver.mem_alloc_managed(&kinds->managed, MIB, CU_MEM_ATTACH_GLOBAL));
}

static void make_host(struct kinds *kinds)
{
    MUST(driver.mem_alloc_host(&kinds->pinned, MIB));
    MUST(driver.mem_host_alloc(&kinds->pinned_flags, MIB, CU_MEMHOSTALLOC_PORTABLE));
    kinds->registered = aligned_alloc(4096, MIB);
    MUST(driver.mem_host_register(kinds->registered, MIB, 0));
}

static void make_ordered(struct kinds *kinds)
{
    CUmemPoolProps props = {0};
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location = device_0();
    MUST(driver.pool_create(&kinds->pool, &props));
    MUST(driver.mem_alloc_async(&kinds->ordered, MIB, stream));
    MUST(driver.mem_alloc_from_pool(&kinds->pooled, MIB, kinds->pool, stream));
}

static void make_mapped(struct kinds *kinds)
{
    CUmemAllocationProp prop = {0};
    CUmemAccessDesc access = {0};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = device_0();
    access.location = prop.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;

    MUST(driver.granularity(&kinds->mapped_bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    MUST(driver.mem_create(&kinds->handle, kinds->mapped_bytes, &prop, 0));
    MUST(driver.mem_reserve(&kinds->mapped, kinds->mapped_bytes, 0, 0, 0));
    MUST(driver.mem_map(kinds->mapped, kinds->mapped_bytes, 0, kinds->handle, 0));
    MUST(driver.mem_set_access(kinds->mapped, kinds->mapped_bytes, &access, 1));
}

static void free_all(struct kinds *kinds)
{
    MUST(driver.mem_free(kinds->device));
    MUST(driver.mem_free(kinds->pitched));
    MUST(driver.mem_free(kinds->managed));
    MUST(driver.mem_free_host(kinds->pinned));
    MUST(driver.mem_free_host(kinds->pinned_flags));
    MUST(driver.mem_host_unregister(kinds->registered));
    free(kinds->registered);
    MUST(driver.mem_free_async(kinds->ordered, stream));
    MUST(driver.mem_free_async(kinds->pooled, stream));
    MUST(driver.stream_synchronize(stream));
    MUST(driver.pool_destroy(kinds->pool));
    MUST(driver.mem_unmap(kinds->mapped, kinds->mapped_bytes));
    MUST(driver.mem_release(kinds->handle));
    MUST(driver.mem_unreserve(kinds->mapped, kinds->mapped_bytes));
}

int main(int count, char **words)
{
    struct kinds kinds = {0};

    open_device();
    MUST(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
    make_device(&kinds);
    make_host(&kinds);
    make_ordered(&kinds);
    make_mapped(&kinds);
    outcome("all kinds made", CUDA_SUCCESS);
    tell_live();
    if (count > 1)
        snapshot(words[1]);

    free_all(&kinds);
    MUST(driver.stream_destroy(stream));
    outcome("all kinds freed", CUDA_SUCCESS);
    tell_live();
    return 0;
}
