#include "nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "../base/memory.h"
#include "../base/text.h"
#include "loader.h"
#include "nvml_memory.h"

/* NVML's own results and structures, as its reference manual gives them. */
enum {
    NVML_SUCCESS = 0,
    NVML_UNINITIALIZED = 1,
    NVML_NOT_SUPPORTED = 3,
    NVML_NO_PERMISSION = 4,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_DRIVER_NOT_LOADED = 9,
    NVML_LIBRARY_NOT_FOUND = 12,
    NVML_FUNCTION_NOT_FOUND = 13,
};

struct nvml_bar1 {
    unsigned long long total, free, used;
};

struct nvml_process {
    unsigned pid;
    unsigned long long used; /* all ones: not available */
    unsigned gpu_instance, compute_instance;
};

typedef int list_fn(void *device, unsigned *count, struct nvml_process *processes);

/* FUNCTION(field, type of the parameters, symbol, an older symbol of the same ABI or NULL) */
#define FUNCTIONS(FUNCTION)                                                                        \
    FUNCTION(init, (void), "nvmlInit_v2", NULL)                                                    \
    FUNCTION(handle, (const char *, void **), "nvmlDeviceGetHandleByUUID", NULL)                   \
    FUNCTION(memory_v2, (void *, struct gos_nvml_memory_v2 *), "nvmlDeviceGetMemoryInfo_v2", NULL) \
    FUNCTION(memory_v1, (void *, struct gos_nvml_memory_v1 *), "nvmlDeviceGetMemoryInfo", NULL)    \
    FUNCTION(compute, (void *, unsigned *, struct nvml_process *),                                 \
             "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2") \
    FUNCTION(graphics, (void *, unsigned *, struct nvml_process *),                                \
             "nvmlDeviceGetGraphicsRunningProcesses_v3",                                           \
             "nvmlDeviceGetGraphicsRunningProcesses_v2")                                           \
    FUNCTION(mps, (void *, unsigned *, struct nvml_process *),                                     \
             "nvmlDeviceGetMPSComputeRunningProcesses_v3",                                         \
             "nvmlDeviceGetMPSComputeRunningProcesses_v2")                                         \
    FUNCTION(is_mig, (void *, unsigned *), "nvmlDeviceIsMigDeviceHandle", NULL)                    \
    FUNCTION(bar1, (void *, struct nvml_bar1 *), "nvmlDeviceGetBAR1MemoryInfo", NULL)              \
    FUNCTION(driver_version, (char *, unsigned), "nvmlSystemGetDriverVersion", NULL)

static struct {
#define FIELD(field, parameters, symbol, older) int(*field) parameters;
    FUNCTIONS(FIELD)
#undef FIELD
} nvml;

/* The table above is written by the one thread that moved CLOSED to OPENING. */
enum { CLOSED, OPENING, OPEN, ABSENT };
static _Atomic int state;

static int error_of(int result)
{
    switch (result) {
    case NVML_SUCCESS:
        return 0;
    case NVML_UNINITIALIZED:
    case NVML_DRIVER_NOT_LOADED:
    case NVML_LIBRARY_NOT_FOUND:
    case NVML_FUNCTION_NOT_FOUND:
        return -ENOENT;
    case NVML_NOT_SUPPORTED:
        return -ENOTSUP;
    case NVML_NO_PERMISSION:
        return -EACCES;
    default:
        return -EIO;
    }
}

static void *find(void *library, const char *symbol, const char *older)
{
    void *found = gos_loader.symbol(library, symbol);

    return found || !older ? found : gos_loader.symbol(library, older);
}

/* Never closed: a library that may have started threads cannot be unloaded safely. */
static int load(void)
{
    void *library = gos_loader.open("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);

    if (!library)
        return -ENOENT;
#define LOAD(field, parameters, symbol, older)                                                     \
    nvml.field = (int(*) parameters)(uintptr_t)find(library, symbol, older);
    FUNCTIONS(LOAD)
#undef LOAD
    return nvml.init ? error_of(nvml.init()) : -ENOENT;
}

static bool is_open(void)
{
    return atomic_load_explicit(&state, memory_order_acquire) == OPEN;
}

int gos_nvml_open(void)
{
    int was = CLOSED, error;

    /* Absent stays absent, so that only the first call looks for the file. */
    if (!atomic_compare_exchange_strong(&state, &was, OPENING))
        return was == OPEN ? 0 : -ENOENT;
    error = load();
    atomic_store_explicit(&state, error ? ABSENT : OPEN, memory_order_release);
    return error;
}

static void put_uuid(struct gos_text *text, const char *kind, const uint8_t uuid[16])
{
    gos_text_put(text, kind);
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            gos_text_char(text, '-');
        gos_text_format(text, "%02x", (unsigned)uuid[i]);
    }
}

static int find_device(const char *kind, const uint8_t uuid[16], void **handle)
{
    char buffer[64];
    struct gos_text name = gos_text_on(buffer, sizeof(buffer));

    put_uuid(&name, kind, uuid);
    return error_of(nvml.handle(buffer, handle));
}

int gos_nvml_device(const uint8_t uuid[16], void **handle)
{
    int error;

    if (!is_open() || !nvml.handle)
        return -ENOENT;
    error = find_device("GPU-", uuid, handle);
    /* Inside a MIG instance the driver gives the instance's number, by the same look. */
    return error && find_device("MIG-", uuid, handle) == 0 ? 0 : error;
}

