#include "selftest.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SETTINGS_MAX 8
#define EXIT_SKIP 77

enum driver { SIMULATED, REAL, MISSING };

struct api cu;

static unsigned failures;

void check(bool is_true, const char *text, const char *file, int line)
{
    if (is_true)
        return;
    fprintf(stderr, "%s:%d: not true: %s\n", file, line, text);
    failures++;
}

void check_equal(long long actual, long long expected, const char *text, const char *file, int line)
{
    if (actual == expected)
        return;
    fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", file, line, text, actual, expected);
    failures++;
}

static void *find_symbol(const char *name)
{
    void *symbol = dlsym(cu.library, name);
    if (symbol == NULL) {
        fprintf(stderr, "no %s in libcuda.so.1\n", name);
        _exit(MISSING);
    }
    return symbol;
}

void load_driver(void)
{
    cu.library = dlopen("libcuda.so.1", RTLD_NOW);
    if (cu.library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        _exit(MISSING);
    }
#define DRIVER_FUNCTION(name) *(void **)&cu.name = find_symbol(#name);
#include "selftest_driver.def"
#undef DRIVER_FUNCTION
    *(void **)&cu.gpusim_calls = dlsym(cu.library, "gpusim_calls");
}

bool is_simulated(void)
{
    return cu.gpusim_calls != NULL;
}

CUcontext start_driver(void)
{
    CUcontext context = NULL;
    load_driver();
    CHECK_EQUAL(cu.cuInit(0), 0);
    CHECK_EQUAL(cu.cuDevicePrimaryCtxRetain(&context, 0), 0);
    CHECK_EQUAL(cu.cuCtxSetCurrent(context), 0);
    return context;
}

uint64_t free_bytes(void)
{
    size_t bytes = 0;
    size_t total = 0;
    CHECK_EQUAL(cu.cuMemGetInfo_v2(&bytes, &total), 0);
    return bytes;
}

CUstream make_stream(void)
{
    CUstream stream = NULL;
    CHECK_EQUAL(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), 0);
    return stream;
}

CUmemoryPool default_pool(uint64_t threshold_bytes)
{
    CUmemoryPool pool = NULL;
    CHECK_EQUAL(cu.cuDeviceGetDefaultMemPool(&pool, 0), 0);
    CHECK_EQUAL(cu.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold_bytes),
                0);
    return pool;
}

uint64_t pool_bytes(CUmemoryPool pool, CUmemPool_attribute attribute)
{
    cuuint64_t bytes = 0;
    CHECK_EQUAL(cu.cuMemPoolGetAttribute(pool, attribute, &bytes), 0);
    return bytes;
}

static void sleep_milliseconds(void *argument)
{
    usleep((useconds_t)(uintptr_t)argument * 1000);
}

void occupy(CUstream stream, unsigned milliseconds)
{
    CHECK_EQUAL(cu.cuLaunchHostFunc(stream, sleep_milliseconds, (void *)(uintptr_t)milliseconds),
                0);
}

CUdeviceptr take(uint64_t bytes)
{
    CUdeviceptr address = 0;
    CHECK_EQUAL(cu.cuMemAlloc_v2(&address, bytes), 0);
    return address;
}

CUdeviceptr take_async(uint64_t bytes, CUstream stream)
{
    CUdeviceptr address = 0;
    CHECK_EQUAL(cu.cuMemAllocAsync(&address, bytes, stream), 0);
    return address;
}

/* Asked in a child, so that this process never has a driver. */
static enum driver find_driver(void)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        load_driver();
        _exit(is_simulated() ? SIMULATED : REAL);
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? (enum driver)WEXITSTATUS(status) : MISSING;
}

static bool run(void (*body)(void), char **settings, unsigned count)
{
    int status = 0;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        for (unsigned i = 0; i < count; i++)
            putenv(settings[i]);
        body();
        fflush(NULL);
        _exit(failures == 0 ? 0 : 1);
    }
    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status))
        fprintf(stderr, "killed by signal %d\n", WTERMSIG(status));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void run_child(void (*body)(void), ...)
{
    char *settings[SETTINGS_MAX];
    unsigned count = 0;
    va_list arguments;
    va_start(arguments, body);
    for (char *text; count < SETTINGS_MAX && (text = va_arg(arguments, char *)) != NULL;)
        settings[count++] = text;
    va_end(arguments);
    if (count != 0 && find_driver() == REAL)
        skip();
    assert_true(run(body, settings, count));
}

int main(int argc, char **argv)
{
    int failed = 0;
    if (find_driver() == MISSING)
        return EXIT_SKIP;
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    failed += _cmocka_run_group_tests("memory", memory_tests, memory_tests_count, NULL, NULL);
    failed += _cmocka_run_group_tests("pools", pool_tests, pool_tests_count, NULL, NULL);
    failed += _cmocka_run_group_tests("capture", capture_tests, capture_tests_count, NULL, NULL);
    failed += _cmocka_run_group_tests("processes", process_tests, process_tests_count, NULL, NULL);
    failed += _cmocka_run_group_tests("runtime", runtime_tests, runtime_tests_count, NULL, NULL);
    return failed != 0;
}
