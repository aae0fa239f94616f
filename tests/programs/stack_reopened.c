/*
 * Two libraries alike, one after the other, so that the second lies where the
 * first one was: each allocates six times, the second twice as much.
 */
#include "host.h"

typedef CUresult allocate(CUresult (*real)(CUdeviceptr *, size_t), CUdeviceptr *, size_t);

static void use(const char *path, size_t bytes)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    allocate *function = library ? (allocate *)dlsym(library, "allocate_in_library") : NULL;
    CUdeviceptr address;

    if (!function)
        exit(1);
    for (int i = 0; i < 6; i++)
        MUST(function(driver.mem_alloc, &address, bytes));
    dlclose(library);
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 1;
    open_device();
    use(argv[1], 2 * MIB);
    use(argv[2], 4 * MIB);
    snapshot(argv[3]);
    tell_live();
    return 0;
}
