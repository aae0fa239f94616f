/*
 * torch (a stand-in) holds everything idle, asks for a larger segment, is
 * refused, frees what is idle and asks again.
 *   runtime_own_cache LIBRARY ROUNDS      LIBRARY: the stand-in for torch
 */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gpuoomshim.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SEGMENTS 15

static int (*take)(int *number, size_t bytes);
static void (*give)(int number);
static int (*empty_cache)(void);

static uint64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

static int find_allocator(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);

    if (library == NULL)
        return -1;
    *(void **)&take = dlsym(library, "stub_torch_take");
    *(void **)&give = dlsym(library, "stub_torch_give");
    *(void **)&empty_cache = dlsym(library, "stub_torch_empty_cache");
    return take && give && empty_cache ? 0 : -1;
}

/* How long the larger segment took; 0: it was not given. */
static uint64_t ask_beside_idle(size_t part_bytes)
{
    int number[SEGMENTS], larger;

    for (int i = 0; i < SEGMENTS; i++)
        if (take(&number[i], part_bytes) != cudaSuccess)
            return 0;
    for (int i = 0; i < SEGMENTS; i++)
        give(number[i]);
    uint64_t begin = now_us();
    if (take(&larger, 2 * part_bytes) != cudaSuccess)
        return 0;
    uint64_t took_us = now_us() - begin;
    give(larger);
    empty_cache();
    return took_us ? took_us : 1;
}

int main(int count, char **words)
{
    size_t free_now, total;
    uint64_t fastest_us = UINT64_MAX;

    if (count < 3 || find_allocator(words[1]) != 0 ||
        cudaMemGetInfo(&free_now, &total) != cudaSuccess)
        return 1;
    for (int round = atoi(words[2]); round > 0; round--) {
        uint64_t took_us = ask_beside_idle((free_now / 31 * 2) >> 21 << 21);
        if (took_us == 0)
            return 1;
        fastest_us = took_us < fastest_us ? took_us : fastest_us;
    }
    printf("outcome: last error %d\n", (int)cudaGetLastError());
    fprintf(stderr, "shim: fastest_us=%" PRIu64 "\n", fastest_us);
    if (gpuoomshim_survived_count)
        fprintf(stderr, "shim: survived=%" PRIu64 "\n", gpuoomshim_survived_count());
    return 0;
}
