/*
 * Code is loaded with a buffer for the compiler's log, whose size the driver
 * overwrites.  The load is refused once (by order) and repeated after an idle
 * pool has given its memory back: it must be the same call then.
 *   regress_load_options module|library|file
 *   regress_load_options constant       options without answers, which cannot be written to
 */
#define HOST_FUNCTIONS(F)                                                                          \
    F(module_load, cuModuleLoadDataEx)                                                             \
    F(library_load, cuLibraryLoadData)                                                             \
    F(file_load, cuLibraryLoadFromFile)

#include <string.h>

#include "host.h"

static char log_text[4096];
static CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
static void *values[] = {log_text, (void *)sizeof(log_text)};
static CUjit_option limits[] = {CU_JIT_MAX_REGISTERS};
static void *const limit_values[] = {(void *)32};

static void keep_memory_idle(void)
{
    cuuint64_t keep_all = UINT64_MAX;
    CUmemoryPool pool;
    CUstream stream;
    CUdeviceptr memory;

    MUST(driver.pool_default(&pool, 0));
    MUST(driver.pool_set(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep_all));
    MUST(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
    MUST(driver.mem_alloc_async(&memory, scaled(free_bytes(), 8192), stream));
    MUST(driver.mem_free_async(memory, stream));
    MUST(driver.stream_synchronize(stream));
}

static CUresult load(const char *how)
{
    CUmodule module;
    CUlibrary library;

    if (strcmp(how, "module") == 0)
        return driver.module_load(&module, "image", 2, options, values);
    if (strcmp(how, "constant") == 0)
        return driver.module_load(&module, "image", 1, limits, (void **)(uintptr_t)limit_values);
    if (strcmp(how, "library") == 0)
        return driver.library_load(&library, "image", options, values, 2, NULL, NULL, 0);
    return driver.file_load(&library, "path", options, values, 2, NULL, NULL, 0);
}

int main(int count, char **words)
{
    open_device();
    keep_memory_idle();
    expect("load", load(count > 1 ? words[1] : "module"), CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY);
    printf("outcome: log of %zu: %s\n", (size_t)(uintptr_t)values[1], log_text);
    return 0;
}
