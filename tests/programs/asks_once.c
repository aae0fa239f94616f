/*
 * A framework (a stand-in) that is known to ask again asks only once; what the
 * program holds is freed before it ends.
 *   asks_once LIBRARY async     of the driver's pool, as torch does on cudaMallocAsync
 *   asks_once LIBRARY sync      as CuPy does without its pool
 */
#include <string.h>

#include "host.h"

typedef CUresult allocate_function(CUdeviceptr *memory, size_t bytes, CUstream stream);
typedef CUresult take_function(allocate_function *allocate, CUdeviceptr *memory, size_t bytes);

static CUresult allocate_async(CUdeviceptr *memory, size_t bytes, CUstream stream)
{
    return driver.mem_alloc_async(memory, bytes, stream);
}

static CUresult allocate(CUdeviceptr *memory, size_t bytes, CUstream stream)
{
    (void)stream;
    return driver.mem_alloc(memory, bytes);
}

int main(int count, char **words)
{
    CUdeviceptr live, memory;
    take_function *take;

    if (count < 3)
        return 1;
    open_device();
    *(void **)&take = function_of(words[1], "stub_once_take");
    size_t at_start = free_bytes();
    MUST(driver.mem_alloc(&live, scaled(at_start, 12288)));
    outcome("asked", take(strcmp(words[2], "async") == 0 ? allocate_async : allocate, &memory,
                          scaled(at_start, 6144)));
    MUST(driver.mem_free(live));
    return 0;
}
