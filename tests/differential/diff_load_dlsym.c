/* dlopen, then dlsym for each function: as ctypes and numba do. */
#include <dlfcn.h>
#include <stddef.h>

#include "diff_driver.h"

struct diff_driver cu;

#define EXPANDED(function) #function
#define SYMBOL(function) EXPANDED(function)

bool diff_load(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);

    if (library == NULL)
        return false;
#define FROM_DLSYM(member, function)                                                               \
    cu.member = (__typeof__(&function))dlsym(library, SYMBOL(function));
    DIFF_DRIVER(FROM_DLSYM)
#undef FROM_DLSYM
    cu.context_create = (diff_context_create)dlsym(library, "cuCtxCreate_v2");
    cu.alloc_async_per_thread = (diff_alloc_async)dlsym(library, "cuMemAllocAsync_ptsz");
    cu.free_async_per_thread = (diff_free_async)dlsym(library, "cuMemFreeAsync_ptsz");
    return cu.init != NULL;
}
