#include <dlfcn.h>
#include <gpuoomshim.h>
#include <stdio.h>
#include <string.h>

#include "diff_world.h"

struct total {
    uint64_t bytes, count;
};

void diff_made(CUresult result, struct diff_memory *slot, struct diff_memory made)
{
    diff_result(result);
    if (result != CUDA_SUCCESS) {
        diff_say(" left %d", made.address == 0);
        return;
    }
    if (made.address == 0) { /* nothing of size 0 */
        diff_say(" null");
        return;
    }
    made.number = ++world.numbers;
    *slot = made;
    diff_say(" #%u", made.number);
}

void diff_gone(CUresult result, CUdeviceptr address)
{
    diff_result(result);
    if (result != CUDA_SUCCESS || address == 0)
        return;
    for (int i = 0; i < DIFF_MEMORIES; i++) {
        struct diff_memory *memory = &world.memories[i];
        if (memory->family == DIFF_NOTHING || memory->address != address)
            continue;
        diff_say(" #%u", memory->number);
        memset(memory, 0, sizeof(*memory));
    }
}

void diff_context_gone(int context)
{
    for (int i = 0; i < DIFF_MEMORIES; i++)
        if (world.memories[i].family != DIFF_NOTHING && world.memories[i].context == context)
            memset(&world.memories[i], 0, sizeof(world.memories[i]));
}

static bool is_on_books(const struct diff_memory *memory, int device)
{
    return memory->family != DIFF_NOTHING && memory->family != DIFF_GRAPH &&
           memory->family != DIFF_REGISTERED && memory->device == device;
}

static struct total own_books(int device)
{
    struct total total = {0, 0};

    for (int i = 0; i < DIFF_MEMORIES; i++) {
        if (!is_on_books(&world.memories[i], device))
            continue;
        total.bytes += world.memories[i].bytes;
        total.count++;
    }
    for (int i = 0; i < DIFF_HANDLES && device >= 0; i++) {
        const struct diff_handle *handle = &world.handles[i];
        if (handle->references + handle->mappings == 0 || handle->device != device)
            continue;
        total.bytes += handle->bytes;
        total.count++;
    }
    return total;
}

static struct total books_of_shim(int device)
{
    return (struct total){gpuoomshim_live_bytes(device), gpuoomshim_live_count(device)};
}

/* Only the simulated driver has some. */
static bool books_of_driver(int device, struct total *total)
{
    static void (*books)(int, uint64_t *, uint64_t *);
    static bool asked;

    if (!asked) {
        void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
        books = (void (*)(int, uint64_t *, uint64_t *))dlsym(library, "gpusim_books");
        asked = true;
    }
    if (books != NULL)
        books(device, &total->bytes, &total->count);
    return books != NULL;
}

static bool differ(struct total one, struct total other)
{
    return one.bytes != other.bytes || one.count != other.count;
}

static bool agree_on(int device, uint64_t seed, unsigned index, const char *name)
{
    struct total own = own_books(device), driver = own, shim = own;
    bool has_shim = gpuoomshim_live_bytes != NULL;

    books_of_driver(device, &driver);
    if (has_shim)
        shim = books_of_shim(device);
    if (!differ(shim, driver) && !differ(own, driver))
        return true;
    fprintf(stderr,
            "books differ: seed %llu step %u %s device %d: driver %llu/%llu host %llu/%llu "
            "shim %llu/%llu\n",
            (unsigned long long)seed, index, name, device, (unsigned long long)driver.bytes,
            (unsigned long long)driver.count, (unsigned long long)own.bytes,
            (unsigned long long)own.count, (unsigned long long)shim.bytes,
            (unsigned long long)shim.count);
    return false;
}

bool diff_books_agree(uint64_t seed, unsigned index, const char *name)
{
    bool good = true;

    for (int device = -1; device < world.device_count; device++)
        good &= agree_on(device, seed, index, name);
    return good;
}
