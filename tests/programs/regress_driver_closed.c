/* The driver is used and closed for good, and the program ends without it. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

static void *library;

static void *find(const char *name)
{
    return dlsym(library, name);
}

int main(void)
{
    uint64_t address = 0;
    void *context = NULL;

    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        return 77;
    int (*start)(unsigned) = (int (*)(unsigned))(uintptr_t)find("cuInit");
    int (*retain)(void **, int) =
        (int (*)(void **, int))(uintptr_t)find("cuDevicePrimaryCtxRetain");
    int (*set)(void *) = (int (*)(void *))(uintptr_t)find("cuCtxSetCurrent");
    int (*allocate)(uint64_t *, size_t) =
        (int (*)(uint64_t *, size_t))(uintptr_t)find("cuMemAlloc_v2");
    if (start(0) || retain(&context, 0) || set(context) || allocate(&address, 4096))
        return 1;
    printf("outcome: closed %d\n", dlclose(library));
    return 0;
}
