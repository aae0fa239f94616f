#include "nvml_hook.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../base/module.h"
#include "../base/options.h"
#include "../cuda/driver.h"
#include "../cuda/nvml_memory.h"
#include "../cuda/visible_devices.h"
#include "../observe/environment.h"
#include "../track/allowance_measure.h"
#include "call.h"

#define NAME_V1 "nvmlDeviceGetMemoryInfo"
#define NAME_V2 "nvmlDeviceGetMemoryInfo_v2"

typedef int memory_v1(void *device, struct gos_nvml_memory_v1 *memory);
typedef int memory_v2(void *device, struct gos_nvml_memory_v2 *memory);

static _Atomic(memory_v1 *) real_v1;
static _Atomic(memory_v2 *) real_v2;
static _Atomic(const void *) newest; /* of the two; the other may be of an NVML that was closed */

/* --- which device ----------------------------------------------------------------------------- */

/* The limit that holds for whichever device is meant; 0 where devices differ. */
static uint64_t common_limit(void)
{
    const uint64_t *bytes = gos_options.limit.bytes;

    for (int i = 1; i < GOS_LIMIT_DEVICES; i++) {
        if (bytes[i] != bytes[0])
            return 0;
    }
    return bytes[0];
}

/* A function of the NVML that the host uses. */
static uintptr_t nvmls(const char *name)
{
    const struct gos_module *module = gos_module_of((uintptr_t)atomic_load(&newest));

    return module ? gos_module_symbol(module, name) : 0;
}

#define UUID_BYTES 96
#define VISIBLE_BYTES 1024

/* Before cuInit, when the driver cannot be asked. */
static bool foretell_ordinal(void *nvml, uint32_t *ordinal)
{
    int (*get_index)(void *, unsigned *) = (int (*)(void *, unsigned *))nvmls("nvmlDeviceGetIndex");
    int (*get_uuid)(void *, char *, unsigned) =
        (int (*)(void *, char *, unsigned))nvmls("nvmlDeviceGetUUID");
    char uuid[UUID_BYTES] = "";
    char visible[VISIBLE_BYTES];
    bool is_set = gos_environment_now("CUDA_VISIBLE_DEVICES", visible, sizeof(visible));
    unsigned index;

    if (!get_index || get_index(nvml, &index) != 0)
        return false;
    if (get_uuid && get_uuid(nvml, uuid, sizeof(uuid)) != 0)
        uuid[0] = '\0';
    return gos_visible_ordinal(is_set ? visible : NULL, index, uuid, ordinal);
}

static uint64_t foretell_limit(void *nvml)
{
    uint32_t ordinal;

    if (!foretell_ordinal(nvml, &ordinal) || ordinal >= GOS_LIMIT_DEVICES)
        return 0;
    return gos_options.limit.bytes[ordinal];
}

struct smaller {
    uint64_t limit_bytes; /* 0: none */
    uint64_t used_bytes;
    uint64_t real_total_bytes; /* by the driver; 0 unknown */
};

static void look_up(void *nvml, struct smaller *smaller)
{
    uint32_t device;
    size_t total = 0;

    if (!gos_allowance_device_of_nvml(nvml, &device))
        return;
    smaller->limit_bytes = gos_allowance_limit(device);
    if (smaller->limit_bytes == 0)
        return;
    gos_allowance_measure(device);
    smaller->used_bytes = gos_allowance_used(device);
    if (gos_driver.cuDeviceTotalMem &&
        gos_driver.cuDeviceTotalMem(&total, (CUdevice)device) == CUDA_SUCCESS)
        smaller->real_total_bytes = total;
}

/* Before cuInit nothing is used. */
static struct smaller smaller_device(void *nvml)
{
    struct smaller smaller = {.limit_bytes = common_limit()};
    int saved = errno;

    if (!gos_shim_active() && smaller.limit_bytes == 0) {
        smaller.limit_bytes = foretell_limit(nvml);
        errno = saved;
    }
    if (!gos_call_tracks())
        return smaller;
    gos_thread.depth++;
    look_up(nvml, &smaller);
    gos_thread.depth--;
    errno = saved;
    return smaller;
}

/* --- the numbers ------------------------------------------------------------------------------ */

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The older call does not tell, and counts it as used. */
static uint64_t ask_reserved(void *device)
{
    struct gos_nvml_memory_v2 memory = {.version = GOS_NVML_MEMORY_V2};
    memory_v2 *ask = (memory_v2 *)nvmls(NAME_V2);

    return ask && ask(device, &memory) == 0 ? memory.reserved : 0;
}

/* NVML counts what driver and firmware keep for themselves as well; so it does here. */
static uint64_t total_as_shown(const struct smaller *smaller, uint64_t total, uint64_t reserved)
{
    uint64_t real = smaller->real_total_bytes;

    if (real != 0 && real < total)
        reserved = total - real;
    return lesser(total, smaller->limit_bytes + reserved);
}

static uint64_t free_as_shown(const struct smaller *smaller, uint64_t available)
{
    uint64_t used = smaller->used_bytes;

    return used < smaller->limit_bytes ? lesser(available, smaller->limit_bytes - used) : 0;
}

static int shrunk_v1(void *device, struct gos_nvml_memory_v1 *memory)
{
    int result = atomic_load(&real_v1)(device, memory);
    struct smaller smaller = {0};

    if (result == 0)
        smaller = smaller_device(device);
    if (smaller.limit_bytes == 0)
        return result;
    uint64_t reserved = smaller.real_total_bytes == 0 ? ask_reserved(device) : 0;
    memory->total = total_as_shown(&smaller, memory->total, reserved);
    memory->free = free_as_shown(&smaller, memory->free);
    memory->used = memory->total - memory->free;
    return result;
}

static int shrunk_v2(void *device, struct gos_nvml_memory_v2 *memory)
{
    int result = atomic_load(&real_v2)(device, memory);
    struct smaller smaller = {0};

    if (result == 0)
        smaller = smaller_device(device);
    if (smaller.limit_bytes == 0)
        return result;
    memory->total = total_as_shown(&smaller, memory->total, memory->reserved);
    memory->free = free_as_shown(&smaller, memory->free);
    memory->used = memory->total - memory->reserved - memory->free;
    return result;
}

/* --- look-up ---------------------------------------------------------------------------------- */

static bool is_limited(void)
{
    for (int i = 0; i < GOS_LIMIT_DEVICES; i++) {
        if (gos_options.limit.bytes[i] != 0)
            return true;
    }
    return false;
}

bool gos_nvml_hook_wants(const char *name)
{
    return strncmp(name, NAME_V1, sizeof(NAME_V1) - 1) == 0 &&
           (strcmp(name, NAME_V1) == 0 || strcmp(name, NAME_V2) == 0) && is_limited();
}

static bool is_nvmls(const void *found)
{
    const struct gos_module *module = gos_module_of((uintptr_t)found);

    return module && strncmp(module->name, "libnvidia-ml.so", 15) == 0;
}

void *gos_nvml_hook_substitute(const char *name, void *found)
{
    if (!found || !is_nvmls(found))
        return found;
    atomic_store(&newest, found);
    if (strcmp(name, NAME_V1) == 0) {
        atomic_store(&real_v1, (memory_v1 *)(uintptr_t)found);
        return (void *)(uintptr_t)shrunk_v1;
    }
    atomic_store(&real_v2, (memory_v2 *)(uintptr_t)found);
    return (void *)(uintptr_t)shrunk_v2;
}
