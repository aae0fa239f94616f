/*
 * No address space is left for anybody's books, but the driver needs none:
 * small pieces of device blocks that it has already.  Every allocation must
 * come out as without the shim, and nothing may be lost to the host.
 *
 * The limit is lifted before the frees, so that what is told can be told.
 */
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include "host.h"

#define BLOCKS 16
#define PIECES (BLOCKS * 2000)

static CUdeviceptr halves[BLOCKS * 2], pieces[PIECES];

static size_t address_space(void)
{
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");

    if (file == NULL || fscanf(file, "%zu", &pages) != 1)
        exit(77);
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* The driver's own heap, kept for it: nothing is given back to the system. */
static void grow_heap(void)
{
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    free(malloc(32 * MIB));
}

static void set_limit(rlim_t bytes)
{
    struct rlimit limit;

    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = bytes;
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        exit(77);
}

int main(void)
{
    unsigned made = 0;

    open_device();
    grow_heap();
    for (unsigned i = 0; i < BLOCKS * 2; i++)
        MUST(driver.mem_alloc(&halves[i], MIB));
    for (unsigned i = 0; i < BLOCKS * 2; i += 2)
        MUST(driver.mem_free(halves[i]));
    set_limit(address_space());
    for (unsigned i = 0; i < PIECES; i++)
        made += driver.mem_alloc(&pieces[i], 512) == CUDA_SUCCESS;
    set_limit(RLIM_INFINITY);
    printf("outcome: made %u\n", made);
    tell_live();
    for (unsigned i = 0; i < PIECES; i++)
        MUST(driver.mem_free(pieces[i]));
    for (unsigned i = 1; i < BLOCKS * 2; i += 2)
        MUST(driver.mem_free(halves[i]));
    outcome("all freed", CUDA_SUCCESS);
    tell_live();
    return 0;
}