static int read_memory_v2(void *handle, struct gos_nvml_memory *memory)
{
    struct gos_nvml_memory_v2 answer = {.version = GOS_NVML_MEMORY_V2};
    int error = nvml.memory_v2 ? error_of(nvml.memory_v2(handle, &answer)) : -ENOENT;

    if (error == 0)
        *memory = (struct gos_nvml_memory){.total_bytes = answer.total,
                                           .reserved_bytes = answer.reserved,
                                           .free_bytes = answer.free,
                                           .used_bytes = answer.used};
    return error;
}

/* The older call counts what is reserved as used. */
static int read_memory_v1(void *handle, struct gos_nvml_memory *memory)
{
    struct gos_nvml_memory_v1 answer = {0};
    int error = nvml.memory_v1 ? error_of(nvml.memory_v1(handle, &answer)) : -ENOENT;

    if (error == 0)
        *memory = (struct gos_nvml_memory){
            .total_bytes = answer.total, .free_bytes = answer.free, .used_bytes = answer.used};
    return error;
}

int gos_nvml_memory(void *handle, struct gos_nvml_memory *memory)
{
    int error;

    if (!is_open())
        return -ENOENT;
    error = read_memory_v2(handle, memory);
    /* Refusals are the same for both; anything else may be the version's fault. */
    if (error == 0 || error == -EACCES || error == -ENOTSUP)
        return error;
    return read_memory_v1(handle, memory);
}

/* A process may be on several lists; each then names the same memory. */
static void add_process(struct gos_nvml_process *processes, size_t room, size_t *count,
                        const struct nvml_process *one)
{
    size_t i = 0;

    while (i < *count && processes[i].pid != one->pid)
        i++;
    if (i == room)
        return;
    if (i == *count) {
        processes[i] = (struct gos_nvml_process){.pid = one->pid, .used_bytes = one->used};
        (*count)++;
    } else if (processes[i].used_bytes == UINT64_MAX ||
               (one->used != UINT64_MAX && one->used > processes[i].used_bytes)) {
        processes[i].used_bytes = one->used;
    }
}

/* *count: in the room, out what there is, also when that is more. */
static int ask(list_fn *list, void *handle, struct nvml_process *answer, unsigned *count)
{
    int result = list(handle, count, answer);

    return result == NVML_INSUFFICIENT_SIZE ? -ENOSPC : error_of(result);
}

static int add_list_with_room(list_fn *list, void *handle, unsigned *room,
                              struct gos_nvml_process *processes, size_t max, size_t *count)
{
    size_t bytes = *room * sizeof(struct nvml_process);
    struct nvml_process *answer = gos_memory_alloc(bytes);
    int error;

    if (!answer)
        return -EIO;
    error = ask(list, handle, answer, room);
    for (unsigned i = 0; error == 0 && i < *room && (i + 1) * sizeof(*answer) <= bytes; i++)
        add_process(processes, max, count, &answer[i]);
    gos_memory_free(answer, bytes);
    return error;
}

/* A second try when processes came meanwhile or were too many. */
static int add_list(list_fn *list, void *handle, struct gos_nvml_process *processes, size_t max,
                    size_t *count)
{
    unsigned room = GOS_NVML_PROCESS_MAX;
    int error;

    if (!list)
        return -ENOENT;
    error = add_list_with_room(list, handle, &room, processes, max, count);
    if (error == -ENOSPC) {
        room += GOS_NVML_PROCESS_MAX;
        error = add_list_with_room(list, handle, &room, processes, max, count);
    }
    return error == -ENOSPC ? -EIO : error;
}

int gos_nvml_processes(void *handle, struct gos_nvml_process *processes, size_t *count)
{
    size_t max = *count;
    int error;

    *count = 0;
    if (!is_open())
        return -ENOENT;
    error = add_list(nvml.compute, handle, processes, max, count);
    if (error)
        return error;
    /* Devices without displays or MPS refuse these two; that is no error. */
    (void)add_list(nvml.graphics, handle, processes, max, count);
    (void)add_list(nvml.mps, handle, processes, max, count);
    return 0;
}

int gos_nvml_is_mig(void *handle, bool *is_mig)
{
    unsigned answer = 0;
    int error = is_open() && nvml.is_mig ? error_of(nvml.is_mig(handle, &answer)) : -ENOENT;

    *is_mig = error == 0 && answer != 0;
    return error;
}

int gos_nvml_bar1(void *handle, uint64_t *total_bytes, uint64_t *used_bytes)
{
    struct nvml_bar1 answer = {0};
    int error = is_open() && nvml.bar1 ? error_of(nvml.bar1(handle, &answer)) : -ENOENT;

    if (error != 0)
        return error;
    *total_bytes = answer.total;
    *used_bytes = answer.used;
    return 0;
}

int gos_nvml_driver_version(char *buffer, size_t bytes)
{
    if (!is_open() || !nvml.driver_version)
        return -ENOENT;
    return error_of(nvml.driver_version(buffer, (unsigned)bytes));
}

/* The child opens it anew with its own cuInit. */
void gos_nvml_reset_after_fork(void)
{
    atomic_store_explicit(&state, CLOSED, memory_order_release);
}
