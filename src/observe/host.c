#include "host.h"

#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>

#include "../base/os.h"
#include "control_group.h"
#include "procfs.h"

#define FILE_BYTES 4096
/* One line of the map list costs the kernel about a microsecond. */
#define MAPS_BUDGET_NS 30000000u

static void read_memory(struct gos_evidence *evidence)
{
    struct gos_host_evidence *host = &evidence->host;
    char text[FILE_BYTES];

    if (gos_os_read_file("/proc/meminfo", text, sizeof(text)) <= 0 ||
        !gos_procfs_bytes(text, "MemTotal:", &host->memory_total_bytes) ||
        !gos_procfs_bytes(text, "MemAvailable:", &host->memory_available_bytes))
        gos_evidence_incomplete(evidence, "the host's memory (/proc/meminfo)");
    else if (gos_procfs_bytes(text, "CommitLimit:", &host->commit_limit_bytes))
        gos_procfs_bytes(text, "Committed_AS:", &host->committed_bytes);
}

static void read_overcommit(struct gos_evidence *evidence)
{
    uint64_t mode;

    evidence->host.overcommit_mode =
        gos_procfs_read_number("/proc/sys/vm/overcommit_memory", &mode) && mode <= 2 ? (int)mode
                                                                                     : -1;
    if (evidence->host.overcommit_mode < 0)
        gos_evidence_incomplete(evidence, "the host's overcommit mode");
}

static void read_uid(struct gos_evidence *evidence, const char *status)
{
    uint64_t uid;

    evidence->uid_known = gos_procfs_number(gos_procfs_field(status, "Uid:"), &uid);
    if (evidence->uid_known)
        evidence->uid = (uint32_t)uid;
}

static void read_self(struct gos_evidence *evidence)
{
    struct gos_host_evidence *host = &evidence->host;
    char text[FILE_BYTES];

    if (gos_os_read_file("/proc/self/status", text, sizeof(text)) <= 0) {
        gos_evidence_incomplete(evidence, "this process's address space (/proc/self/status)");
        return;
    }
    if (!gos_procfs_bytes(text, "VmSize:", &host->address_used_bytes))
        gos_evidence_incomplete(evidence, "this process's address space (/proc/self/status)");
    gos_procfs_bytes(text, "VmLck:", &host->locked_used_bytes);
    gos_procfs_bytes(text, "VmPin:", &host->pinned_used_bytes);
    read_uid(evidence, text);
}

static uint64_t read_limit(struct gos_evidence *evidence, int resource, const char *words)
{
    uint64_t soft = UINT64_MAX, hard;

    if (gos_os.limit(resource, &soft, &hard) == 0)
        return soft;
    gos_evidence_incomplete(evidence, words);
    return UINT64_MAX;
}

static void read_groups(struct gos_evidence *evidence)
{
    if (!gos_control_group_memory(&evidence->host.cgroup_limit_bytes,
                                  &evidence->host.cgroup_used_bytes))
        gos_evidence_incomplete(evidence, "memory limits of control groups");
}

static uint64_t count_lines(const char *text, size_t bytes)
{
    uint64_t lines = 0;

    for (const char *at = text; (at = memchr(at, '\n', bytes - (size_t)(at - text))) != NULL; at++)
        lines++;
    return lines;
}

/* False when reading stopped before the end; *lines is what was counted until then. */
static bool count_maps(int fd, uint64_t *lines)
{
    uint64_t end_ns = gos_os.monotonic_ns() + MAPS_BUDGET_NS;
    char buffer[FILE_BYTES];
    ssize_t got;

    while ((got = gos_os.read(fd, buffer, sizeof(buffer))) > 0) {
        *lines += count_lines(buffer, (size_t)got);
        if (gos_os.monotonic_ns() > end_ns)
            return false;
    }
    return got == 0;
}

static void read_maps(struct gos_evidence *evidence)
{
    int fd = gos_os.open("/proc/self/maps", O_RDONLY, 0);
    bool whole = fd >= 0 && count_maps(fd, &evidence->host.map_count);

    if (fd >= 0)
        gos_os.close(fd);
    if (!whole)
        gos_evidence_incomplete(evidence, "the number of memory maps (at least what is shown)");
    if (!gos_procfs_read_number("/proc/sys/vm/max_map_count", &evidence->host.map_count_limit))
        gos_evidence_incomplete(evidence, "the limit of memory maps");
}

void gos_host_observe(struct gos_evidence *evidence)
{
    struct gos_host_evidence *host = &evidence->host;

    read_memory(evidence);
    read_self(evidence);
    read_overcommit(evidence);
    host->address_limit_bytes = read_limit(evidence, RLIMIT_AS, "RLIMIT_AS");
    host->locked_limit_bytes = read_limit(evidence, RLIMIT_MEMLOCK, "RLIMIT_MEMLOCK");
    read_groups(evidence);
    read_maps(evidence);
}

void gos_host_name(struct gos_host_evidence *host)
{
    if (gos_os.hostname(host->hostname, sizeof(host->hostname)) < 0)
        host->hostname[0] = '\0';
    host->hostname[sizeof(host->hostname) - 1] = '\0';
}
