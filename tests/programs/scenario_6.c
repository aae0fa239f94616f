/*
 * Device memory in pieces: allocations of 1 MiB fill the device, two to a
 * 2 MiB block, and every other one is freed.  Half of what they took is unused
 * and 4 MiB cannot be had.
 *   scenario_6 [MiB to fill with small ones; the rest is taken in one piece]
 */
#include "host.h"

static CUdeviceptr *small;
static size_t small_count;

static void fill(size_t room)
{
    small = calloc(room, sizeof(*small));
    if (small == NULL)
        exit(1);
    while (small_count < room && driver.mem_alloc(&small[small_count], MIB) == CUDA_SUCCESS)
        small_count++;
}

static void free_every_other(size_t first)
{
    for (size_t i = first; i < small_count; i += 2)
        MUST(driver.mem_free(small[i]));
}

/* What cannot be filled with 1 MiB in a reasonable time is taken whole. */
static CUdeviceptr take_rest(size_t left_bytes)
{
    CUdeviceptr rest = 0;
    size_t now = free_bytes();
    if (now > left_bytes)
        MUST(driver.mem_alloc(&rest, (now - left_bytes) / (2 * MIB) * (2 * MIB)));
    return rest;
}

int main(int count, char **words)
{
    CUdeviceptr refused = 0;
    size_t fill_bytes = count > 1 ? (size_t)strtoul(words[1], NULL, 10) * MIB : 2048 * MIB;

    open_device();
    CUdeviceptr rest = take_rest(fill_bytes);
    fill(2 * fill_bytes / MIB + 1024);
    free_every_other(1);

    CUresult result = driver.mem_alloc(&refused, 4 * MIB);
    expect("4 MiB among half-empty blocks", result, CUDA_ERROR_OUT_OF_MEMORY,
           CUDA_ERROR_OUT_OF_MEMORY);
    CUdeviceptr fits = 0;
    expect("1 MiB among half-empty blocks", driver.mem_alloc(&fits, MIB), CUDA_SUCCESS,
           CUDA_SUCCESS);
    MUST(driver.mem_free(fits));

    free_every_other(0);
    if (rest != 0)
        MUST(driver.mem_free(rest));
    free(small);
    return 0;
}
