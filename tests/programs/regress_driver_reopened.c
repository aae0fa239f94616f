/*
 * The driver is opened, looked at and closed, as programs do that only ask
 * whether there is one; the next one to open it gets it at another place.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

static int look(void **place)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    int version = 0;

    if (!library)
        return 77;
    *place = (void *)((struct link_map *)library)->l_addr;
    int (*ask)(int *) = (int (*)(int *))(uintptr_t)dlsym(library, "cuDriverGetVersion");
    int (*allocate)(uint64_t *, size_t) =
        (int (*)(uint64_t *, size_t))(uintptr_t)dlsym(library, "cuMemAlloc_v2");
    uint64_t address = 0;
    printf("outcome: version %d allocation %d\n", ask(&version), allocate(&address, 1));
    dlclose(library);
    return 0;
}

int main(void)
{
    void *own = dlopen(NULL, RTLD_NOW);

    printf("outcome: found without a driver %d\n", dlsym(own, "cuMemAlloc_v2") != NULL);
    for (int i = 0; i < 3; i++) {
        void *place;
        int result = look(&place);
        if (result != 0)
            return result;
        mmap(place, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    }
    return 0;
}
