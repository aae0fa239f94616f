/*
 * Callers that ask again after a failure, in a way that no list knows.
 *   retries same      frees its cache and asks for the same; three times over
 *   retries shrink    asks for nine tenths, again and again; three times over
 *   retries gives_up  survives twice, then fails for good
 *   retries threads   four threads that survived once all fail for good
 */
#include <pthread.h>
#include <string.h>

#include "host.h"

static CUcontext context;
static size_t at_start;

__attribute__((noinline)) static CUresult get(CUdeviceptr *memory, size_t bytes)
{
    return driver.mem_alloc(memory, bytes);
}

/* 4096 are cached and 8192 more in use; asks for 6144. */
__attribute__((noinline)) static CUresult ask_same(bool has_cache)
{
    CUdeviceptr live, cache = 0, memory = 0;

    MUST(driver.mem_alloc(&live, scaled(at_start, has_cache ? 8192 : 12288)));
    if (has_cache)
        MUST(driver.mem_alloc(&cache, scaled(at_start, 4096)));
    CUresult result = CUDA_SUCCESS;
    for (int attempt = 0; attempt < 2; attempt++) {
        result = get(&memory, scaled(at_start, 6144));
        if (result == CUDA_SUCCESS || !cache)
            break;
        MUST(driver.mem_free(cache));
        cache = 0;
    }
    if (memory)
        MUST(driver.mem_free(memory));
    MUST(driver.mem_free(live));
    return result;
}

__attribute__((noinline)) static CUresult ask_shrinking(void)
{
    CUdeviceptr live, memory = 0;
    size_t bytes = scaled(at_start, 15872);
    CUresult result;

    MUST(driver.mem_alloc(&live, scaled(at_start, 4096)));
    while ((result = get(&memory, bytes)) != CUDA_SUCCESS)
        bytes = bytes / 10 * 9 / (2 * MIB) * (2 * MIB);
    MUST(driver.mem_free(memory));
    MUST(driver.mem_free(live));
    return result;
}

/* Every failure has this caller: they look alike. */
__attribute__((noinline)) static CUresult ask_from_here(bool has_cache)
{
    return ask_same(has_cache);
}

static void *fail_for_good(void *unused)
{
    (void)unused;
    MUST(driver.context_set(context));
    outcome("for good", ask_from_here(false));
    return NULL;
}

static void fail_in_threads(void)
{
    pthread_t threads[4];

    /* One after the other, so that each has memory to itself; none ends before the process. */
    for (int i = 0; i < 4; i++) {
        pthread_create(&threads[i], NULL, fail_for_good, NULL);
        pthread_join(threads[i], NULL);
    }
}

int main(int count, char **words)
{
    const char *how = count > 1 ? words[1] : "same";
    bool shrinks = strcmp(how, "shrink") == 0;

    open_device();
    MUST(driver.context_get(&context));
    at_start = free_bytes();
    for (int round = 0; round < (strcmp(how, "gives_up") == 0 ? 2 : 3); round++)
        outcome("survived", shrinks ? ask_shrinking() : ask_from_here(true));
    if (strcmp(how, "gives_up") == 0)
        outcome("for good", ask_from_here(false));
    if (strcmp(how, "threads") == 0)
        fail_in_threads();
    return 0;
}
