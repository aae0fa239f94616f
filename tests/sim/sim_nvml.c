/*
 * NVML over the same table of capacity as the driver.
 *
 * With GPUSIM_STATE that is the shared file.  Without, the driver's table is
 * private, and NVML finds it only if the simulated driver is loaded in the same
 * process; until then it sees an empty device.
 */

#pragma GCC visibility push(default)
#include "sim_nvml.h"
#pragma GCC visibility pop

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim_capacity.h"
#include "sim_device.h"

#define PROCESSES_MAX 256

struct sim_nvml_device {
    int ordinal;
};

static struct sim_nvml_device devices[SIM_DEVICES_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned references;
static bool has_table;

static bool adopt_private_table(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    void *(*capacity)(void) = NULL;
    if (driver == NULL)
        return false;
    *(void **)&capacity = dlsym(driver, "gpusim_capacity");
    void *table = capacity != NULL ? capacity() : NULL;
    if (table != NULL)
        sim_capacity_adopt(table);
    dlclose(driver);
    return table != NULL;
}

/* False: nobody has used the device yet, as far as can be seen. */
static bool find_table(void)
{
    pthread_mutex_lock(&lock);
    if (!has_table)
        has_table = sim_settings.state_path != NULL ? sim_capacity_open() : adopt_private_table();
    bool found = has_table;
    pthread_mutex_unlock(&lock);
    return found;
}

static nvmlReturn_t start(void)
{
    sim_settings_load();
    if (sim_settings.nvml == SIM_NVML_ABSENT)
        return NVML_ERROR_DRIVER_NOT_LOADED;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < SIM_DEVICES_MAX; i++)
        devices[i].ordinal = i;
    references++;
    pthread_mutex_unlock(&lock);
    find_table(); /* now, if there is one: a later question may not wait for the loader */
    return NVML_SUCCESS;
}

static nvmlReturn_t stop(void)
{
    nvmlReturn_t result = NVML_SUCCESS;
    pthread_mutex_lock(&lock);
    if (references != 0)
        references--;
    else
        result = NVML_ERROR_UNINITIALIZED;
    pthread_mutex_unlock(&lock);
    return result;
}

static nvmlReturn_t check_started(void)
{
    pthread_mutex_lock(&lock);
    nvmlReturn_t result = references != 0 ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
    pthread_mutex_unlock(&lock);
    return result;
}

static nvmlReturn_t check(nvmlDevice_t device, const void *out)
{
    nvmlReturn_t result = check_started();
    if (result == NVML_SUCCESS && (device == NULL || out == NULL))
        result = NVML_ERROR_INVALID_ARGUMENT;
    return result;
}

static nvmlReturn_t write_text(char *out, unsigned room, const char *text)
{
    if (check_started() != NVML_SUCCESS)
        return NVML_ERROR_UNINITIALIZED;
    if (out == NULL || strlen(text) >= room)
        return out == NULL ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(out, text);
    return NVML_SUCCESS;
}

static void format_uuid(int ordinal, char *text, size_t room)
{
    unsigned char uuid[SIM_UUID_BYTES];
    sim_device_uuid(ordinal, uuid);
    int used = snprintf(text, room, "%s-", sim_settings.nvml == SIM_NVML_MIG ? "MIG" : "GPU");
    for (int i = 0; i < SIM_UUID_BYTES; i++) {
        bool dash = i == 4 || i == 6 || i == 8 || i == 10;
        used += snprintf(text + used, room - (size_t)used, "%s%02x", dash ? "-" : "", uuid[i]);
    }
}

static void format_bus_id(int ordinal, char *text, size_t room)
{
    sim_device_bus_id(ordinal, text, room);
}

