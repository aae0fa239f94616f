/*
 * A C program that starts the interpreter of the libpython that is named, while
 * another of its threads runs out of memory again and again.  Then Python has a
 * module which can give memory back (GPUOOMSHIM_FLUSH=keeper:free).  Sizes in
 * MiB of the written scenario.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "host.h"

static const char keeper[] = "import ctypes, sys, types\n"
                             "cuda = ctypes.CDLL('libcuda.so.1')\n"
                             "keeper = sys.modules['keeper'] = types.ModuleType('keeper')\n"
                             "keeper.free = lambda: cuda.cuMemFree_v2(ctypes.c_uint64(%llu))\n";

static CUcontext context;
static size_t asked;
static _Atomic unsigned failed, served;
static _Atomic bool started;

/* Each asks for more than the last: another story. */
static void *fail_again_and_again(void *unused)
{
    CUdeviceptr memory;

    (void)unused;
    MUST(driver.context_set(context));
    for (size_t i = 0; !started; i++) {
        if (driver.mem_alloc(&memory, asked + i * 2 * MIB) == CUDA_SUCCESS)
            served++;
        else
            failed++;
    }
    return NULL;
}

static void start(void *python)
{
    void (*initialize)(int) = (void (*)(int))dlsym(python, "Py_InitializeEx");
    pthread_t thread;

    if (!initialize)
        exit(77);
    pthread_create(&thread, NULL, fail_again_and_again, NULL);
    while (failed == 0)
        usleep(1000);
    unsigned before = failed;
    initialize(0);
    printf("outcome: several failed meanwhile %d\n", failed > before + 1);
    started = true;
    pthread_join(thread, NULL);
}

int main(int count, char **words)
{
    char program[1000];
    CUdeviceptr kept, memory;
    void *python = count > 1 ? dlopen(words[1], RTLD_NOW | RTLD_GLOBAL) : NULL;

    if (!python)
        exit(77);
    open_device();
    MUST(driver.context_get(&context));
    size_t at_start = free_bytes();
    asked = scaled(at_start, 6144);
    MUST(driver.mem_alloc(&kept, scaled(at_start, 12288)));
    start(python);
    printf("outcome: served meanwhile %u\n", served);
    snprintf(program, sizeof program, keeper, (unsigned long long)kept);
    int (*run)(const char *, void *) =
        (int (*)(const char *, void *))dlsym(python, "PyRun_SimpleStringFlags");
    printf("outcome: program gave %d\n", run(program, NULL));
    expect("when it has started", driver.mem_alloc(&memory, asked), CUDA_SUCCESS,
           CUDA_ERROR_OUT_OF_MEMORY);
    ((int (*)(void))dlsym(python, "Py_FinalizeEx"))();
    return 0;
}
