/* NVML is opened, asked and closed, and the next one to open it gets it at another place. */
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

struct memory {
    unsigned long long total, free, used;
};

struct memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

static void *library, *device;

static void *find(const char *name)
{
    return dlsym(library, name);
}

static int open_nvml(void)
{
    library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!library)
        return 77;
    int (*start)(void) = (int (*)(void))(uintptr_t)find("nvmlInit_v2");
    int (*get)(unsigned, void **) =
        (int (*)(unsigned, void **))(uintptr_t)find("nvmlDeviceGetHandleByIndex_v2");
    return start() || get(0, &device);
}

static void close_nvml(void)
{
    int (*end)(void) = (int (*)(void))(uintptr_t)find("nvmlShutdown");
    void *place = (void *)((struct link_map *)library)->l_addr;

    end();
    dlclose(library);
    mmap(place, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

int main(void)
{
    struct memory memory = {0};
    struct memory_v2 newer = {.version = sizeof(newer) | 2u << 24};
    int result = open_nvml();

    if (result != 0)
        return result;
    int (*ask)(void *, struct memory *) =
        (int (*)(void *, struct memory *))(uintptr_t)find("nvmlDeviceGetMemoryInfo");
    ask(device, &memory);
    close_nvml();
    if (open_nvml() != 0)
        return 1;
    int (*ask_newer)(void *, struct memory_v2 *) =
        (int (*)(void *, struct memory_v2 *))(uintptr_t)find("nvmlDeviceGetMemoryInfo_v2");
    ask_newer(device, &newer);
    printf("outcome: %llu and then %llu\n", memory.total >> 20, newer.total >> 20);
    return 0;
}
