#include "not_seen.h"

#include <errno.h>

/* Use by no listed process below this is rounding and the driver's own. */
#define UNLISTED_MIN_BYTES ((uint64_t)64 << 20)
/* An NVML that does not tell the reserve counts it as used. */
#define RESERVE_MAX_BYTES ((uint64_t)1 << 30)

static const char *nvml_words(int status)
{
    switch (status) {
    case -ENOENT:
        return "NVML is not there";
    case -EACCES:
        return "NVML refuses: no permission";
    case -ENOTSUP:
        return "NVML does not support it here";
    default:
        return "NVML failed";
    }
}

void gos_not_seen_nvml(struct gos_evidence *evidence, const struct gos_device_evidence *device)
{
    if (device->nvml_status != 0)
        gos_evidence_incomplete_format(evidence, "GPU %d: driver reserve and use by processes (%s)",
                                       device->ordinal, nvml_words(device->nvml_status));
}

void gos_not_seen_list(struct gos_evidence *evidence, const struct gos_device_evidence *device)
{
    if (device->mig)
        gos_evidence_incomplete_format(
            evidence,
            "GPU %d: processes (a MIG instance: NVML lists them for the whole card only, to root)",
            device->ordinal);
    else
        gos_evidence_incomplete_format(evidence, "GPU %d: processes (%s)", device->ordinal,
                                       nvml_words(device->processes_status));
}

/* One device's part of the list. */
struct listing {
    size_t count;
    size_t numbers;                            /* of processes that have one */
    uint64_t bytes;                            /* the sum of these */
    const struct gos_process_evidence *server; /* of MPS, NULL none */
};

static struct listing sum_up(const struct gos_evidence *evidence, int ordinal)
{
    struct listing listing = {0};

    for (size_t i = 0; i < evidence->process_count; i++) {
        const struct gos_process_evidence *process = &evidence->processes[i];

        if (process->device != ordinal)
            continue;
        listing.count++;
        if (process->used_bytes != UINT64_MAX) {
            listing.numbers++;
            listing.bytes += process->used_bytes;
        }
        if (process->mps_server)
            listing.server = process;
    }
    return listing;
}

static bool uses_more(const struct gos_device_evidence *device, uint64_t listed_bytes)
{
    uint64_t slack = device->nvml_reserved_bytes > 0 ? UNLISTED_MIN_BYTES : RESERVE_MAX_BYTES;

    return device->nvml_status == 0 && device->nvml_used_bytes > listed_bytes + slack;
}

/* Where nobody has a number, the rest is not somebody's whom the list leaves out. */
static void say_who_is_missing(struct gos_evidence *evidence,
                               const struct gos_device_evidence *device,
                               const struct listing *listing)
{
    if (listing->count == 0 && !device->own_bytes_known)
        gos_evidence_incomplete_format(
            evidence,
            "GPU %d: any process, this one too (NVML's list is empty, as in a container with pids "
            "of its own)",
            device->ordinal);
    else if (listing->count > 0 && listing->numbers == 0)
        gos_evidence_incomplete_format(
            evidence, "GPU %d: what each process uses (NVML has pids without numbers, as on WSL)",
            device->ordinal);
    else if (uses_more(device, listing->bytes))
        gos_evidence_incomplete_format(
            evidence, "GPU %d: processes that NVML does not list here (other containers or users)",
            device->ordinal);
}

static void say_mps(struct gos_evidence *evidence, const struct gos_device_evidence *device,
                    const struct listing *listing)
{
    if (listing->server != NULL)
        gos_evidence_incomplete_format(
            evidence, "GPU %d: which MPS client holds what the MPS server (pid %u) is charged for",
            device->ordinal, listing->server->pid);
    else if (device->mps)
        gos_evidence_incomplete_format(
            evidence, "GPU %d: the MPS server that this process is a client of, and its limits",
            device->ordinal);
}

void gos_not_seen_processes(struct gos_evidence *evidence, const struct gos_device_evidence *device)
{
    struct listing listing = sum_up(evidence, device->ordinal);

    say_who_is_missing(evidence, device, &listing);
    say_mps(evidence, device, &listing);
    if (!device->own_bytes_known && listing.numbers > 0)
        gos_evidence_incomplete_format(evidence, "GPU %d: this process's own use by NVML",
                                       device->ordinal);
}

static void say_nature(struct gos_evidence *evidence, const struct gos_device_evidence *device)
{
    if (device->integrated)
        gos_evidence_incomplete_format(evidence,
                                       "GPU %d: how much is free (integrated: it shares the host's "
                                       "memory, and file cache that "
                                       "would give way counts as used)",
                                       device->ordinal);
    if (device->mig)
        gos_evidence_incomplete_format(
            evidence, "GPU %d: the rest of the card (only this MIG instance is shown)",
            device->ordinal);
    if (device->context_count > 1)
        gos_evidence_incomplete_format(
            evidence, "GPU %d: which of this process's %u contexts holds what is not tracked",
            device->ordinal, device->context_count);
}

void gos_not_seen_devices(struct gos_evidence *evidence)
{
    uint32_t unused = 0;

    for (uint32_t ordinal = 0; ordinal < evidence->device_count; ordinal++) {
        unused += !evidence->devices[ordinal].present;
        if (evidence->devices[ordinal].present)
            say_nature(evidence, &evidence->devices[ordinal]);
    }
    if (unused > 0 && unused < evidence->device_count)
        gos_evidence_incomplete_format(evidence,
                                       "%u of %u visible GPUs (this process does not use them)",
                                       unused, evidence->device_count);
}
