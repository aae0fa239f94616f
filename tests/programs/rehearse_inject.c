/*
 * Allocations that are all served, unless somebody makes some of them fail.
 *   rehearse_inject device COUNT   which of COUNT allocations failed
 *   rehearse_inject kinds          one of each kind, and a launch
 *   rehearse_inject retry COUNT    each asked for again once, as a caching allocator does
 *   rehearse_inject threads COUNT  COUNT in each of 8 threads: how many failed
 *   rehearse_inject pending        with memory to be had by recovery
 */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "host.h"

static CUstream stream;
static CUcontext context;

static void device(unsigned count)
{
    for (unsigned i = 1; i <= count; i++) {
        CUdeviceptr live = 42;
        CUresult result = driver.mem_alloc(&live, i * MIB);
        if (result == CUDA_SUCCESS)
            MUST(driver.mem_free(live));
        else
            printf("outcome: %u gives %d and %llu\n", i, (int)result, (unsigned long long)live);
    }
}

static void retry(unsigned count)
{
    unsigned failed = 0;

    for (unsigned i = 0; i < count; i++) {
        CUdeviceptr live;
        if (driver.mem_alloc(&live, 2 * MIB) != CUDA_SUCCESS) {
            failed++;
            MUST(driver.mem_alloc(&live, 2 * MIB));
        }
        MUST(driver.mem_free(live));
    }
    printf("outcome: survived %u\n", failed);
}

static void kinds(void)
{
    CUdeviceptr live;
    void *pinned;
    CUmodule module;
    CUfunction function;
    size_t pitch;

    outcome("device", driver.mem_alloc(&live, MIB));
    outcome("pitched", driver.mem_alloc_pitch(&live, &pitch, 1000, 100, 4));
    outcome("managed", driver.mem_alloc_managed(&live, MIB, CU_MEM_ATTACH_GLOBAL));
    outcome("async", driver.mem_alloc_async(&live, MIB, stream));
    outcome("host", driver.mem_alloc_host(&pinned, MIB));
    outcome("load", driver.module_load_data(&module, ""));
    if (driver.module_get_function(&function, module, "kernel") == CUDA_SUCCESS)
        outcome("launch", driver.launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
}

static unsigned _Atomic failed_count;

static void *many(void *count)
{
    MUST(driver.context_set(context));
    for (uintptr_t i = 0; i < (uintptr_t)count; i++) {
        CUdeviceptr live;
        if (driver.mem_alloc(&live, MIB) == CUDA_SUCCESS)
            MUST(driver.mem_free(live));
        else
            failed_count++;
    }
    return NULL;
}

static void threads(unsigned count)
{
    pthread_t all[8];

    MUST(driver.primary_retain(&context, 0));
    for (int i = 0; i < 8; i++)
        pthread_create(&all[i], NULL, many, (void *)(uintptr_t)count);
    for (int i = 0; i < 8; i++)
        pthread_join(all[i], NULL);
    printf("outcome: failed %u\n", failed_count);
}

static void work(void *unused)
{
    (void)unused;
    usleep(20000);
}

/* A step of recovery has something to do, so the driver is asked again. */
static void pending(void)
{
    CUdeviceptr live;

    MUST(driver.mem_alloc_async(&live, 64 * MIB, stream));
    MUST(driver.launch_host_func(stream, work, NULL));
    MUST(driver.mem_free_async(live, stream));
    outcome("behind a pending free", driver.mem_alloc(&live, 2 * MIB));
}

int main(int count, char **words)
{
    const char *part = count > 1 ? words[1] : "";
    unsigned number = count > 2 ? (unsigned)atoi(words[2]) : 0;

    open_device();
    MUST(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
    if (strcmp(part, "device") == 0)
        device(number);
    else if (strcmp(part, "retry") == 0)
        retry(number);
    else if (strcmp(part, "kinds") == 0)
        kinds();
    else if (strcmp(part, "threads") == 0)
        threads(number);
    else if (strcmp(part, "pending") == 0)
        pending();
    else
        return 1;
    return 0;
}