/* The device whose text equals the given one. */
static nvmlReturn_t find_device(const char *wanted, void (*format)(int, char *, size_t),
                                nvmlDevice_t *device)
{
    char text[64];
    nvmlReturn_t result = check_started();
    if (result != NVML_SUCCESS || wanted == NULL || device == NULL)
        return result != NVML_SUCCESS ? result : NVML_ERROR_INVALID_ARGUMENT;
    for (int i = 0; i < sim_settings.device_count; i++) {
        format(i, text, sizeof(text));
        if (strcasecmp(text, wanted) == 0) {
            *device = &devices[i];
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

static uint64_t free_bytes(nvmlDevice_t device)
{
    return find_table() ? sim_capacity_free_bytes(device->ordinal) : sim_settings.memory_bytes;
}

static bool is_visible(const struct sim_row *row)
{
    return sim_settings.nvml == SIM_NVML_FULL || sim_settings.nvml == SIM_NVML_NUMBERLESS ||
           (sim_settings.nvml == SIM_NVML_OWN && row->pid == (int32_t)getpid());
}

/* Under an old MPS the server has all memory of its clients, and they are not listed. */
static unsigned charge_server(nvmlDevice_t device, struct sim_row *rows, unsigned count)
{
    for (unsigned i = 1; i < count; i++)
        rows[0].used_bytes[device->ordinal] += rows[i].used_bytes[device->ordinal];
    if (count == 0)
        return 0;
    rows[0].pid = sim_settings.mps_server_pid;
    return 1;
}

static unsigned long long number_of(const struct sim_row *row, nvmlDevice_t device)
{
    return sim_settings.nvml == SIM_NVML_NUMBERLESS ? UINT64_MAX : row->used_bytes[device->ordinal];
}

/* Rows that NVML is allowed to show, packed to the front. */
static unsigned visible_rows(nvmlDevice_t device, struct sim_row *rows)
{
    unsigned count = find_table() ? sim_capacity_rows(device->ordinal, rows, PROCESSES_MAX) : 0;
    unsigned kept = 0;
    for (unsigned i = 0; i < count; i++)
        if (is_visible(&rows[i]))
            rows[kept++] = rows[i];
    return sim_settings.mps_server_pid != 0 ? charge_server(device, rows, kept) : kept;
}

static bool is_forbidden(void)
{
    return sim_settings.nvml == SIM_NVML_FORBIDDEN || sim_settings.nvml == SIM_NVML_MIG;
}

/* NVML's protocol: *count is the room on entry; too little of it tells what is needed. */
static nvmlReturn_t list(nvmlDevice_t device, unsigned *count, struct sim_row *rows)
{
    nvmlReturn_t result = check(device, count);
    if (result != NVML_SUCCESS)
        return result;
    if (is_forbidden())
        return NVML_ERROR_NO_PERMISSION;
    unsigned room = *count;
    *count = visible_rows(device, rows);
    return room >= *count ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

static nvmlReturn_t list_compute(nvmlDevice_t device, unsigned *count,
                                 struct nvml_process *processes)
{
    struct sim_row rows[PROCESSES_MAX];
    nvmlReturn_t result = list(device, count, rows);
    for (unsigned i = 0; result == NVML_SUCCESS && i < *count; i++)
        processes[i] = (struct nvml_process){(unsigned)rows[i].pid, number_of(&rows[i], device),
                                             UINT32_MAX, UINT32_MAX};
    return result;
}

static nvmlReturn_t list_none(nvmlDevice_t device, unsigned *count)
{
    nvmlReturn_t result = check(device, count);
    if (result == NVML_SUCCESS && is_forbidden())
        result = NVML_ERROR_NO_PERMISSION;
    if (result == NVML_SUCCESS)
        *count = 0;
    return result;
}

nvmlReturn_t nvmlInit(void)
{
    return start();
}

nvmlReturn_t nvmlInit_v2(void)
{
    return start();
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    (void)flags;
    return start();
}

nvmlReturn_t nvmlShutdown(void)
{
    return stop();
}

const char *nvmlErrorString(nvmlReturn_t result)
{
    return result == NVML_SUCCESS ? "Success" : "simulated NVML error";
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int room)
{
    return write_text(version, room, SIM_DRIVER_TEXT);
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int room)
{
    return write_text(version, room, "13." SIM_DRIVER_TEXT);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    *version = sim_settings.driver_version;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    return nvmlSystemGetCudaDriverVersion(version);
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int room)
{
    char path[32];
    char target[512];
    snprintf(path, sizeof(path), "/proc/%u/exe", pid);
    ssize_t length = readlink(path, target, sizeof(target) - 1);
    if (length < 0)
        return NVML_ERROR_NOT_FOUND;
    target[length] = '\0';
    return write_text(name, room, target);
}

nvmlReturn_t nvmlDeviceGetCount(unsigned int *count)
{
    nvmlReturn_t result = check_started();
    if (result == NVML_SUCCESS)
        *count = (unsigned)sim_settings.device_count;
    return result;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    return nvmlDeviceGetCount(count);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
    nvmlReturn_t result = check_started();
    if (result != NVML_SUCCESS)
        return result;
    if (device == NULL || index >= (unsigned)sim_settings.device_count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *device = &devices[index];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByIndex(index, device);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    return find_device(uuid, format_uuid, device);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *bus_id, nvmlDevice_t *device)
{
    return find_device(bus_id, format_bus_id, device);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device)
{
    return find_device(bus_id, format_bus_id, device);
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
    nvmlReturn_t result = check(device, index);
    if (result == NVML_SUCCESS)
        *index = (unsigned)device->ordinal;
    return result;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int room)
{
    nvmlReturn_t result = check(device, name);
    return result == NVML_SUCCESS ? write_text(name, room, SIM_DEVICE_NAME) : result;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int room)
{
    char text[64];
    nvmlReturn_t result = check(device, uuid);
    if (result != NVML_SUCCESS)
        return result;
    format_uuid(device->ordinal, text, sizeof(text));
    return write_text(uuid, room, text);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, struct nvml_pci *pci)
{
    nvmlReturn_t result = check(device, pci);
    if (result != NVML_SUCCESS)
        return result;
    memset(pci, 0, sizeof(*pci));
    pci->bus = (unsigned)device->ordinal + 1;
    format_bus_id(device->ordinal, pci->legacy_bus_id, sizeof(pci->legacy_bus_id));
    snprintf(pci->bus_id, sizeof(pci->bus_id), "0000%s", pci->legacy_bus_id);
    return NVML_SUCCESS;
}

/* The first version has no field for the reserve and counts it as used. */
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, struct nvml_memory *memory)
{
    nvmlReturn_t result = check(device, memory);
    if (result != NVML_SUCCESS)
        return result;
    memory->total = sim_settings.memory_bytes + sim_settings.reserved_bytes;
    memory->free = free_bytes(device);
    memory->used = memory->total - memory->free;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, struct nvml_memory_v2 *memory)
{
    nvmlReturn_t result = check(device, memory);
    if (result != NVML_SUCCESS)
        return result;
    memory->total = sim_settings.memory_bytes + sim_settings.reserved_bytes;
    memory->reserved = sim_settings.reserved_bytes;
    memory->free = free_bytes(device);
    memory->used = sim_settings.memory_bytes - memory->free;
    return NVML_SUCCESS;
}

/* A window as large as the device, of which the driver uses a little. */
nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, struct nvml_bar1 *bar1)
{
    nvmlReturn_t result = check(device, bar1);
    if (result != NVML_SUCCESS)
        return result;
    bar1->total = sim_settings.memory_bytes;
    bar1->used = 2 * SIM_MIB;
    bar1->free = bar1->total - bar1->used;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is_mig)
{
    nvmlReturn_t result = check(device, is_mig);
    if (result == NVML_SUCCESS)
        *is_mig = sim_settings.nvml == SIM_NVML_MIG;
    return result;
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
    nvmlReturn_t result = check(device, current);
    if (result != NVML_SUCCESS)
        return result;
    *current = sim_settings.nvml == SIM_NVML_MIG;
    *pending = *current;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, unsigned int *mode)
{
    nvmlReturn_t result = check(device, mode);
    if (result == NVML_SUCCESS)
        *mode = 0;
    return result;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int *count,
                                                  struct nvml_process_v1 *processes)
{
    struct sim_row rows[PROCESSES_MAX];
    nvmlReturn_t result = list(device, count, rows);
    for (unsigned i = 0; result == NVML_SUCCESS && i < *count; i++)
        processes[i] = (struct nvml_process_v1){(unsigned)rows[i].pid, number_of(&rows[i], device)};
    return result;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *count,
                                                     struct nvml_process *processes)
{
    return list_compute(device, count, processes);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                     struct nvml_process *processes)
{
    return list_compute(device, count, processes);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device, unsigned int *count,
                                                   struct nvml_process_v1 *processes)
{
    (void)processes;
    return list_none(device, count);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device, unsigned int *count,
                                                      struct nvml_process *processes)
{
    (void)processes;
    return list_none(device, count);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                      struct nvml_process *processes)
{
    (void)processes;
    return list_none(device, count);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses(nvmlDevice_t device, unsigned int *count,
                                                     struct nvml_process_v1 *processes)
{
    (void)processes;
    return list_none(device, count);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *count,
                                                        struct nvml_process *processes)
{
    (void)processes;
    return list_none(device, count);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                        struct nvml_process *processes)
{
    (void)processes;
    return list_none(device, count);
}
