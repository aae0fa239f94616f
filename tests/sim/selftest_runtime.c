/* The stand-in runtime: how it finds the driver, last errors, allocation. */

#include "selftest.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim_newer_runtime.h"

#define TRACE_PATH "/tmp/gpusim-selftest-runtime"

static struct {
#define RUNTIME_FUNCTION(name) __typeof__(&name) name;
#include "selftest_runtime.def"
#undef RUNTIME_FUNCTION
} rt;

static void load_runtime(void)
{
    void *library = dlopen("libcudart.so.13", RTLD_NOW);
    CHECK(library != NULL);
#define RUNTIME_FUNCTION(name)                                                                     \
    *(void **)&rt.name = dlvsym(library, #name, "libcudart.so.13");                                \
    check(rt.name != NULL, #name, __FILE__, __LINE__);
#include "selftest_runtime.def"
#undef RUNTIME_FUNCTION
}

static void find_driver(void)
{
    char text[128] = {0};
    int count = 0;
    load_runtime();
    CHECK_EQUAL(rt.cudaGetDeviceCount(&count), 0);
    CHECK_EQUAL(count, 3);
    FILE *file = fopen(TRACE_PATH, "r");
    CHECK(file != NULL && fread(text, 1, sizeof(text) - 1, file) > 0);
    CHECK(strncmp(text, "cuGetProcAddress_v2 0\ncuGetProcAddress_v2 0\n", 44) == 0);
    if (file != NULL)
        fclose(file);
    unlink(TRACE_PATH);
}

static void keep_last_error(void)
{
    void *address = &address;
    load_runtime();
    CHECK_EQUAL(rt.cudaGetLastError(), cudaSuccess);
    CHECK_EQUAL(rt.cudaMalloc(&address, SIZE_MAX), cudaErrorMemoryAllocation);
    CHECK(address == NULL);
    CHECK_EQUAL(rt.cudaPeekAtLastError(), cudaErrorMemoryAllocation);
    CHECK_EQUAL(rt.cudaMalloc(&address, 1024), cudaSuccess);
    CHECK_EQUAL(rt.cudaGetLastError(), cudaErrorMemoryAllocation);
    CHECK_EQUAL(rt.cudaGetLastError(), cudaSuccess);
    CHECK_EQUAL(rt.cudaFree(address), cudaSuccess);
    CHECK_EQUAL(rt.cudaMalloc(&address, 0), cudaSuccess);
    CHECK(address == NULL);
    CHECK_EQUAL(rt.cudaMallocManaged(&address, 0, cudaMemAttachGlobal), cudaSuccess);
    CHECK_EQUAL(rt.cudaFree(NULL), cudaSuccess);
    CHECK_EQUAL(strcmp(rt.cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation"),
                0);
}

static void allocate_all_kinds(void)
{
    void *address = NULL;
    size_t pitch = 0;
    struct cudaPitchedPtr box;
    struct cudaPointerAttributes attributes;
    char byte = 0;
    load_runtime();
    CHECK_EQUAL(rt.cudaMallocPitch(&address, &pitch, 100, 10), 0);
    CHECK_EQUAL(pitch, 512);
    CHECK_EQUAL(rt.cudaMalloc3D(&box, (struct cudaExtent){100, 10, 10}), 0);
    CHECK_EQUAL(rt.cudaMallocManaged(&address, MIB, cudaMemAttachGlobal), 0);
    CHECK_EQUAL(rt.cudaHostAlloc(&address, MIB, 0), 0);
    CHECK_EQUAL(rt.cudaPointerGetAttributes(&attributes, address), 0);
    CHECK_EQUAL(attributes.type, cudaMemoryTypeHost);
    CHECK_EQUAL(rt.cudaFreeHost(address), 0);
    CHECK_EQUAL(rt.cudaMalloc(&address, 3 * MIB), 0);
    CHECK_EQUAL(rt.cudaMemset(address, 5, 3 * MIB), 0);
    CHECK_EQUAL(rt.cudaMemcpy(&byte, address, 1, cudaMemcpyDeviceToHost), 0);
    CHECK_EQUAL(byte, 5);
    CHECK_EQUAL(rt.cudaDeviceReset(), 0);
    CHECK_EQUAL(rt.cudaMalloc(&address, 3 * MIB), 0);
}

static void allocate_in_stream_order(void)
{
    void *address = NULL;
    cudaStream_t stream = NULL;
    cudaMemPool_t pool = NULL;
    cuuint64_t used = 0;
    load_runtime();
    CHECK_EQUAL(rt.cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), 0);
    CHECK_EQUAL(rt.cudaDeviceGetDefaultMemPool(&pool, 0), 0);
    CHECK_EQUAL(rt.cudaMallocAsync(&address, 1000, stream), 0);
    CHECK_EQUAL(rt.cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used), 0);
    CHECK_EQUAL(used, 1000);
    CHECK_EQUAL(rt.cudaFreeAsync(address, stream), 0);
    CHECK_EQUAL(rt.cudaMallocAsync_ptsz(&address, 1000, NULL), 0);
    CHECK_EQUAL(rt.cudaFreeAsync(address, stream), 0);
    CHECK_EQUAL(rt.cudaStreamSynchronize(stream), 0);
}

static void get_entry_points(void)
{
    void *resolved = NULL;
    enum cudaDriverEntryPointQueryResult status;
    load_runtime();
    load_driver();
    CHECK_EQUAL(rt.cudaGetDriverEntryPointByVersion("cuMemCreate", &resolved, 12000, 0, &status),
                0);
    CHECK(resolved == dlsym(cu.library, "cuMemCreate"));
    CHECK_EQUAL(rt.cudaGetDriverEntryPointByVersion("cuNoSuchThing", &resolved, 12000, 0, &status),
                0);
    CHECK_EQUAL(status, cudaDriverEntryPointSymbolNotFound);
}

static void refuse_old_driver(void)
{
    void *address = NULL;
    load_runtime();
    CHECK_EQUAL(rt.cudaMalloc(&address, MIB), cudaErrorInsufficientDriver);
}

static void use_runtime_after_fork(void)
{
    void *address = NULL;
    int status = 0;
    load_runtime();
    CHECK_EQUAL(rt.cudaMalloc(&address, MIB), 0);
    pid_t pid = fork();
    if (pid == 0) {
        CHECK_EQUAL(rt.cudaMalloc(&address, MIB), cudaErrorInitializationError);
        return;
    }
    waitpid(pid, &status, 0);
    CHECK_EQUAL(status, 0);
}

#define TEST(name, body, ...)                                                                      \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        run_child(body, __VA_ARGS__);                                                              \
    }

