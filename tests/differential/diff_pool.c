/* Stream-ordered memory and its pools. */
#include <string.h>

#include "diff_world.h"

/* Slots 0 and 1 are the devices' default pools. */
static struct diff_pool *pool_of(long long number)
{
    return &world.pools[diff_slot(number, DIFF_POOLS)];
}

static struct diff_memory *empty_slot(long long number)
{
    struct diff_memory *slot = &world.memories[diff_slot(number, DIFF_MEMORIES)];

    return slot->family == DIFF_NOTHING ? slot : NULL;
}

/* Where memory without a named pool comes from: the device of the stream. */
static int device_of(long long stream, int thread)
{
    int slot = diff_slot(stream, DIFF_STREAMS);
    int context = slot < 2 || world.streams[slot].handle == NULL ? world.current[thread]
                                                                 : world.streams[slot].context;

    return context == DIFF_NO_CONTEXT ? -1 : world.contexts[context].device;
}

static struct diff_memory pooled(const struct diff_step *step, int device)
{
    bool captured = world.streams[diff_slot(step->c, DIFF_STREAMS)].in_capture;

    return (struct diff_memory){
        .family = captured ? DIFF_GRAPH : DIFF_POOLED,
        .bytes = (uint64_t)step->b,
        .device = device,
        .context = DIFF_NO_CONTEXT,
    };
}

static void alloc(const struct diff_step *step)
{
    struct diff_memory *slot = empty_slot(step->a);
    struct diff_memory made = pooled(step, device_of(step->c, step->thread));

    if (slot != NULL)
        diff_made(cu.alloc_async(&made.address, (size_t)step->b, diff_stream_of(step->c)), slot,
                  made);
}

/* Stream 0 by the name that means the per-thread stream. */
static void alloc_per_thread(const struct diff_step *step)
{
    struct diff_memory *slot = empty_slot(step->a);
    struct diff_memory made = pooled(step, device_of(0, step->thread));

    made.family = DIFF_POOLED;
    if (slot != NULL)
        diff_made(cu.alloc_async_per_thread(&made.address, (size_t)step->b, NULL), slot, made);
}

/* c: stream and pool in one. */
static void alloc_from(const struct diff_step *step)
{
    struct diff_memory *slot = empty_slot(step->a);
    const struct diff_pool *pool = pool_of(step->c / DIFF_STREAMS);
    struct diff_memory made = pooled(step, pool->device);

    if (slot == NULL || pool->handle == NULL)
        return;
    diff_made(
        cu.alloc_from_pool(&made.address, (size_t)step->b, pool->handle, diff_stream_of(step->c)),
        slot, made);
}

static bool can_be_freed_in_order(const struct diff_memory *memory)
{
    return memory->family == DIFF_POOLED || memory->family == DIFF_GRAPH ||
           memory->family == DIFF_DEVICE || memory->family == DIFF_MANAGED;
}

static void free_in_order(const struct diff_step *step)
{
    const struct diff_memory *memory = &world.memories[diff_slot(step->a, DIFF_MEMORIES)];
    CUdeviceptr address = memory->address;
    bool captured = world.streams[diff_slot(step->b, DIFF_STREAMS)].in_capture;

    if (!can_be_freed_in_order(memory))
        return;
    CUresult result = cu.free_async(address, diff_stream_of(step->b));
    if (captured)
        diff_result(result); /* a node: the memory is there until it runs, and graph-owned */
    else
        diff_gone(result, address);
}

static void free_per_thread(const struct diff_step *step)
{
    const struct diff_memory *memory = &world.memories[diff_slot(step->a, DIFF_MEMORIES)];
    CUdeviceptr address = memory->address;

    if (can_be_freed_in_order(memory))
        diff_gone(cu.free_async_per_thread(address, NULL), address);
}

static void create(const struct diff_step *step)
{
    struct diff_pool *pool = pool_of(step->a);
    CUmemPoolProps props = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = diff_device(step->b)}};

    if (pool->handle != NULL)
        return;
    diff_result(cu.pool_create(&pool->handle, &props));
    pool->device = diff_device(step->b);
}

static bool is_in_use(const struct diff_pool *pool)
{
    for (int i = 0; i < DIFF_DEVICES; i++)
        if (&world.pools[i] == pool)
            return true;
    return pool->handle == NULL;
}

/* It stays for what is alive in it, and goes with the last free. */
static void destroy_one(struct diff_pool *pool)
{
    diff_result(cu.device_pool_set(pool->device, world.pools[pool->device].handle));
    diff_result(cu.pool_destroy(pool->handle));
    memset(pool, 0, sizeof(*pool));
}

static void destroy(const struct diff_step *step)
{
    struct diff_pool *pool = pool_of(step->a);

    if (!is_in_use(pool) && !world.anything_held)
        destroy_one(pool);
}

static void trim(const struct diff_step *step)
{
    const struct diff_pool *pool = pool_of(step->a);

    if (pool->handle != NULL)
        diff_result(cu.pool_trim(pool->handle, (size_t)step->b));
}

static void set_threshold(const struct diff_step *step)
{
    const struct diff_pool *pool = pool_of(step->a);
    cuuint64_t bytes = (cuuint64_t)step->b;

    if (pool->handle != NULL)
        diff_result(cu.pool_set(pool->handle, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes));
}

static void tell(const struct diff_step *step)
{
    static const CUmemPool_attribute attributes[] = {CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
                                                     CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
                                                     CU_MEMPOOL_ATTR_USED_MEM_HIGH};
    const struct diff_pool *pool = pool_of(step->a);

    for (int i = 0; i < 3 && pool->handle != NULL; i++) {
        cuuint64_t bytes = 0;
        diff_result(cu.pool_get(pool->handle, attributes[i], &bytes));
        diff_say(" %llu", (unsigned long long)bytes);
    }
}

/* From now on, streams of the device take their memory there. */
static void make_current(const struct diff_step *step)
{
    const struct diff_pool *pool = pool_of(step->a);

    if (pool->handle != NULL)
        diff_result(cu.device_pool_set(pool->device, pool->handle));
}

void diff_clean_pools(void)
{
    cuuint64_t nothing = 0;

    for (int i = DIFF_DEVICES; i < DIFF_POOLS; i++)
        if (world.pools[i].handle != NULL)
            destroy_one(&world.pools[i]);
    for (int i = 0; i < world.device_count; i++) {
        cu.device_pool_set(i, world.pools[i].handle);
        diff_result(
            cu.pool_set(world.pools[i].handle, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &nothing));
        diff_result(cu.pool_trim(world.pools[i].handle, 0));
    }
}

const struct diff_operation diff_pool_operations[] = {
    {"alloc_async", alloc},
    {"alloc_per_thread", alloc_per_thread},
    {"alloc_from", alloc_from},
    {"free_async", free_in_order},
    {"free_per_thread", free_per_thread},
    {"pool_create", create},
    {"pool_destroy", destroy},
    {"pool_trim", trim},
    {"pool_threshold", set_threshold},
    {"pool_tell", tell},
    {"pool_current", make_current},
    {NULL, NULL},
};
