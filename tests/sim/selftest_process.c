/* Processes, shared capacity, NVML, the resolver, ordered failures, exit, threads. */

#include "selftest.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim_nvml.h"

#define STATE_PATH "/tmp/gpusim-selftest-state"

static void use_driver_after_fork(void)
{
    int number = 0;
    int status = 0;
    const char *name = NULL;
    start_driver();
    CUdeviceptr address = take(MIB);
    pid_t pid = fork();
    if (pid != 0) {
        waitpid(pid, &status, 0);
        CHECK_EQUAL(status, 0);
        CHECK_EQUAL(cu.cuMemFree_v2(address), 0);
        return;
    }
    CHECK_EQUAL(cu.cuMemAlloc_v2(&address, 1), CUDA_ERROR_NOT_INITIALIZED);
    CHECK_EQUAL(cu.cuInit(0), CUDA_ERROR_NOT_INITIALIZED);
    CHECK_EQUAL(cu.cuDeviceGetCount(&number), CUDA_ERROR_NOT_INITIALIZED);
    CHECK_EQUAL(cu.cuCtxGetDevice(&number), CUDA_ERROR_NOT_INITIALIZED);
    CHECK_EQUAL(cu.cuDriverGetVersion(&number), 0);
    CHECK_EQUAL(cu.cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &name), 0);
    CHECK(name != NULL && strcmp(name, "CUDA_ERROR_OUT_OF_MEMORY") == 0);
}

/* A process that holds memory until it is killed or told to leave. */
static pid_t start_neighbour(uint64_t bytes, int *ready)
{
    int ends[2];
    char byte = 0;
    if (pipe(ends) != 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        start_driver();
        take(bytes);
        if (write(ends[1], &byte, 1) == 1)
            pause();
        _exit(0);
    }
    close(ends[1]);
    *ready = read(ends[0], &byte, 1) == 1;
    close(ends[0]);
    return pid;
}

