/* Device blocks, limits, host memory, address space, contexts and modules. */

#include "selftest.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static void calls_before_init(void)
{
    CUdeviceptr address = 0;
    CUdevice device = 0;
    load_driver();
    CHECK_EQUAL(cu.cuMemAlloc_v2(&address, 1), CUDA_ERROR_NOT_INITIALIZED);
    CHECK_EQUAL(cu.cuInit(1), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cu.cuInit(0), 0);
    CHECK_EQUAL(cu.cuMemAlloc_v2(&address, 1), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_EQUAL(cu.cuCtxGetDevice(&device), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_EQUAL(cu.cuStreamSynchronize(NULL), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_EQUAL(cu.cuMemFree_v2(0), 0);
    CHECK_EQUAL(cu.cuMemAddressReserve(&address, 2 * MIB, 0, 0, 0), 0);
    CHECK_EQUAL(cu.cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
}

static void share_blocks(void)
{
    CUdeviceptr addresses[5];
    start_driver();
    uint64_t before = free_bytes();
    CUdeviceptr first = take(MIB);
    CHECK_EQUAL(before - free_bytes(), 2 * MIB);
    CUdeviceptr second = take(MIB);
    CHECK_EQUAL(before - free_bytes(), 2 * MIB);
    CHECK_EQUAL(cu.cuMemFree_v2(first), 0);
    CHECK_EQUAL(before - free_bytes(), 2 * MIB);
    CUdeviceptr third = take(700 << 10);
    CHECK_EQUAL(third, first);
    CHECK_EQUAL(before - free_bytes(), 2 * MIB);
    CHECK_EQUAL(cu.cuMemFree_v2(second), 0);
    CHECK_EQUAL(cu.cuMemFree_v2(third), 0);
    CHECK_EQUAL(before, free_bytes());
    for (int i = 0; i < 5; i++)
        addresses[i] = take(1);
    CHECK_EQUAL(addresses[4] - addresses[0], 4 * 512);
    CHECK_EQUAL(before - free_bytes(), 2 * MIB);
}

static void take_whole_blocks(void)
{
    start_driver();
    uint64_t before = free_bytes();
    CUdeviceptr address = take(MIB + 512);
    CHECK_EQUAL(before - free_bytes(), 2 * MIB);
    CHECK_EQUAL(cu.cuMemFree_v2(address), 0);
    address = take(2 * MIB + 512);
    CHECK_EQUAL(before - free_bytes(), 4 * MIB);
    CHECK_EQUAL(cu.cuMemFree_v2(address + 512), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cu.cuMemFree_v2(address), 0);
    CHECK_EQUAL(cu.cuMemFree_v2(address), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(before, free_bytes());
}

/* Scenario 6 on a small device. */
static void fragment(void)
{
    static CUdeviceptr pieces[2048];
    CUdeviceptr address = 0;
    unsigned count = 0;
    start_driver();
    while (count < 2048 && cu.cuMemAlloc_v2(&pieces[count], MIB) == 0)
        count++;
    CHECK_EQUAL(count, 1024);
    for (unsigned i = 0; i < count; i += 2)
        CHECK_EQUAL(cu.cuMemFree_v2(pieces[i]), 0);
    CHECK_EQUAL(free_bytes(), 0);
    CHECK_EQUAL(cu.cuMemAlloc_v2(&address, 4 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(cu.cuMemAlloc_v2(&address, 2 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(cu.cuMemAlloc_v2(&address, MIB), 0);
}

static void need_no_contiguous_memory(void)
{
    CUdeviceptr addresses[512];
    unsigned count = 0;
    start_driver();
    uint64_t step = free_bytes() / 16 / (2 * MIB) * (2 * MIB);
    while (count < 512 && cu.cuMemAlloc_v2(&addresses[count], step) == 0)
        count++;
    for (unsigned i = 0; i < count; i += 2)
        CHECK_EQUAL(cu.cuMemFree_v2(addresses[i]), 0);
    CUdeviceptr large = take(step * 8);
    CHECK(large != 0);
}

static void refuse_sizes(void)
{
    CUdeviceptr address = 7;
    size_t pitch = 0;
    void *host = NULL;
    start_driver();
    CUstream stream = make_stream();
    CHECK_EQUAL(cu.cuMemAlloc_v2(&address, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cu.cuMemAlloc_v2(NULL, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cu.cuMemAllocAsync(&address, 0, stream), 0);
    CHECK_EQUAL(address, 0);
    CHECK_EQUAL(cu.cuMemAlloc_v2(&address, UINT64_C(1) << 60), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(cu.cuMemAlloc_v2(&address, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
    address = 7;
    CHECK_EQUAL(cu.cuMemAllocAsync(&address, SIZE_MAX, stream), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(address, 0);
    address = 7;
    CHECK_EQUAL(cu.cuMemAlloc_v2(&address, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(address, 0);
    CHECK_EQUAL(cu.cuMemHostAlloc(&host, SIZE_MAX, 0), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(cu.cuMemAllocManaged(&address, SIZE_MAX, 1), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(cu.cuMemAllocManaged(&address, 0, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cu.cuMemAllocPitch_v2(&address, &pitch, 100, 10, 4), 0);
    CHECK_EQUAL(pitch, 512);
    CHECK_EQUAL(cu.cuMemAllocPitch_v2(&address, &pitch, 100, 10, 3), CUDA_ERROR_INVALID_VALUE);
}

/* Scenario 8. */
static void absurd_size_after_launch_error(void)
{
    CUdeviceptr address = 0;
    start_driver();
    CHECK_EQUAL(cu.cuLaunchKernel((CUfunction)&address, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
                CUDA_ERROR_NO_BINARY_FOR_GPU);
    CHECK_EQUAL(cu.cuMemAlloc_v2(&address, 0xFFFFFFFFFFFFF000), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(address, 0);
}

static void count_arrays(void)
{
    CUarray large = NULL;
    CUarray small = NULL;
    CUDA_ARRAY_DESCRIPTOR descriptor = {4096, 4096, CU_AD_FORMAT_FLOAT, 1};
    start_driver();
    uint64_t before = free_bytes();
    CHECK_EQUAL(cu.cuArrayCreate_v2(&large, &descriptor), 0);
    CHECK_EQUAL(before - free_bytes(), 64 * MIB);
    descriptor.Width = descriptor.Height = 64;
    CHECK_EQUAL(cu.cuArrayCreate_v2(&small, &descriptor), 0);
    CHECK_EQUAL(before - free_bytes(), 66 * MIB);
    CHECK_EQUAL(cu.cuArrayDestroy(large), 0);
    CHECK_EQUAL(cu.cuArrayDestroy(small), 0);
    CHECK_EQUAL(before, free_bytes());
}

static void pin_too_much(void)
{
    void *address = NULL;
    start_driver();
    CHECK_EQUAL(cu.cuMemHostAlloc(&address, 8192 * MIB, 0), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(cu.cuMemHostAlloc(&address, 6000 * MIB, 0), 0);
    CHECK_EQUAL(cu.cuMemHostAlloc(&address, 200 * MIB, 0), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(cu.cuMemAllocHost_v2(&address, 100 * MIB), 0);
}

static void register_host(void)
{
    void *pinned = NULL;
    start_driver();
    void *memory = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK_EQUAL(cu.cuMemHostRegister_v2(memory, MIB, 0), 0);
    CHECK_EQUAL(cu.cuMemHostRegister_v2(memory, MIB, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    CHECK_EQUAL(cu.cuMemHostUnregister(memory), 0);
    CHECK_EQUAL(cu.cuMemHostUnregister(memory), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    CHECK_EQUAL(cu.cuMemHostRegister_v2(memory, 0, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cu.cuMemHostAlloc(&pinned, 0, 0), 0);
    CHECK_EQUAL(cu.cuMemAllocHost_v2(&pinned, MIB), 0);
    CHECK_EQUAL(cu.cuMemHostRegister_v2(pinned, 4096, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cu.cuMemFree_v2((CUdeviceptr)(uintptr_t)pinned), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cu.cuMemFreeHost(pinned), 0);
    CHECK_EQUAL(cu.cuMemFreeHost(&pinned), CUDA_ERROR_INVALID_VALUE);
}

static uint64_t address_space_bytes(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%lu", &pages) != 1)
        pages = 0;
    if (file != NULL)
        fclose(file);
    return (uint64_t)pages * 4096;
}

/* Scenario 10, for every kind of allocation. */
static void limit_address_space(void)
{
    CUdeviceptr address = 0;
    CUmemoryPool pool = NULL;
    void *host = NULL;
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    start_driver();
    struct rlimit limit = {address_space_bytes() + GIB, RLIM_INFINITY};
    CHECK_EQUAL(setrlimit(RLIMIT_AS, &limit), 0);
    CHECK_EQUAL(cu.cuMemAlloc_v2(&address, 8192 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(cu.cuMemHostAlloc(&host, 8192 * MIB, 0), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(cu.cuMemAllocManaged(&address, 8192 * MIB, 1), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(cu.cuMemPoolCreate(&pool, &properties), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(cu.cuMemAddressReserve(&address, 64 * GIB, 0, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(cu.cuMemAlloc_v2(&address, 8 * MIB), 0);
}

static void exhaust_address_space(void)
{
    CUdeviceptr address = 0;
    start_driver();
    CHECK_EQUAL(cu.cuMemAddressReserve(&address, UINT64_C(1) << 50, 0, 0, 0),
                CUDA_ERROR_OUT_OF_MEMORY);
    for (uint64_t bytes = UINT64_C(64) << 40; bytes >= UINT64_C(1) << 40; bytes /= 2)
        while (cu.cuMemAddressReserve(&address, bytes, 0, 0, 0) == 0)
            continue;
    CHECK_EQUAL(cu.cuMemAddressReserve(&address, UINT64_C(1) << 40, 0, 0, 0),
                CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(cu.cuMemAlloc_v2(&address, 64 * MIB), 0);
}

static void manage_more_than_the_device_has(void)
{
    CUdeviceptr address = 0;
    start_driver();
    uint64_t before = free_bytes();
    CHECK_EQUAL(cu.cuMemAllocManaged(&address, before + GIB, 1), 0);
    CHECK_EQUAL(before, free_bytes());
    CHECK_EQUAL(cu.cuMemFree_v2(address), 0);
    CHECK_EQUAL(cu.cuMemAllocManaged(&address, MIB, 7), CUDA_ERROR_INVALID_VALUE);
}

static void move_data(void)
{
    unsigned char source[100];
    unsigned char target[100] = {0};
    start_driver();
    memset(source, 3, sizeof(source));
    CUdeviceptr address = take(4 * MIB);
    CHECK_EQUAL(cu.cuMemsetD8_v2(address, 7, 4 * MIB), 0);
    CHECK_EQUAL(cu.cuMemcpyHtoD_v2(address + 50, source, 10), 0);
    CHECK_EQUAL(cu.cuMemcpyDtoH_v2(target, address, sizeof(target)), 0);
    CHECK_EQUAL(target[49], 7);
    CHECK_EQUAL(target[50], 3);
    CHECK_EQUAL(target[60], 7);
    CHECK_EQUAL(cu.cuMemsetD8_v2(address, 7, 4 * MIB + 1), CUDA_ERROR_INVALID_VALUE);
}

static void map_physical_memory(void)
{
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle = 0;
    CUmemGenericAllocationHandle again = 0;
    CUdeviceptr address = 0;
    start_driver();
    uint64_t before = free_bytes();
    CHECK_EQUAL(cu.cuMemCreate(&handle, MIB, &properties, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cu.cuMemCreate(&handle, 64 * MIB, &properties, 0), 0);
    CHECK_EQUAL(before - free_bytes(), 64 * MIB);
    CHECK_EQUAL(cu.cuMemAddressReserve(&address, 128 * MIB, 0, 0, 0), 0);
    CHECK_EQUAL(cu.cuMemMap(address, 64 * MIB, 0, handle, 0), 0);
    CHECK_EQUAL(cu.cuMemMap(address, 64 * MIB, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cu.cuMemSetAccess(address, 64 * MIB, &access, 1), 0);
    CHECK_EQUAL(cu.cuMemsetD8_v2(address, 1, 64 * MIB), 0);
    CHECK_EQUAL(cu.cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)address), 0);
    CHECK_EQUAL(cu.cuMemRelease(handle), 0);
    CHECK_EQUAL(cu.cuMemRelease(again), 0);
    CHECK_EQUAL(before - free_bytes(), 64 * MIB);
    CHECK_EQUAL(cu.cuMemUnmap(address, 2 * MIB), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cu.cuMemAddressFree(address, 128 * MIB), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cu.cuMemUnmap(address, 64 * MIB), 0);
    CHECK_EQUAL(before, free_bytes());
    CHECK_EQUAL(cu.cuMemAddressFree(address, 128 * MIB), 0);
    properties.location.id = 99;
    CHECK_EQUAL(cu.cuMemCreate(&handle, 2 * MIB, &properties, 0), CUDA_ERROR_INVALID_DEVICE);
    properties.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
    CHECK_EQUAL(cu.cuMemCreate(&handle, 2 * MIB, &properties, 0), 0);
}

static void describe_pointers(void)
{
    CUcontext owner = NULL;
    CUdeviceptr base = 0;
    size_t bytes = 0;
    int ordinal = -1;
    CUcontext context = start_driver();
    CUdeviceptr address = take(3 * MIB);
    CHECK_EQUAL(cu.cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, address + 9), 0);
    CHECK(owner == context);
    CHECK_EQUAL(cu.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address),
                0);
    CHECK_EQUAL(ordinal, 0);
    CHECK_EQUAL(cu.cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, 0x1000),
                CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cu.cuMemGetAddressRange_v2(&base, &bytes, address + 5), 0);
    CHECK_EQUAL(base, address);
    CHECK_EQUAL(bytes, 3 * MIB);
}

static void price_contexts(void)
{
    CUcontext second = NULL;
    CUcontext first = start_driver();
    uint64_t before = free_bytes();
    CHECK_EQUAL(before, (16384 - 512) * MIB);
    CHECK_EQUAL(cu.cuCtxCreate_v2(&second, 0, 0), 0);
    CHECK_EQUAL(before - free_bytes(), 512 * MIB);
    take(64 * MIB);
    CHECK_EQUAL(cu.cuCtxDestroy_v2(second), 0);
    CHECK_EQUAL(cu.cuCtxSetCurrent(first), 0);
    CHECK_EQUAL(before, free_bytes());
    take(free_bytes() - 100 * MIB);
    CHECK_EQUAL(cu.cuCtxCreate_v2(&second, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
}

static void reset_context(void)
{
    CUcontext context = start_driver();
    CUdeviceptr address = take(64 * MIB);
    CHECK_EQUAL(cu.cuDevicePrimaryCtxReset_v2(0), 0);
    CHECK(cu.cuMemFree_v2(address) != 0);
    CHECK_EQUAL(cu.cuDevicePrimaryCtxRetain(&context, 0), 0);
    CHECK_EQUAL(cu.cuCtxSetCurrent(context), 0);
    take(64 * MIB);
}

static void load_lazily(void)
{
    CUmodule module = NULL;
    CUfunction function = NULL;
    CUlibrary library = NULL;
    CUkernel kernel = NULL;
    start_driver();
    CHECK_EQUAL(cu.cuModuleLoadData(&module, "image"), 0);
    CHECK_EQUAL(cu.cuModuleGetFunction(&function, module, "kernel"), 0);
    CUdeviceptr filler = take(free_bytes());
    CHECK_EQUAL(cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
                CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(cu.cuLibraryLoadData(&library, "image", NULL, NULL, 0, NULL, NULL, 0), 0);
    CHECK_EQUAL(cu.cuLibraryGetKernel(&kernel, library, "kernel"), 0);
    CHECK_EQUAL(cu.cuKernelGetFunction(&function, kernel), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(cu.cuMemFree_v2(filler), 0);
    uint64_t before = free_bytes();
    CHECK_EQUAL(cu.cuKernelGetFunction(&function, kernel), 0);
    CHECK_EQUAL(before - free_bytes(), 3 * MIB);
    CHECK_EQUAL(cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), 0);
    CHECK_EQUAL(before - free_bytes(), 3 * MIB);
    CHECK_EQUAL(cu.cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
                CUDA_ERROR_INVALID_HANDLE);
}

static void wait_for_work(void)
{
    struct timespec start, end;
    CUdeviceptr address = 0;
    CUstream stream = NULL;
    start_driver();
    CHECK_EQUAL(cu.cuMemAlloc_v2(&address, 4096), 0);
    CHECK_EQUAL(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), 0);
    clock_gettime(CLOCK_MONOTONIC, &start);
    occupy(stream, 60);
    CHECK_EQUAL(cu.cuMemFree_v2(address), 0);
    clock_gettime(CLOCK_MONOTONIC, &end);
    CHECK((end.tv_sec - start.tv_sec) * 1000 + (end.tv_nsec - start.tv_nsec) / 1000000 >= 59);
}

#define TEST(name, body, ...)                                                                      \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        run_child(body, __VA_ARGS__);                                                              \
    }

TEST(driver_refuses_before_init_and_without_context, calls_before_init, NULL)
TEST(requests_up_to_1_mib_share_a_device_block, share_blocks, NULL)
TEST(larger_requests_take_whole_device_blocks, take_whole_blocks, NULL)
TEST(half_empty_device_blocks_serve_small_requests_only, fragment, "GPUSIM_MEMORY=1024",
     "GPUSIM_CONTEXT=0", NULL)
TEST(large_request_needs_no_contiguous_memory, need_no_contiguous_memory, NULL)
TEST(zero_and_absurd_sizes_are_refused, refuse_sizes, NULL)
TEST(absurd_size_after_launch_error_is_2, absurd_size_after_launch_error,
     "GPUSIM_FAIL=cuLaunchKernel:209", NULL)
TEST(arrays_take_whole_device_blocks, count_arrays, NULL)
TEST(pinned_memory_is_limited_by_the_host, pin_too_much, "GPUSIM_HOST_MEMORY=6144", NULL)
TEST(host_registration_is_checked, register_host, NULL)
TEST(address_space_limit_gives_2_for_every_kind, limit_address_space, NULL)
TEST(reserved_address_space_runs_out_before_device_memory, exhaust_address_space, NULL)
TEST(managed_memory_may_exceed_the_device, manage_more_than_the_device_has, NULL)
TEST(copies_and_fills_move_data, move_data, NULL)
TEST(physical_memory_lives_until_released_and_unmapped, map_physical_memory, NULL)
TEST(pointers_are_described, describe_pointers, NULL)
TEST(contexts_cost_memory, price_contexts, "GPUSIM_MEMORY=16384", NULL)
TEST(reset_frees_the_context, reset_context, NULL)
TEST(free_waits_for_the_work_of_its_context, wait_for_work, "GPUSIM_FREE_WAITS=1", NULL)
TEST(first_launch_takes_device_memory, load_lazily, "GPUSIM_MODULE=3", NULL)

const struct CMUnitTest memory_tests[] = {
    cmocka_unit_test(driver_refuses_before_init_and_without_context),
    cmocka_unit_test(requests_up_to_1_mib_share_a_device_block),
    cmocka_unit_test(larger_requests_take_whole_device_blocks),
    cmocka_unit_test(half_empty_device_blocks_serve_small_requests_only),
    cmocka_unit_test(large_request_needs_no_contiguous_memory),
    cmocka_unit_test(zero_and_absurd_sizes_are_refused),
    cmocka_unit_test(absurd_size_after_launch_error_is_2),
    cmocka_unit_test(arrays_take_whole_device_blocks),
    cmocka_unit_test(pinned_memory_is_limited_by_the_host),
    cmocka_unit_test(host_registration_is_checked),
    cmocka_unit_test(address_space_limit_gives_2_for_every_kind),
    cmocka_unit_test(reserved_address_space_runs_out_before_device_memory),
    cmocka_unit_test(managed_memory_may_exceed_the_device),
    cmocka_unit_test(copies_and_fills_move_data),
    cmocka_unit_test(physical_memory_lives_until_released_and_unmapped),
    cmocka_unit_test(pointers_are_described),
    cmocka_unit_test(contexts_cost_memory),
    cmocka_unit_test(reset_frees_the_context),
    cmocka_unit_test(free_waits_for_the_work_of_its_context),
    cmocka_unit_test(first_launch_takes_device_memory),
};
const size_t memory_tests_count = sizeof(memory_tests) / sizeof(memory_tests[0]);
