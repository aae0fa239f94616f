/*
 * What the shim costs.  In one process, batch by batch, the function that the
 * program is given (hooked when the shim is preloaded) and the bare one, taken
 * from libcuda's own symbol table, take turns, so that the machine's moods hit
 * both alike.  Medians over the batches are printed.
 *
 *   bench pairs          cuMemAlloc, cuMemAllocAsync and cuLaunchKernel
 *   bench threads N      pairs per second of 1 and of N threads, hooked only
 *   bench live N         resident memory that N live allocations add
 *   bench report N       a snapshot report while N allocations live
 */
#include <cuda.h>
#include <dlfcn.h>
#include <gpuoomshim.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct functions {
    __typeof__(&cuMemAlloc) alloc;
    __typeof__(&cuMemFree) free;
    __typeof__(&cuMemAllocAsync) alloc_async;
    __typeof__(&cuMemFreeAsync) free_async;
    __typeof__(&cuLaunchKernel) launch;
};

static void *library;

/* The address in libcuda's own symbol table, which no hook can change. */
static void *bare(const char *name)
{
    struct link_map *map;
    const ElfW(Sym) *symbols = NULL;
    const char *strings = NULL;
    const uint32_t *hash = NULL;

    if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0)
        return NULL;
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_SYMTAB)
            symbols = (const ElfW(Sym) *)entry->d_un.d_ptr;
        if (entry->d_tag == DT_STRTAB)
            strings = (const char *)entry->d_un.d_ptr;
        if (entry->d_tag == DT_GNU_HASH)
            hash = (const uint32_t *)entry->d_un.d_ptr;
    }
    if (symbols == NULL || strings == NULL || hash == NULL)
        return NULL;
    /* Buckets lead to chains; a chain's last entry has bit 0 set. */
    const uint32_t *buckets = (const uint32_t *)((const ElfW(Addr) *)(hash + 4) + hash[2]);
    const uint32_t *chains = buckets + hash[0];
    for (uint32_t bucket = 0; bucket < hash[0]; bucket++) {
        for (uint32_t i = buckets[bucket]; i != 0; i++) {
            if (symbols[i].st_shndx != 0 && strcmp(strings + symbols[i].st_name, name) == 0)
                return (void *)(map->l_addr + symbols[i].st_value);
            if (chains[i - hash[1]] & 1)
                break;
        }
    }
    return NULL;
}

static void *given(const char *name)
{
    return dlsym(library, name);
}

static struct functions take(void *(*get)(const char *))
{
    struct functions functions = {
        .alloc = (__typeof__(&cuMemAlloc))get("cuMemAlloc_v2"),
        .free = (__typeof__(&cuMemFree))get("cuMemFree_v2"),
        .alloc_async = (__typeof__(&cuMemAllocAsync))get("cuMemAllocAsync"),
        .free_async = (__typeof__(&cuMemFreeAsync))get("cuMemFreeAsync"),
        .launch = (__typeof__(&cuLaunchKernel))get("cuLaunchKernel"),
    };
    return functions;
}

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void fail(const char *what, int result)
{
    fprintf(stderr, "bench: %s: %d\n", what, result);
    exit(1);
}

static void start(void)
{
    CUcontext context;
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == NULL)
        exit(77);
    __typeof__(&cuInit) init = (__typeof__(&cuInit))given("cuInit");
    __typeof__(&cuDevicePrimaryCtxRetain) retain =
        (__typeof__(&cuDevicePrimaryCtxRetain))given("cuDevicePrimaryCtxRetain");
    __typeof__(&cuCtxSetCurrent) set = (__typeof__(&cuCtxSetCurrent))given("cuCtxSetCurrent");
    if (init(0) != CUDA_SUCCESS)
        exit(77);
    if (retain(&context, 0) != CUDA_SUCCESS || set(context) != CUDA_SUCCESS)
        fail("context", 0);
}

static void pair(const struct functions *f, size_t bytes)
{
    CUdeviceptr address;
    CUresult result = f->alloc(&address, bytes);
    if (result != CUDA_SUCCESS)
        fail("cuMemAlloc", (int)result);
    f->free(address);
}

static void pair_async(const struct functions *f, size_t bytes)
{
    CUdeviceptr address;
    CUresult result = f->alloc_async(&address, bytes, CU_STREAM_PER_THREAD);
    if (result != CUDA_SUCCESS)
        fail("cuMemAllocAsync", (int)result);
    f->free_async(address, CU_STREAM_PER_THREAD);
}

/* Does nothing. */
static CUfunction kernel;

static const char ptx[] = ".version 7.0\n.target sm_52\n.address_size 64\n"
                          ".visible .entry nothing() { ret; }\n";

static void load_kernel(void)
{
    CUmodule module;
    __typeof__(&cuModuleLoadData) load = (__typeof__(&cuModuleLoadData))given("cuModuleLoadData");
    __typeof__(&cuModuleGetFunction) get =
        (__typeof__(&cuModuleGetFunction))given("cuModuleGetFunction");

    CUresult result = load(&module, ptx);
    if (result == CUDA_SUCCESS)
        result = get(&kernel, module, "nothing");
    if (result != CUDA_SUCCESS)
        fail("kernel", (int)result);
}