/* Scenario 5, and a neighbour killed before its memory is asked for. */
static void share_device(void)
{
    int ready = 0;
    CUdeviceptr address = 0;
    unlink(STATE_PATH);
    pid_t pid = start_neighbour(10240 * MIB, &ready);
    CHECK(ready);
    start_driver();
    CHECK_EQUAL(free_bytes(), (16384 - 2 * 512 - 10240) * MIB);
    CHECK_EQUAL(cu.cuMemAlloc_v2(&address, 8192 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    CHECK_EQUAL(cu.cuMemAlloc_v2(&address, 8192 * MIB), 0);
    unlink(STATE_PATH);
}

static void keep_private(void)
{
    int ready = 0;
    pid_t pid = start_neighbour(10240 * MIB, &ready);
    CHECK(ready);
    start_driver();
    CHECK_EQUAL(free_bytes(), (16384 - 512) * MIB);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

struct nvml {
    __typeof__(&nvmlInit_v2) init;
    __typeof__(&nvmlDeviceGetHandleByUUID) by_uuid;
    __typeof__(&nvmlDeviceGetHandleByIndex_v2) by_index;
    __typeof__(&nvmlDeviceGetUUID) uuid;
    __typeof__(&nvmlDeviceIsMigDeviceHandle) is_mig;
    __typeof__(&nvmlDeviceGetMemoryInfo_v2) memory;
    __typeof__(&nvmlDeviceGetComputeRunningProcesses_v3) processes;
};

static struct nvml load_nvml(void)
{
    struct nvml nvml = {0};
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    CHECK(library != NULL);
    *(void **)&nvml.init = dlsym(library, "nvmlInit_v2");
    *(void **)&nvml.by_uuid = dlsym(library, "nvmlDeviceGetHandleByUUID");
    *(void **)&nvml.by_index = dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
    *(void **)&nvml.uuid = dlsym(library, "nvmlDeviceGetUUID");
    *(void **)&nvml.is_mig = dlsym(library, "nvmlDeviceIsMigDeviceHandle");
    *(void **)&nvml.memory = dlsym(library, "nvmlDeviceGetMemoryInfo_v2");
    *(void **)&nvml.processes = dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v3");
    return nvml;
}

/* What NVML lists; -1 and the result when it does not. */
static int list_processes(const struct nvml *nvml, struct nvml_process processes[8], int *result)
{
    nvmlDevice_t device = NULL;
    unsigned count = 8;
    *result = nvml->init();
    if (*result == NVML_SUCCESS)
        *result = nvml->by_index(0, &device);
    if (*result == NVML_SUCCESS)
        *result = nvml->processes(device, &count, processes);
    return *result == NVML_SUCCESS ? (int)count : -1;
}

static void see_own_memory(void)
{
    struct nvml_process processes[8];
    struct nvml_memory_v2 memory = {.version = 2 << 24 | sizeof(memory)};
    nvmlDevice_t device = NULL;
    nvmlDevice_t same = NULL;
    char uuid[96];
    int result = 0;
    struct nvml nvml = load_nvml();
    CHECK_EQUAL(list_processes(&nvml, processes, &result), 0);
    start_driver();
    take(1000 * MIB);
    CHECK_EQUAL(list_processes(&nvml, processes, &result), 1);
    CHECK_EQUAL(processes[0].pid, getpid());
    CHECK_EQUAL(processes[0].used, 1512 * MIB);
    CHECK_EQUAL(nvml.by_index(0, &device), 0);
    CHECK_EQUAL(nvml.memory(device, &memory), 0);
    CHECK_EQUAL(memory.total, (16384 + 600) * MIB);
    CHECK_EQUAL(memory.used + memory.free + memory.reserved, memory.total);
    CHECK_EQUAL(memory.free, free_bytes());
    CHECK_EQUAL(nvml.uuid(device, uuid, sizeof(uuid)), 0);
    CHECK_EQUAL(nvml.by_uuid(uuid, &same), 0);
    CHECK(same == device);
}

static void see_neighbours(int expected_count, int expected_result)
{
    struct nvml_process processes[8];
    int ready = 0;
    int result = 0;
    unlink(STATE_PATH);
    pid_t pid = start_neighbour(2048 * MIB, &ready);
    start_driver();
    struct nvml nvml = load_nvml();
    CHECK_EQUAL(list_processes(&nvml, processes, &result), expected_count);
    CHECK_EQUAL(result, expected_result);
    if (expected_count == 2) {
        CHECK_EQUAL(processes[0].pid, pid);
        CHECK_EQUAL(processes[0].used, 2560 * MIB);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    unlink(STATE_PATH);
}

static void see_all(void)
{
    see_neighbours(2, NVML_SUCCESS);
}

static void see_oneself(void)
{
    see_neighbours(1, NVML_SUCCESS);
}

static void see_nobody(void)
{
    see_neighbours(0, NVML_SUCCESS);
}

static void see_forbidden(void)
{
    see_neighbours(-1, NVML_ERROR_NO_PERMISSION);
}

/* Under MIG the instance is found by a uuid of its own kind. */
static void see_instance(void)
{
    struct nvml_process processes[8];
    char uuid[96];
    nvmlDevice_t device = NULL;
    unsigned is_mig = 0;
    int result = 0;
    struct nvml nvml = load_nvml();
    start_driver();
    CHECK_EQUAL(list_processes(&nvml, processes, &result), -1);
    CHECK_EQUAL(result, NVML_ERROR_NO_PERMISSION);
    CHECK_EQUAL(nvml.by_index(0, &device), 0);
    CHECK_EQUAL(nvml.uuid(device, uuid, sizeof(uuid)), 0);
    CHECK(strncmp(uuid, "MIG-", 4) == 0);
    CHECK_EQUAL(nvml.is_mig(device, &is_mig), 0);
    CHECK_EQUAL(is_mig, 1);
    memcpy(uuid, "GPU", 3);
    CHECK_EQUAL(nvml.by_uuid(uuid, &device), NVML_ERROR_NOT_FOUND);
}

static void see_pids_without_numbers(void)
{
    struct nvml_process processes[8];
    int result = 0;
    struct nvml nvml = load_nvml();
    start_driver();
    CHECK_EQUAL(list_processes(&nvml, processes, &result), 1);
    CHECK_EQUAL(processes[0].pid, getpid());
    CHECK(processes[0].used == UINT64_MAX);
}

static void see_server(void)
{
    struct nvml_process processes[8];
    int result = 0;
    int mps = 0;
    struct nvml nvml = load_nvml();
    start_driver();
    take(1000 * MIB);
    CHECK_EQUAL(list_processes(&nvml, processes, &result), 1);
    CHECK_EQUAL(processes[0].pid, 1);
    CHECK_EQUAL(processes[0].used, 1512 * MIB);
    CHECK_EQUAL(cu.cuDeviceGetAttribute(&mps, (CUdevice_attribute)133, 0), 0);
    CHECK_EQUAL(mps, 1);
}

static void be_integrated(void)
{
    int integrated = 0;
    start_driver();
    CHECK_EQUAL(cu.cuDeviceGetAttribute(&integrated, CU_DEVICE_ATTRIBUTE_INTEGRATED, 0), 0);
    CHECK_EQUAL(integrated, 1);
}

static void see_absent(void)
{
    see_neighbours(-1, NVML_ERROR_DRIVER_NOT_LOADED);
}

static void exchange_handles(void)
{
    CUipcMemHandle handle;
    CUdeviceptr opened = 0;
    int ends[2];
    int status = 0;
    CHECK_EQUAL(pipe(ends), 0);
    pid_t pid = fork();
    if (pid != 0) {
        start_driver();
        CUdeviceptr address = take(4 * MIB);
        CUdeviceptr pooled = take_async(MIB, NULL);
        CHECK_EQUAL(cu.cuIpcGetMemHandle(&handle, pooled), CUDA_ERROR_INVALID_VALUE);
        CHECK_EQUAL(cu.cuIpcGetMemHandle(&handle, address), 0);
        CHECK_EQUAL(cu.cuIpcOpenMemHandle_v2(&opened, handle, 1), CUDA_ERROR_INVALID_CONTEXT);
        CHECK_EQUAL(cu.cuIpcCloseMemHandle(address), CUDA_ERROR_INVALID_VALUE);
        CHECK_EQUAL(write(ends[1], &handle, sizeof(handle)), sizeof(handle));
        waitpid(pid, &status, 0);
        CHECK_EQUAL(status, 0);
        return;
    }
    CHECK_EQUAL(read(ends[0], &handle, sizeof(handle)), sizeof(handle));
    start_driver();
    uint64_t before = free_bytes();
    CHECK_EQUAL(cu.cuIpcOpenMemHandle_v2(&opened, handle, 1), 0);
    CHECK_EQUAL(before, free_bytes());
    CHECK_EQUAL(cu.cuMemsetD8_v2(opened, 1, 4 * MIB), 0);
    CHECK_EQUAL(cu.cuMemFree_v2(opened), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cu.cuIpcCloseMemHandle(opened), 0);
}

static void expect_symbol(const char *base, int version, cuuint64_t flags, const char *symbol)
{
    void *resolved = NULL;
    CUdriverProcAddressQueryResult status;
    CHECK_EQUAL(cu.cuGetProcAddress_v2(base, &resolved, version, flags, &status), 0);
    CHECK_EQUAL(status, CU_GET_PROC_ADDRESS_SUCCESS);
    check(resolved == dlsym(cu.library, symbol), symbol, __FILE__, __LINE__);
}

static void resolve(void)
{
    void *resolved = NULL;
    load_driver();
    expect_symbol("cuMemAlloc", 2000, 0, "cuMemAlloc");
    expect_symbol("cuMemAlloc", 3010, 0, "cuMemAlloc");
    expect_symbol("cuMemAlloc", 12000, 0, "cuMemAlloc_v2");
    expect_symbol("cuMemHostRegister", 6050, 0, "cuMemHostRegister_v2");
    expect_symbol("cuIpcOpenMemHandle", 11000, 0, "cuIpcOpenMemHandle_v2");
    expect_symbol("cuCtxCreate", 3020, 0, "cuCtxCreate_v2");
    expect_symbol("cuCtxCreate", 11040, 0, "cuCtxCreate_v3");
    expect_symbol("cuCtxCreate", 12050, 0, "cuCtxCreate_v4");
    expect_symbol("cuMemAllocAsync", 11020, 0, "cuMemAllocAsync");
    expect_symbol("cuMemAllocAsync", 11020, 1, "cuMemAllocAsync");
    expect_symbol("cuMemAllocAsync", 11020, 2, "cuMemAllocAsync_ptsz");
    expect_symbol("cuMemAllocAsync", 11020, 3, "cuMemAllocAsync_ptsz");
    expect_symbol("cuMemcpyHtoD", 7000, 2, "cuMemcpyHtoD_v2_ptds");
    expect_symbol("cuMemAlloc", 12000, 2, "cuMemAlloc_v2");
    expect_symbol("cuGetProcAddress", 11030, 0, "cuGetProcAddress");
    expect_symbol("cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2");
    CHECK_EQUAL(cu.cuGetProcAddress("cuMemFree", &resolved, 3020, 0), 0);
    CHECK(resolved == dlsym(cu.library, "cuMemFree_v2"));
}

static void resolve_nothing(void)
{
    void *resolved = &resolved;
    int driver_version = 0;
    CUdriverProcAddressQueryResult status;
    load_driver();
    CHECK_EQUAL(cu.cuDriverGetVersion(&driver_version), 0);
    CHECK_EQUAL(cu.cuGetProcAddress("cuNoSuchThing", &resolved, 12000, 0), CUDA_ERROR_NOT_FOUND);
    CHECK_EQUAL(cu.cuGetProcAddress("", &resolved, 0, 0), CUDA_ERROR_NOT_FOUND);
    CHECK_EQUAL(cu.cuGetProcAddress_v2("cuMemAlloc", &resolved, driver_version + 10, 0, &status),
                CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cu.cuGetProcAddress_v2("cuMemAlloc", &resolved, 12000, 4, &status),
                CUDA_ERROR_INVALID_VALUE);
    CHECK(resolved == &resolved);
    CHECK_EQUAL(cu.cuGetProcAddress_v2("", &resolved, 0, 0, NULL), 0);
    CHECK(resolved == NULL);
    CHECK_EQUAL(cu.cuGetProcAddress_v2("cuMemAllocAsync", &resolved, 11010, 0, &status), 0);
    CHECK_EQUAL(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    CHECK_EQUAL(cu.cuGetProcAddress_v2("cuNoSuchThing", &resolved, 12000, 0, &status), 0);
    CHECK_EQUAL(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    CHECK(resolved == NULL);
}

static void order_failures(void)
{
    CUdeviceptr address = 0;
    CUstream stream = NULL;
    start_driver();
    CHECK_EQUAL(cu.cuMemAlloc_v2(&address, MIB), 0);
    CHECK_EQUAL(cu.cuMemAlloc_v2(&address, MIB), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(cu.cuMemAlloc_v2(&address, MIB), 0);
    CHECK_EQUAL(cu.cuStreamCreate(&stream, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_EQUAL(cu.cuMemAlloc_v2(&address, MIB), CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_EQUAL(cu.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_EQUAL(cu.cuDevicePrimaryCtxReset_v2(0), 0);
}

static void die_at_the_second_call(void)
{
    int status = 0;
    CUdeviceptr address = 0;
    pid_t pid = fork();
    if (pid == 0) {
        start_driver();
        if (cu.cuMemAlloc_v2(&address, MIB) != 0)
            _exit(1);
        cu.cuMemAlloc_v2(&address, MIB);
        _exit(2);
    }
    waitpid(pid, &status, 0);
    CHECK(WIFSIGNALED(status));
    CHECK_EQUAL(WTERMSIG(status), SIGKILL);
}

static void trace_calls(void)
{
    char text[256] = {0};
    CUdeviceptr address = 0;
    start_driver();
    CHECK_EQUAL(cu.cuMemAlloc_v2(&address, UINT64_C(1) << 60), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(cu.gpusim_calls("cuMemAlloc_v2"), 1);
    CHECK_EQUAL(cu.gpusim_calls("cuMemFree_v2"), 0);
    CHECK_EQUAL(cu.gpusim_calls("cuNoSuchThing"), 0);
    FILE *file = fopen("/tmp/gpusim-selftest-trace", "r");
    CHECK(file != NULL && fread(text, 1, sizeof(text) - 1, file) > 0);
    CHECK_EQUAL(strcmp(text, "cuInit 0\ncuDevicePrimaryCtxRetain 0\ncuCtxSetCurrent 0\n"
                             "cuMemAlloc_v2 2\n"),
                0);
    if (file != NULL)
        fclose(file);
    unlink("/tmp/gpusim-selftest-trace");
}

static void take_time(void)
{
    struct timespec start, end;
    CUdeviceptr address = 0;
    start_driver();
    clock_gettime(CLOCK_MONOTONIC, &start);
    CHECK_EQUAL(cu.cuMemAlloc_v2(&address, 4096), 0);
    clock_gettime(CLOCK_MONOTONIC, &end);
    CHECK((end.tv_sec - start.tv_sec) * 1000 + (end.tv_nsec - start.tv_nsec) / 1000000 >= 29);
}

static CUdeviceptr late_address;

static void free_late(void)
{
    CUresult result = cu.cuMemFree_v2(late_address);
    _exit(result == CUDA_ERROR_DEINITIALIZED ? 0 : 1);
}

/* Registered before the driver's own exit handler, so it runs after it. */
static void free_after_exit(void)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        atexit(free_late);
        start_driver();
        late_address = take(MIB);
        exit(2);
    }
    waitpid(pid, &status, 0);
    CHECK_EQUAL(status, 0);
}

static void *hammer(void *argument)
{
    CUcontext context = NULL;
    CUdeviceptr addresses[16];
    (void)argument;
    CHECK_EQUAL(cu.cuDevicePrimaryCtxRetain(&context, 0), 0);
    CHECK_EQUAL(cu.cuCtxSetCurrent(context), 0);
    CUstream stream = make_stream();
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 16; i++)
            addresses[i] = i % 2 == 0 ? take((uint64_t)(i + 1) << 18)
                                      : take_async((uint64_t)(i + 1) << 20, stream);
        occupy(stream, 0);
        for (int i = 0; i < 16; i++)
            CHECK_EQUAL(cu.cuMemFreeAsync(addresses[i], stream), 0);
        CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
    }
    CHECK_EQUAL(cu.cuStreamDestroy_v2(stream), 0);
    return NULL;
}

static void run_threads(void)
{
    pthread_t threads[8];
    start_driver();
    uint64_t before = free_bytes();
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, hammer, NULL);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
    CHECK(before - free_bytes() <= 4 * MIB);
}

static void cost_nothing(void)
{
    CUdeviceptr first = 0;
    CUdeviceptr second = 0;
    struct timespec start, end;
    const long pairs = 2000000;
    start_driver();
    CHECK_EQUAL(cu.cuMemAllocAsync(&first, MIB, NULL), 0);
    CHECK_EQUAL(cu.cuMemAllocAsync(&second, MIB, NULL), 0);
    CHECK(second - first >= MIB);
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (long i = 0; i < pairs; i++) {
        cu.cuMemAllocAsync(&first, MIB, NULL);
        cu.cuMemFreeAsync(first, NULL);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    double ns = (double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec);
    printf("[          ] %.1f ns a pair without bookkeeping\n", ns / (double)pairs);
}

#define STATE "GPUSIM_STATE=" STATE_PATH
#define TEST(name, body, ...)                                                                      \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        run_child(body, __VA_ARGS__);                                                              \
    }

TEST(child_of_fork_is_refused, use_driver_after_fork, NULL)
TEST(processes_share_a_device, share_device, STATE, NULL)
TEST(without_a_state_file_a_process_is_alone, keep_private, "GPUSIM_MEMORY=16384", NULL)
TEST(nvml_adds_up, see_own_memory, "GPUSIM_MEMORY=16384", NULL)
TEST(nvml_lists_all_processes, see_all, STATE, NULL)
TEST(nvml_lists_oneself_only, see_oneself, STATE, "GPUSIM_NVML=own", NULL)
TEST(nvml_lists_nobody, see_nobody, STATE, "GPUSIM_NVML=empty", NULL)
TEST(nvml_forbids_the_list, see_forbidden, STATE, "GPUSIM_NVML=forbidden", NULL)
TEST(nvml_shows_an_instance, see_instance, "GPUSIM_NVML=mig", NULL)
TEST(nvml_lists_pids_without_numbers, see_pids_without_numbers, "GPUSIM_NVML=numberless", NULL)
TEST(nvml_charges_the_mps_server, see_server, "GPUSIM_MPS_SERVER=1", NULL)
TEST(device_is_integrated, be_integrated, "GPUSIM_INTEGRATED=1", NULL)
TEST(nvml_is_absent, see_absent, STATE, "GPUSIM_NVML=absent", NULL)
TEST(memory_handles_open_in_other_processes, exchange_handles, NULL)
TEST(resolver_agrees_with_dlsym, resolve, NULL)
TEST(resolver_says_why_it_has_nothing, resolve_nothing, NULL)
TEST(ordered_failures_come_and_sticky_ones_stay, order_failures,
     "GPUSIM_FAIL=cuMemAlloc_v2:2:2,cuStreamCreate:700", NULL)
TEST(ordered_death_comes_at_the_nth_call, die_at_the_second_call, "GPUSIM_KILL=cuMemAlloc_v2:2",
     NULL)
TEST(calls_are_traced_and_counted, trace_calls, "GPUSIM_TRACE=/tmp/gpusim-selftest-trace", NULL)
TEST(calls_take_their_time, take_time, "GPUSIM_CALL_TIME=30000", NULL)
TEST(driver_is_gone_after_its_exit_handler, free_after_exit, NULL)
TEST(threads_lose_no_memory, run_threads, NULL)
TEST(zero_cost_gives_distinct_addresses, cost_nothing, "GPUSIM_ZERO_COST=1", NULL)

const struct CMUnitTest process_tests[] = {
    cmocka_unit_test(child_of_fork_is_refused),
    cmocka_unit_test(processes_share_a_device),
    cmocka_unit_test(without_a_state_file_a_process_is_alone),
    cmocka_unit_test(nvml_adds_up),
    cmocka_unit_test(nvml_lists_all_processes),
    cmocka_unit_test(nvml_lists_oneself_only),
    cmocka_unit_test(nvml_lists_nobody),
    cmocka_unit_test(nvml_forbids_the_list),
    cmocka_unit_test(nvml_shows_an_instance),
    cmocka_unit_test(nvml_lists_pids_without_numbers),
    cmocka_unit_test(nvml_charges_the_mps_server),
    cmocka_unit_test(device_is_integrated),
    cmocka_unit_test(nvml_is_absent),
    cmocka_unit_test(memory_handles_open_in_other_processes),
    cmocka_unit_test(resolver_agrees_with_dlsym),
    cmocka_unit_test(resolver_says_why_it_has_nothing),
    cmocka_unit_test(ordered_failures_come_and_sticky_ones_stay),
    cmocka_unit_test(ordered_death_comes_at_the_nth_call),
    cmocka_unit_test(calls_are_traced_and_counted),
    cmocka_unit_test(calls_take_their_time),
    cmocka_unit_test(driver_is_gone_after_its_exit_handler),
    cmocka_unit_test(threads_lose_no_memory),
    cmocka_unit_test(zero_cost_gives_distinct_addresses),
};
const size_t process_tests_count = sizeof(process_tests) / sizeof(process_tests[0]);
