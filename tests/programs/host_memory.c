/*
 * Host memory is short, the device is not.
 *   host_memory available   pinned memory, a third more than the host has available
 *   host_memory total       the same, far more than the host has: safe on a real machine
 *   host_memory locked      pinned memory beyond RLIMIT_MEMLOCK
 * A pool keeps 1 GiB of idle device memory meanwhile, and must have it afterwards.
 */
#include <string.h>
#include <sys/resource.h>

#include "host.h"

static size_t meminfo_bytes(const char *name)
{
    char line[128];
    unsigned long long kib = 0;
    size_t length = strlen(name);
    FILE *file = fopen("/proc/meminfo", "r");

    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (strncmp(line, name, length) == 0 && sscanf(line + length, ": %llu", &kib) == 1)
            break;
    if (file != NULL)
        fclose(file);
    return (size_t)kib * 1024;
}

static size_t bytes_for(const char *mode)
{
    struct rlimit limit = {MIB, MIB};

    if (strcmp(mode, "available") == 0)
        return meminfo_bytes("MemAvailable") / 3 * 4;
    if (strcmp(mode, "total") == 0)
        /* A virtual machine may be given more as it goes. */
        return meminfo_bytes("MemTotal") + 1024 * 1024 * MIB;
    if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0)
        exit(1);
    return 128 * MIB;
}

static void keep_idle_memory(CUmemoryPool *pool, CUstream stream)
{
    cuuint64_t no_limit = UINT64_MAX;
    CUdeviceptr once;

    MUST(driver.pool_default(pool, 0));
    MUST(driver.pool_set(*pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &no_limit));
    MUST(driver.mem_alloc_async(&once, 1024 * MIB, stream));
    MUST(driver.mem_free_async(once, stream));
    MUST(driver.stream_synchronize(stream));
}

int main(int count, char **words)
{
    CUmemoryPool pool;
    CUstream stream;
    void *refused = NULL;

    open_device();
    MUST(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
    keep_idle_memory(&pool, stream);
    size_t before = free_bytes();
    size_t bytes = bytes_for(count > 1 ? words[1] : "available");
    expect("pinned memory beyond what the host gives", driver.mem_host_alloc(&refused, bytes, 0),
           CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
    printf("outcome: the device's pool was left alone %d\n", free_bytes() == before);
    return free_bytes() == before ? 0 : 1;
}
