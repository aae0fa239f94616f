/*
 * Two devices: memory is on the device it was asked from, whichever is current,
 * and whoever frees it.
 */
#define HOST_FUNCTIONS(F)                                                                          \
    F(device_can_access, cuDeviceCanAccessPeer)                                                    \
    F(context_enable_peer, cuCtxEnablePeerAccess)                                                  \
    F(pool_set_access, cuMemPoolSetAccess)

#include "own.h"

static CUcontext contexts[2];
static CUstream streams[2];
static size_t own[2];

static void open_devices(void)
{
    int count = 0;

    load_driver();
    if (driver.init(0) != CUDA_SUCCESS || driver.device_count(&count) != CUDA_SUCCESS ||
        count < 2) {
        printf("outcome: fewer than two devices\n");
        exit(77);
    }
    for (int i = 0; i < 2; i++) {
        MUST(driver.primary_retain(&contexts[i], i));
        MUST(driver.context_set(contexts[i]));
        MUST(driver.stream_create(&streams[i], CU_STREAM_NON_BLOCKING));
    }
}

static void tell(const char *moment)
{
    char name[64];

    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof(name), "%s%d", moment, i);
        tell_books(name, i, own[i]);
    }
}

/* What the driver may refuse counts only where it does not. */
static bool took(const char *what, CUresult result, int device, size_t bytes)
{
    outcome(what, result);
    own[device] += result == CUDA_SUCCESS ? bytes : 0;
    return result == CUDA_SUCCESS;
}

static bool gave(const char *what, CUresult result, int device, size_t bytes)
{
    outcome(what, result);
    own[device] -= result == CUDA_SUCCESS ? bytes : 0;
    return result == CUDA_SUCCESS;
}

static void from_each_context(void)
{
    CUdeviceptr first = 0, second = 0;

    MUST(driver.context_set(contexts[0]));
    took("alloc on 0", driver.mem_alloc(&first, 3 * MIB), 0, 3 * MIB);
    MUST(driver.context_set(contexts[1]));
    took("alloc on 1", driver.mem_alloc(&second, 5 * MIB), 1, 5 * MIB);
    tell("each");
    gave("free of 0 while 1 is current", driver.mem_free(first), 0, 3 * MIB);
    MUST(driver.context_set(contexts[0]));
    gave("free of 1 while 0 is current", driver.mem_free(second), 1, 5 * MIB);
    tell("crossed");
}

/* Context 0 is current all the time. */
static void from_streams(void)
{
    CUdeviceptr memory = 0;

    if (!took("async from a stream of 1", driver.mem_alloc_async(&memory, 7 * MIB, streams[1]), 1,
              7 * MIB))
        return;
    tell("stream");
    MUST(driver.stream_synchronize(streams[1]));
    if (!gave("async free on a stream of 0", driver.mem_free_async(memory, streams[0]), 1, 7 * MIB))
        gave("async free on a stream of 1", driver.mem_free_async(memory, streams[1]), 1, 7 * MIB);
    tell("streamfreed");
}

static void from_a_pool(void)
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = on_device(1)};
    CUmemAccessDesc access = {.location = on_device(0),
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemoryPool pool = NULL;
    CUdeviceptr memory = 0;
    int can = 0;

    MUST(driver.pool_create(&pool, &props));
    MUST(driver.device_can_access(&can, 0, 1));
    if (can)
        outcome("access for 0", driver.pool_set_access(pool, &access, 1));
    if (took("from a pool of 1 on a stream of 0",
             driver.mem_alloc_from_pool(&memory, 2 * MIB, pool, streams[0]), 1, 2 * MIB)) {
        tell("pool");
        gave("freed", driver.mem_free_async(memory, streams[0]), 1, 2 * MIB);
    }
    MUST(driver.stream_synchronize(streams[0]));
    MUST(driver.pool_destroy(pool));
    tell("poolgone");
}

static void from_a_location(void)
{
    CUmemAllocationProp prop = pinned_on(1);
    CUmemGenericAllocationHandle handle = 0;
    size_t bytes = 0;

    MUST(driver.granularity(&bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    if (!took("physical memory of 1", driver.mem_create(&handle, bytes, &prop, 0), 1, bytes))
        return;
    tell("physical");
    gave("released", driver.mem_release(handle), 1, bytes);
}

static void with_peer_access(void)
{
    CUdeviceptr memory = 0;
    int can = 0;

    MUST(driver.device_can_access(&can, 0, 1));
    if (can)
        outcome("peer access", driver.context_enable_peer(contexts[1], 0));
    took("alloc on 0 with a peer", driver.mem_alloc(&memory, MIB), 0, MIB);
    tell("peer");
    gave("freed", driver.mem_free(memory), 0, MIB);
}

/* What was allocated in a context ends with it, on its device alone. */
static void with_a_context_that_ends(void)
{
    CUdeviceptr kept = 0, lost = 0;

    took("alloc on 0", driver.mem_alloc(&kept, MIB), 0, MIB);
    MUST(driver.context_set(contexts[1]));
    took("alloc on 1", driver.mem_alloc(&lost, 9 * MIB), 1, 9 * MIB);
    MUST(driver.stream_destroy(streams[1]));
    MUST(driver.context_set(contexts[0]));
    tell("both");
    gave("end of the context of 1", driver.primary_release(1), 1, 9 * MIB);
    tell("one");
    gave("freed", driver.mem_free(kept), 0, MIB);
    tell("none");
}

int main(void)
{
    open_devices();
    from_each_context();
    from_streams();
    from_a_pool();
    from_a_location();
    with_peer_access();
    with_a_context_that_ends();
    return 0;
}