static void launch(const struct functions *f, size_t unused)
{
    (void)unused;
    CUresult result = f->launch(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    if (result != CUDA_SUCCESS)
        fail("cuLaunchKernel", (int)result);
}

/* Queued launches must not make those of the next batch wait. */
static void settle(void)
{
    CUresult (*synchronize)(void) = (CUresult(*)(void))given("cuCtxSynchronize");
    synchronize();
}

typedef void (*task)(const struct functions *, size_t);

static double batch_ns(task work, const struct functions *f, size_t bytes, unsigned count)
{
    settle();
    uint64_t begin = now_ns();
    for (unsigned i = 0; i < count; i++)
        work(f, bytes);
    return (double)(now_ns() - begin) / count;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#define BATCHES 101

static void compare(const char *name, task work, size_t bytes, unsigned count)
{
    struct functions functions[2] = {take(bare), take(given)};
    double ns[2][BATCHES];

    for (unsigned i = 0; i < 2; i++)
        batch_ns(work, &functions[i], bytes, count);
    for (unsigned batch = 0; batch < BATCHES; batch++) {
        for (unsigned turn = 0; turn < 2; turn++) {
            unsigned which = (batch + turn) & 1;
            ns[which][batch] = batch_ns(work, &functions[which], bytes, count);
        }
    }
    for (unsigned i = 0; i < 2; i++)
        qsort(ns[i], BATCHES, sizeof(double), by_value);
    double without = ns[0][BATCHES / 2], with = ns[1][BATCHES / 2];
    printf("%-34s bare %10.1f ns  given %10.1f ns  added %+8.1f ns  x %.3f\n", name, without, with,
           with - without, with / without);
}

static int pairs(void)
{
    compare("cuMemAlloc+Free 2 MiB", pair, 2u << 20, 200);
    compare("cuMemAllocAsync+FreeAsync 1 MiB", pair_async, 1u << 20, 2000);
    load_kernel();
    compare("cuLaunchKernel of an empty kernel", launch, 0, 500);
    return 0;
}

struct pump {
    pthread_t thread;
    task work;
    uint64_t deadline_ns;
    uint64_t done;
};

static void *pump(void *argument)
{
    struct pump *pump = argument;
    struct functions f = take(given);
    while (now_ns() < pump->deadline_ns) {
        for (unsigned i = 0; i < 100; i++)
            pump->work(&f, 1u << 20);
        pump->done += 100;
    }
    return NULL;
}

static double pairs_per_second(task work, unsigned count)
{
    struct pump pumps[256] = {0};
    double sum = 0;

    for (unsigned i = 0; i < count; i++) {
        pumps[i].work = work;
        pumps[i].deadline_ns = now_ns() + 1000000000u;
        pthread_create(&pumps[i].thread, NULL, pump, &pumps[i]);
    }
    for (unsigned i = 0; i < count; i++) {
        pthread_join(pumps[i].thread, NULL);
        sum += (double)pumps[i].done;
    }
    return sum;
}

static void scale(const char *name, task work, unsigned count)
{
    double one = pairs_per_second(work, 1), many = pairs_per_second(work, count);
    printf("%-34s 1 thread %.2f M/s  %u threads %.2f M/s  x %.2f\n", name, one / 1e6, count,
           many / 1e6, many / one);
}

static int threads(unsigned count)
{
    if (count == 0 || count > 256)
        return 2;
    scale("cuMemAlloc pairs per second", pair, count);
    scale("cuMemAllocAsync pairs per second", pair_async, count);
    return 0;
}

static long resident_bytes(void)
{
    long size = 0, resident = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    if (statm == NULL || fscanf(statm, "%ld %ld", &size, &resident) != 2)
        fail("/proc/self/statm", 0);
    fclose(statm);
    return resident * 4096;
}

static int live(unsigned count)
{
    struct functions f = take(given);
    CUdeviceptr address;
    long before = resident_bytes();
    for (unsigned i = 0; i < count; i++)
        f.alloc(&address, 512);
    printf("%-34s %u live: %.1f bytes each\n", "memory per live allocation", count,
           (double)(resident_bytes() - before) / count);
    return 0;
}

static int report(unsigned count)
{
    struct functions f = take(given);
    CUdeviceptr address;
    double best_ms = 1e9;

    if (gpuoomshim_snapshot == NULL)
        return 77;
    for (unsigned i = 0; i < count; i++)
        f.alloc(&address, 512);
    for (unsigned i = 0; i < 5; i++) {
        uint64_t begin = now_ns();
        if (gpuoomshim_snapshot(NULL) != 0)
            fail("snapshot", 0);
        double ms = (double)(now_ns() - begin) / 1e6;
        best_ms = ms < best_ms ? ms : best_ms;
    }
    printf("%-34s %u live: %.1f ms to disk, best of 5\n", "report", count, best_ms);
    return 0;
}

int main(int count, char **words)
{
    start();
    if (count == 2 && strcmp(words[1], "pairs") == 0)
        return pairs();
    if (count == 3 && strcmp(words[1], "threads") == 0)
        return threads((unsigned)atoi(words[2]));
    if (count == 3 && strcmp(words[1], "live") == 0)
        return live((unsigned)atoi(words[2]));
    if (count == 3 && strcmp(words[1], "report") == 0)
        return report((unsigned)atoi(words[2]));
    fprintf(stderr, "usage: bench pairs | threads N | live N | report N\n");
    return 2;
}
