/*
 * A caller like XLA's allocator: asks for nine tenths, again and again, gives
 * up when that is too little, frees everything and ends.
 * Run it under the name of such a library (xla_extension…).
 *   gives_up [small allocations that are live beside it, up to 20,000]
 */
#include <stdlib.h>

#include "host.h"

#define SMALL_MAX 20000

static size_t at_start;
static CUdeviceptr smalls[SMALL_MAX];

__attribute__((noinline)) static CUdeviceptr keep_weights(void)
{
    CUdeviceptr weights;

    MUST(driver.mem_alloc(&weights, scaled(at_start, 12288)));
    return weights;
}

__attribute__((noinline)) static void keep_smalls(int count)
{
    for (int i = 0; i < count; i++)
        MUST(driver.mem_alloc(&smalls[i], 512));
}

static void free_smalls(int count)
{
    for (int i = 0; i < count; i++)
        MUST(driver.mem_free(smalls[i]));
}

__attribute__((noinline)) static void extend_until_it_is_too_little(void)
{
    size_t least = scaled(at_start, 6144);
    CUdeviceptr memory;

    for (size_t bytes = scaled(at_start, 12288); bytes >= least;
         bytes = bytes / 10 * 9 / (2 * MIB) * (2 * MIB))
        outcome("extend", driver.mem_alloc(&memory, bytes));
}

int main(int count, char **words)
{
    int small_count = count > 1 ? atoi(words[1]) : 0;

    open_device();
    at_start = free_bytes();
    CUdeviceptr weights = keep_weights();
    keep_smalls(small_count);
    extend_until_it_is_too_little();
    free_smalls(small_count);
    MUST(driver.mem_free(weights));
    return 0;
}
