#include "processes.h"

#include <errno.h>
#include <string.h>

#include "../base/os.h"
#include "../base/text.h"
#include "../cuda/nvml.h"
#include "not_seen.h"
#include "procfs.h"

/* Name, State, PPid and Uid are within the first few hundred bytes of the file. */
#define STATUS_BYTES 1024
/* Longest line of ancestors that is followed. */
#define ANCESTORS_MAX 64
/* As the kernel cuts "nvidia-cuda-mps-server" and "nvidia-cuda-mps-control". */
#define MPS_NAME "nvidia-cuda-mps"

static bool read_status(uint32_t pid, char status[STATUS_BYTES])
{
    char path[32];
    struct gos_text text = gos_text_on(path, sizeof(path));

    gos_text_format(&text, "/proc/%u/status", pid);
    return gos_os_read_file(path, status, STATUS_BYTES) > 0;
}

static uint32_t parent_in(const char *status)
{
    uint64_t parent = 0;

    gos_procfs_number(gos_procfs_field(status, "PPid:"), &parent);
    return (uint32_t)parent;
}

/*
 * A child whose own parent has ended belongs to init or a subreaper and can no
 * longer be told from a stranger: it counts as OTHER.
 */
static bool descends_from(const char *first_status, uint32_t self)
{
    char status[STATUS_BYTES];
    uint32_t pid = parent_in(first_status);

    for (int step = 0; step < ANCESTORS_MAX && pid > 1; step++) {
        if (pid == self)
            return true;
        if (!read_status(pid, status))
            return false;
        pid = parent_in(status);
    }
    return pid == self && pid != 0;
}

static void copy_name(struct gos_process_evidence *process, const char *status)
{
    const char *name = gos_procfs_field(status, "Name:");
    struct gos_text text = gos_text_on(process->name, sizeof(process->name));

    if (name != NULL)
        gos_text_put_n(&text, name, gos_procfs_line_length(name));
}

void gos_processes_explain(struct gos_process_evidence *process, uint32_t self)
{
    char status[STATUS_BYTES];
    const char *state;
    uint64_t uid = 0;

    process->relation = process->pid == self ? GOS_PROCESS_SELF : GOS_PROCESS_UNSEEN;
    if (!read_status(process->pid, status))
        return;
    copy_name(process, status);
    state = gos_procfs_field(status, "State:");
    process->zombie = state != NULL && (*state == 'Z' || *state == 'X');
    gos_procfs_number(gos_procfs_field(status, "Uid:"), &uid);
    process->uid = (uint32_t)uid;
    process->mps_server = strcmp(process->name, MPS_NAME) == 0;
    if (process->relation != GOS_PROCESS_SELF)
        process->relation = descends_from(status, self) ? GOS_PROCESS_CHILD : GOS_PROCESS_OTHER;
}

/* A process on eight devices is looked up once. */
static const struct gos_process_evidence *find_explained(const struct gos_evidence *evidence,
                                                         uint32_t pid)
{
    for (size_t i = 0; i < evidence->process_count; i++)
        if (evidence->processes[i].pid == pid)
            return &evidence->processes[i];
    return NULL;
}

static void add_process(struct gos_evidence *evidence, struct gos_device_evidence *device,
                        const struct gos_nvml_process *listed)
{
    const struct gos_process_evidence *seen = find_explained(evidence, listed->pid);
    struct gos_process_evidence process = {.pid = listed->pid};

    if (seen != NULL)
        process = *seen;
    else
        gos_processes_explain(&process, (uint32_t)evidence->pid);
    process.device = device->ordinal;
    process.used_bytes = listed->used_bytes;
    if (process.relation == GOS_PROCESS_SELF && listed->used_bytes != UINT64_MAX) {
        device->own_bytes_known = true;
        device->own_bytes = listed->used_bytes;
    }
    evidence->processes[evidence->process_count++] = process;
}

static void add_device(struct gos_evidence *evidence, struct gos_device_evidence *device,
                       void *nvml, struct gos_nvml_process *listed)
{
    size_t count = GOS_NVML_PROCESS_MAX;

    if (nvml == NULL) {
        /* Why not is already said: the device itself could not be found. */
        device->processes_status = device->nvml_status != 0 ? device->nvml_status : -ENOENT;
        return;
    }
    device->processes_status = gos_nvml_processes(nvml, listed, &count);
    if (device->processes_status != 0) {
        gos_not_seen_list(evidence, device);
        return;
    }
    count = count < GOS_NVML_PROCESS_MAX ? count : GOS_NVML_PROCESS_MAX;
    for (size_t i = 0; i < count; i++)
        add_process(evidence, device, &listed[i]);
    if (count >= GOS_NVML_PROCESS_MAX)
        gos_evidence_incomplete_format(evidence, "GPU %d: processes beyond the first %d",
                                       device->ordinal, GOS_NVML_PROCESS_MAX);
    gos_not_seen_processes(evidence, device);
}

static size_t count_present(const struct gos_evidence *evidence)
{
    size_t present = 0;

    for (uint32_t ordinal = 0; ordinal < evidence->device_count; ordinal++)
        present += evidence->devices[ordinal].present;
    return present;
}

void gos_processes_observe(struct gos_evidence *evidence, const struct gos_device_ids *ids)
{
    size_t room = count_present(evidence) * GOS_NVML_PROCESS_MAX;
    struct gos_nvml_process *listed;

    if (room == 0)
        return;
    listed = gos_scratch_alloc(&evidence->scratch, GOS_NVML_PROCESS_MAX * sizeof(*listed));
    evidence->processes =
        gos_scratch_alloc(&evidence->scratch, room * sizeof(*evidence->processes));
    if (listed == NULL || evidence->processes == NULL) {
        gos_evidence_incomplete(evidence, "processes (no memory for the list)");
        for (uint32_t ordinal = 0; ordinal < evidence->device_count; ordinal++)
            evidence->devices[ordinal].processes_status = -ENOMEM;
        return;
    }
    for (uint32_t ordinal = 0; ordinal < evidence->device_count; ordinal++)
        if (evidence->devices[ordinal].present)
            add_device(evidence, &evidence->devices[ordinal], ids->nvml[ordinal], listed);
}
