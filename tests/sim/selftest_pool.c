/* Stream-ordered memory: chunks, frees pending and unobserved, giving back. */

#include "selftest.h"

#include <string.h>
#include <unistd.h>

#define RESERVED(pool) pool_bytes(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)
#define USED(pool) pool_bytes(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT)

static CUmemoryPool make_pool(void)
{
    CUmemoryPool pool = NULL;
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CHECK_EQUAL(cu.cuMemPoolCreate(&pool, &properties), 0);
    return pool;
}

static void count_bytes(void)
{
    start_driver();
    CUstream stream = make_stream();
    CUmemoryPool pool = default_pool(0);
    uint64_t before = free_bytes();
    CUdeviceptr first = take_async(1, stream);
    CHECK_EQUAL(RESERVED(pool), 32 * MIB);
    CHECK_EQUAL(USED(pool), 1);
    CUdeviceptr second = take_async(MIB, stream);
    CHECK_EQUAL(RESERVED(pool), 32 * MIB);
    CUdeviceptr third = take_async(33 * MIB, stream);
    CHECK_EQUAL(RESERVED(pool), 64 * MIB);
    CUdeviceptr fourth = take_async(100 * MIB + 1, stream);
    CHECK_EQUAL(RESERVED(pool), 160 * MIB);
    CHECK_EQUAL(USED(pool), 134 * MIB + 2);
    CHECK_EQUAL(before - free_bytes(), 160 * MIB);
    CHECK_EQUAL(cu.cuMemFreeAsync(first, stream), 0);
    CHECK_EQUAL(cu.cuMemFreeAsync(second, stream), 0);
    CHECK_EQUAL(cu.cuMemFreeAsync(third, stream), 0);
    CHECK_EQUAL(cu.cuMemFreeAsync(fourth, stream), 0);
    CHECK_EQUAL(USED(pool), 0);
    CHECK_EQUAL(RESERVED(pool), 160 * MIB);
    usleep(50000);
    CHECK_EQUAL(cu.cuStreamQuery(stream), 0);
    CHECK_EQUAL(RESERVED(pool), 160 * MIB);
    CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
    CHECK_EQUAL(RESERVED(pool), 0);
    CHECK_EQUAL(before, free_bytes());
    CHECK_EQUAL(pool_bytes(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 160 * MIB);
    CHECK_EQUAL(cu.cuMemFreeAsync(first, stream), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cu.cuMemFreeAsync(0, stream), 0);
}

static void move_chunks(void)
{
    start_driver();
    CUstream stream = make_stream();
    CUmemoryPool pool = default_pool(UINT64_MAX);
    CUdeviceptr first = take_async(100 * MIB, stream);
    CUdeviceptr hole = take_async(100 * MIB, stream);
    CUdeviceptr third = take_async(100 * MIB, stream);
    CHECK_EQUAL(RESERVED(pool), 320 * MIB);
    CHECK_EQUAL(hole - first, 100 * MIB);
    CHECK_EQUAL(cu.cuMemFreeAsync(hole, stream), 0);
    CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
    CUdeviceptr fourth = take_async(150 * MIB, stream);
    CHECK_EQUAL(fourth - first, 300 * MIB);
    CHECK_EQUAL(RESERVED(pool), 416 * MIB);
    CUdeviceptr fifth = take_async(50 * MIB, stream);
    CHECK_EQUAL(fifth, hole);
    CHECK_EQUAL(RESERVED(pool), 448 * MIB);
    CHECK_EQUAL(cu.cuMemFreeAsync(fifth, stream), 0);
    CHECK_EQUAL(cu.cuMemFreeAsync(first, stream), 0);
    CHECK_EQUAL(cu.cuMemFreeAsync(fourth, stream), 0);
    CHECK_EQUAL(take_async(300 * MIB, stream), fourth);
    CHECK_EQUAL(RESERVED(pool), 448 * MIB);
    CHECK_EQUAL(cu.cuMemFreeAsync(third, stream), 0);
}

static void reuse_by_stream(void)
{
    start_driver();
    CUstream mine = make_stream();
    CUstream other = make_stream();
    CUmemoryPool pool = default_pool(UINT64_MAX);
    CUdeviceptr first = take_async(100 * MIB, mine);
    CHECK_EQUAL(cu.cuStreamSynchronize(mine), 0);
    occupy(mine, 200);
    CHECK_EQUAL(cu.cuMemFreeAsync(first, mine), 0);
    CUdeviceptr second = take_async(100 * MIB, mine);
    CHECK_EQUAL(second, first);
    CHECK_EQUAL(RESERVED(pool), 128 * MIB);
    CHECK_EQUAL(cu.cuMemFreeAsync(second, mine), 0);
    CUdeviceptr third = take_async(100 * MIB, other);
    CHECK_EQUAL(third - first, 100 * MIB);
    CHECK_EQUAL(RESERVED(pool), 224 * MIB);
    CHECK_EQUAL(cu.cuMemPoolTrimTo(pool, 0), 0);
    CHECK_EQUAL(RESERVED(pool), 224 * MIB);
    usleep(300000);
    CHECK_EQUAL(cu.cuMemPoolTrimTo(pool, 0), 0);
    CHECK_EQUAL(RESERVED(pool), 224 * MIB);
    CUdeviceptr fourth = take_async(100 * MIB, other);
    CHECK_EQUAL(fourth, first);
    CHECK_EQUAL(RESERVED(pool), 224 * MIB);
}

enum look { NOTHING, STREAM_QUERY, EVENT_QUERY, COPY, OTHER_STREAM, EVENT, STREAM, CONTEXT, LOOKS };

static void look_at(enum look look, CUstream stream, CUstream other, CUevent event)
{
    char byte[1];
    CUdeviceptr address = take(512);
    CHECK_EQUAL(look == STREAM_QUERY ? cu.cuStreamQuery(stream) : 0, 0);
    CHECK_EQUAL(look == EVENT_QUERY ? cu.cuEventQuery(event) : 0, 0);
    CHECK_EQUAL(look == COPY ? cu.cuMemcpyDtoH_v2(byte, address, 1) : 0, 0);
    CHECK_EQUAL(look == OTHER_STREAM ? cu.cuStreamSynchronize(other) : 0, 0);
    CHECK_EQUAL(look == EVENT ? cu.cuEventSynchronize(event) : 0, 0);
    CHECK_EQUAL(look == STREAM ? cu.cuStreamSynchronize(stream) : 0, 0);
    CHECK_EQUAL(look == CONTEXT ? cu.cuCtxSynchronize() : 0, 0);
    CHECK_EQUAL(cu.cuMemFree_v2(address), 0);
}

/* Only waiting for the work counts as having seen it; asking does not. */
static void observe(uint64_t threshold_bytes, uint64_t kept_bytes)
{
    CUevent event = NULL;
    start_driver();
    CUstream stream = make_stream();
    CUstream other = make_stream();
    CUmemoryPool pool = default_pool(threshold_bytes);
    CHECK_EQUAL(cu.cuEventCreate(&event, 0), 0);
    CUdeviceptr keep_block = take(512);
    for (enum look look = NOTHING; look < LOOKS; look++) {
        CUdeviceptr address = take_async(GIB, stream);
        CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
        occupy(stream, 5);
        CHECK_EQUAL(cu.cuMemFreeAsync(address, stream), 0);
        CHECK_EQUAL(cu.cuEventRecord(event, stream), 0);
        usleep(40000);
        look_at(look, stream, other, event);
        CHECK_EQUAL(RESERVED(pool), look < EVENT ? GIB : kept_bytes);
        CHECK_EQUAL(cu.cuMemPoolTrimTo(pool, 0), 0);
        CHECK_EQUAL(RESERVED(pool), look < EVENT ? GIB : 0);
        CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
        CHECK_EQUAL(cu.cuMemPoolTrimTo(pool, 0), 0);
    }
    CHECK_EQUAL(cu.cuMemFree_v2(keep_block), 0);
}

static void observe_with_threshold(void)
{
    observe(UINT64_MAX, GIB);
}

static void observe_without_threshold(void)
{
    observe(0, 0);
}

static uint64_t most_of(uint64_t bytes)
{
    return bytes * 3 / 4 / (32 * MIB) * (32 * MIB);
}

/* Scenario 3. */
static void pending_then_observed(void)
{
    CUdeviceptr address = 0;
    start_driver();
    CUstream stream = make_stream();
    CUmemoryPool pool = default_pool(UINT64_MAX);
    uint64_t large = most_of(free_bytes());
    CUdeviceptr held = take_async(large, stream);
    CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
    occupy(stream, 200);
    CHECK_EQUAL(cu.cuMemFreeAsync(held, stream), 0);
    CHECK_EQUAL(cu.cuMemAlloc_v2(&address, large / 2), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(cu.cuMemPoolTrimTo(pool, 0), 0);
    CHECK_EQUAL(RESERVED(pool), large);
    usleep(300000);
    CHECK_EQUAL(cu.cuMemAlloc_v2(&address, large / 2), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
    CHECK_EQUAL(RESERVED(pool), large);
    CHECK_EQUAL(cu.cuMemAlloc_v2(&address, large / 2), 0);
    CHECK_EQUAL(RESERVED(pool), 0);
}

/* Scenario 4. */
static void live_memory_stays(void)
{
    CUdeviceptr address = 0;
    start_driver();
    CUstream stream = make_stream();
    uint64_t large = most_of(free_bytes());
    CUdeviceptr held = take_async(large, stream);
    CHECK_EQUAL(cu.cuMemAllocAsync(&address, large / 2, stream), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(address, 0);
    CHECK_EQUAL(cu.cuMemPoolTrimTo(default_pool(0), 0), 0);
    CHECK_EQUAL(cu.cuMemAllocAsync(&address, large / 2, stream), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(cu.cuMemFreeAsync(held, stream), 0);
}

static void full_device_waits_within_the_pool(void)
{
    start_driver();
    CUstream stream = make_stream();
    CUstream other = make_stream();
    default_pool(UINT64_MAX);
    uint64_t large = most_of(free_bytes());
    CUdeviceptr held = take_async(large, stream);
    CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
    occupy(stream, 200);
    CHECK_EQUAL(cu.cuMemFreeAsync(held, stream), 0);
    CUdeviceptr address = take_async(large / 2, other);
    CHECK_EQUAL(address, held);
    CHECK_EQUAL(cu.cuStreamQuery(other), CUDA_ERROR_NOT_READY);
    CHECK_EQUAL(cu.cuStreamSynchronize(other), 0);
    CHECK_EQUAL(cu.cuStreamQuery(stream), 0);
}

static void pools_take_from_each_other(void)
{
    CUdeviceptr address = 0;
    start_driver();
    CUstream stream = make_stream();
    CUmemoryPool first = default_pool(UINT64_MAX);
    CUmemoryPool second = make_pool();
    uint64_t large = most_of(free_bytes());
    CUdeviceptr held = take_async(large, stream);
    CHECK_EQUAL(cu.cuMemFreeAsync(held, stream), 0);
    usleep(50000);
    CHECK_EQUAL(cu.cuMemAllocFromPoolAsync(&address, large / 2, second, stream),
                CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
    CHECK_EQUAL(RESERVED(first), large);
    CHECK_EQUAL(cu.cuMemAllocFromPoolAsync(&address, large / 2, second, stream), 0);
    CHECK_EQUAL(RESERVED(first), 0);
}

static void failing_request_empties_pools(void)
{
    CUdeviceptr address = 0;
    start_driver();
    CUstream stream = make_stream();
    CUmemoryPool pool = default_pool(UINT64_MAX);
    CHECK_EQUAL(cu.cuMemFreeAsync(take_async(GIB, stream), stream), 0);
    CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
    take(512 * MIB);
    CHECK_EQUAL(RESERVED(pool), GIB);
    CHECK_EQUAL(cu.cuMemAlloc_v2(&address, UINT64_C(1) << 60), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(RESERVED(pool), 0);
}

static void free_across_apis(void)
{
    CUdeviceptr managed = 0;
    start_driver();
    CUstream stream = make_stream();
    CUmemoryPool pool = default_pool(0);
    CUdeviceptr pooled = take_async(256 * MIB, stream);
    CHECK_EQUAL(cu.cuMemFree_v2(pooled), 0);
    CHECK_EQUAL(USED(pool), 256 * MIB);
    CHECK_EQUAL(RESERVED(pool), 0);
    CHECK_EQUAL(cu.cuMemFree_v2(pooled), CUDA_ERROR_INVALID_VALUE);
    uint64_t before = free_bytes();
    CUdeviceptr linear = take(64 * MIB);
    CHECK_EQUAL(cu.cuMemFreeAsync(linear, stream), 0);
    CHECK_EQUAL(before - free_bytes(), 64 * MIB);
    CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
    CHECK_EQUAL(before, free_bytes());
    CHECK_EQUAL(cu.cuMemAllocManaged(&managed, MIB, 1), 0);
    CHECK_EQUAL(cu.cuMemFreeAsync(managed, stream), CUDA_ERROR_NOT_SUPPORTED);
}

static void destroy_pool_in_use(void)
{
    CUdeviceptr address = 0;
    start_driver();
    CUstream stream = make_stream();
    CUmemoryPool pool = make_pool();
    uint64_t before = free_bytes();
    CHECK_EQUAL(cu.cuMemAllocFromPoolAsync(&address, 10 * MIB, pool, stream), 0);
    CHECK_EQUAL(before - free_bytes(), 32 * MIB);
    CHECK_EQUAL(cu.cuMemPoolDestroy(pool), 0);
    CHECK_EQUAL(before - free_bytes(), 32 * MIB);
    CHECK_EQUAL(cu.cuMemFreeAsync(address, stream), 0);
    CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
    CHECK_EQUAL(before, free_bytes());
    CHECK_EQUAL(cu.cuMemPoolDestroy(default_pool(0)), CUDA_ERROR_INVALID_VALUE);
}

static void set_marks(void)
{
    cuuint64_t value = 0;
    start_driver();
    CUmemoryPool pool = default_pool(0);
    CHECK_EQUAL(cu.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &value), 0);
    CHECK_EQUAL(cu.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value),
                CUDA_ERROR_INVALID_VALUE);
    value = 5;
    CHECK_EQUAL(cu.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value),
                CUDA_ERROR_INVALID_VALUE);
}

static void grow_sizes(void)
{
    start_driver();
    CUstream stream = make_stream();
    CUmemoryPool pool = default_pool(UINT64_MAX);
    for (uint64_t i = 1; i <= 64; i++) {
        CUdeviceptr address = take_async(i * 64 * MIB, stream);
        CHECK_EQUAL(cu.cuMemFreeAsync(address, stream), 0);
    }
    CHECK_EQUAL(RESERVED(pool), 4096 * MIB);
}

#define TEST(name, body)                                                                           \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        run_child(body, NULL);                                                                     \
    }

TEST(pool_reserves_chunks_and_counts_exact_bytes, count_bytes)
TEST(idle_chunks_move_to_where_they_are_needed, move_chunks)
TEST(freed_memory_is_reused_by_stream_and_completion, reuse_by_stream)
TEST(only_synchronizing_lets_a_pool_be_trimmed, observe_with_threshold)
TEST(only_synchronizing_releases_above_the_threshold, observe_without_threshold)
TEST(pending_memory_is_given_back_once_observed, pending_then_observed)
TEST(live_memory_cannot_be_trimmed, live_memory_stays)
TEST(full_device_makes_a_stream_wait_for_a_free, full_device_waits_within_the_pool)
TEST(pools_take_observed_idle_memory_from_each_other, pools_take_from_each_other)
TEST(failing_absurd_request_empties_idle_pools, failing_request_empties_pools)
TEST(frees_work_across_interfaces, free_across_apis)
TEST(destroyed_pool_lives_until_its_last_free, destroy_pool_in_use)
TEST(high_water_marks_can_only_be_reset, set_marks)
TEST(growing_sizes_reuse_the_end_of_the_pool, grow_sizes)

const struct CMUnitTest pool_tests[] = {
    cmocka_unit_test(pool_reserves_chunks_and_counts_exact_bytes),
    cmocka_unit_test(idle_chunks_move_to_where_they_are_needed),
    cmocka_unit_test(freed_memory_is_reused_by_stream_and_completion),
    cmocka_unit_test(only_synchronizing_lets_a_pool_be_trimmed),
    cmocka_unit_test(only_synchronizing_releases_above_the_threshold),
    cmocka_unit_test(pending_memory_is_given_back_once_observed),
    cmocka_unit_test(live_memory_cannot_be_trimmed),
    cmocka_unit_test(full_device_makes_a_stream_wait_for_a_free),
    cmocka_unit_test(pools_take_observed_idle_memory_from_each_other),
    cmocka_unit_test(failing_absurd_request_empties_idle_pools),
    cmocka_unit_test(frees_work_across_interfaces),
    cmocka_unit_test(destroyed_pool_lives_until_its_last_free),
    cmocka_unit_test(high_water_marks_can_only_be_reset),
    cmocka_unit_test(growing_sizes_reuse_the_end_of_the_pool),
};
const size_t pool_tests_count = sizeof(pool_tests) / sizeof(pool_tests[0]);