TEST(runtime_asks_the_resolver_for_everything, find_driver, "GPUSIM_TRACE=" TRACE_PATH,
     "GPUSIM_DEVICES=3", NULL)
TEST(last_error_is_kept_until_asked_for, keep_last_error, NULL)
TEST(runtime_allocates_all_kinds, allocate_all_kinds, NULL)
TEST(runtime_allocates_in_stream_order, allocate_in_stream_order, NULL)
TEST(runtime_hands_out_driver_entry_points, get_entry_points, NULL)
TEST(runtime_refuses_an_older_driver, refuse_old_driver, "GPUSIM_DRIVER_VERSION=12040", NULL)
TEST(runtime_in_a_child_of_fork_is_refused, use_runtime_after_fork, NULL)

const struct CMUnitTest runtime_tests[] = {
    cmocka_unit_test(runtime_asks_the_resolver_for_everything),
    cmocka_unit_test(last_error_is_kept_until_asked_for),
    cmocka_unit_test(runtime_allocates_all_kinds),
    cmocka_unit_test(runtime_allocates_in_stream_order),
    cmocka_unit_test(runtime_hands_out_driver_entry_points),
    cmocka_unit_test(runtime_refuses_an_older_driver),
    cmocka_unit_test(runtime_in_a_child_of_fork_is_refused),
};
const size_t runtime_tests_count = sizeof(runtime_tests) / sizeof(runtime_tests[0]);
