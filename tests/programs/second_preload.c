/*
 * Another preload library that hooks the same: dlsym (answered with its own
 * cuMemAlloc_v2, everything else passed on) and cuMemAlloc_v2 itself.  Says at
 * the end how often each was seen.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define VISIBLE __attribute__((visibility("default")))

typedef void *(*lookup)(void *, const char *);
typedef CUresult (*allocate)(CUdeviceptr *, size_t);

static atomic_uint lookups, allocations;
static _Atomic(allocate) real_allocate;

static lookup next_lookup(void)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        lookup found = (lookup)dlvsym(RTLD_NEXT, "dlsym", versions[i]);
        if (found != NULL)
            return found;
    }
    return NULL;
}

VISIBLE CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    allocate real = atomic_load(&real_allocate);
    if (real == NULL)
        real = (allocate)next_lookup()(RTLD_NEXT, "cuMemAlloc_v2");
    atomic_fetch_add(&allocations, 1);
    return real == NULL ? CUDA_ERROR_NOT_FOUND : real(address, bytes);
}

VISIBLE void *dlsym(void *restrict handle, const char *restrict name)
{
    void *found = next_lookup()(handle, name);
    atomic_fetch_add(&lookups, 1);
    if (found == NULL || handle == RTLD_NEXT || strcmp(name, "cuMemAlloc_v2") != 0)
        return found;
    atomic_store(&real_allocate, (allocate)found);
    return (void *)cuMemAlloc_v2;
}

__attribute__((destructor)) static void tell(void)
{
    fprintf(stderr, "second: lookups=%u\nsecond: allocations=%u\n", atomic_load(&lookups),
            atomic_load(&allocations));
}
