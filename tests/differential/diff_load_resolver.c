/*
 * dlsym for cuGetProcAddress_v2 alone, then the resolver for everything: as
 * every cudart since 12.0 does.  The version chooses the ABI, a flag the stream.
 */
#include <dlfcn.h>
#include <stddef.h>

#include "diff_driver.h"

/* With 13.0, some of these names stand for other arguments than cuda.h declares. */
#define VERSION 12080

struct diff_driver cu;

typedef CUresult (*resolver)(const char *, void **, int, cuuint64_t,
                             CUdriverProcAddressQueryResult *);

bool diff_load(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    resolver resolve = library != NULL ? (resolver)dlsym(library, "cuGetProcAddress_v2") : NULL;

    if (resolve == NULL)
        return false;
#define FROM_RESOLVER(member, function)                                                            \
    resolve(#function, (void **)&cu.member, VERSION, CU_GET_PROC_ADDRESS_DEFAULT, NULL);
    DIFF_DRIVER(FROM_RESOLVER)
#undef FROM_RESOLVER
    resolve("cuCtxCreate", (void **)&cu.context_create, 3020, 0, NULL);
    resolve("cuMemAllocAsync", (void **)&cu.alloc_async_per_thread, VERSION,
            CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, NULL);
    resolve("cuMemFreeAsync", (void **)&cu.free_async_per_thread, VERSION,
            CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, NULL);
    return cu.init != NULL;
}
