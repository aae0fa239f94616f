/*
 * torch (a stand-in) lets an expandable segment grow by 6144 in 16 pieces.
 *   segments LIBRARY survives    has a cache of 4096 to give up; three times over
 *   segments LIBRARY fails       has none; goes on with less
 */
#include <string.h>

#include "host.h"
#include "stub_segments.h"

static size_t at_start;
static CUdeviceptr cache;
static struct stub_segment segment;
static struct stub_segment_driver functions;
static stub_segment_grow_function *grow;

static void flush(void)
{
    if (cache)
        MUST(driver.mem_free(cache));
    cache = 0;
}

static void find_grow(const char *path)
{
    *(void **)&grow = function_of(path, "stub_segment_grow");
    functions = (struct stub_segment_driver){.create = driver.mem_create,
                                             .release = driver.mem_release,
                                             .map = driver.mem_map,
                                             .unmap = driver.mem_unmap};
}

static void shrink(void)
{
    MUST(driver.mem_unmap(segment.at, STUB_SEGMENT_PIECES * segment.piece_bytes));
    for (int i = 0; i < STUB_SEGMENT_PIECES; i++)
        MUST(driver.mem_release(segment.pieces[i]));
}

static CUresult ask(unsigned live_mib, unsigned cached_mib)
{
    CUdeviceptr live;

    MUST(driver.mem_alloc(&live, scaled(at_start, live_mib)));
    if (cached_mib)
        MUST(driver.mem_alloc(&cache, scaled(at_start, cached_mib)));
    CUresult result = grow(&functions, &segment, flush);
    if (result == CUDA_SUCCESS)
        shrink();
    flush();
    MUST(driver.mem_free(live));
    return result;
}

int main(int count, char **words)
{
    if (count < 3)
        return 1;
    open_device();
    find_grow(words[1]);
    at_start = free_bytes();
    segment.piece_bytes = scaled(at_start, 6144) / STUB_SEGMENT_PIECES / (2 * MIB) * (2 * MIB);
    MUST(driver.mem_reserve(&segment.at, STUB_SEGMENT_PIECES * segment.piece_bytes, 0, 0, 0));
    if (strcmp(words[2], "survives") == 0) {
        for (int round = 0; round < 3; round++)
            outcome("grown", ask(7168, 4096));
    } else {
        outcome("too large", ask(12288, 0));
        outcome("with less in use", ask(4096, 0));
    }
    if (gpuoomshim_survived_count)
        fprintf(stderr, "shim: survived=%" PRIu64 "\n", gpuoomshim_survived_count());
    MUST(driver.mem_unreserve(segment.at, STUB_SEGMENT_PIECES * segment.piece_bytes));
    return 0;
}
