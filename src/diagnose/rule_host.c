/* The host's memory and the limits of its system. */
#include "rule.h"
#include "saturate.h"
#include "wording.h"

/* So little that the driver's own host allocations fail. */
#define HOST_STARVED_BYTES (64ull << 20)
/* Small requests may fit into address space that the driver reserved long ago. */
#define SURELY_MAPPED_BYTES (32ull << 20)
#define MAP_COUNT_MARGIN 64
/* User address space of x86-64 and aarch64 with four-level page tables. */
#define ADDRESS_SPACE_BYTES (1ull << 47)

/* The device cannot be the reason: it has room, or it is not asked. */
static bool device_has_room(const struct gos_situation *s)
{
    return s->on_host || (s->on_device && s->missing_bytes == 0);
}

static uint64_t address_room(const struct gos_host_evidence *host)
{
    return gos_beyond(host->address_limit_bytes, host->address_used_bytes);
}

static bool address_limited(const struct gos_host_evidence *host)
{
    return host->address_limit_bytes != UINT64_MAX && host->address_limit_bytes != 0;
}

static const char *ask_words(const struct gos_situation *s)
{
    return s->asked_bytes ? gos_wording_bytes(s->evidence, s->asked_bytes) : "An unknown amount";
}

static void say_device_room(const struct gos_situation *s, struct gos_verdict *verdict)
{
    if (s->on_device)
        gos_verdict_say(verdict,
                        gos_wording(s->evidence, "The device has %s free, so it is not the reason.",
                                    gos_wording_bytes(s->evidence, s->free_bytes)));
}

/* The driver maps what it gives (not what cuMemCreate makes) into our address space. */
static bool is_mapped(enum gos_kind kind)
{
    return kind == GOS_KIND_DEVICE || kind == GOS_KIND_HOST || kind == GOS_KIND_MANAGED ||
           kind == GOS_KIND_ADDRESS;
}

bool gos_rule_address_limit(const struct gos_situation *s, struct gos_verdict *verdict)
{
    const struct gos_host_evidence *host = &s->evidence->host;
    if (!s->out_of_memory || !address_limited(host) || !device_has_room(s))
        return false;
    uint64_t room = address_room(host);
    uint64_t need = s->asked_bytes ? s->asked_bytes : HOST_STARVED_BYTES;
    if (room >= need)
        return false;
    verdict->code = GOS_VERDICT_HOST_LIMIT;
    bool certain = is_mapped(s->request->kind) && s->asked_bytes >= SURELY_MAPPED_BYTES;
    verdict->confidence = certain ? GOS_CONFIDENCE_PROVEN : GOS_CONFIDENCE_LIKELY;
    verdict->summary = gos_wording(
        s->evidence, "%s of address space needed, but RLIMIT_AS (ulimit -v) leaves %s of its %s.",
        ask_words(s), gos_wording_bytes(s->evidence, room),
        gos_wording_bytes(s->evidence, host->address_limit_bytes));
    say_device_room(s, verdict);
    gos_verdict_advise(verdict, "Raise or remove the limit: ulimit -v unlimited (a batch system "
                                "may set it from the job's memory request).");
    return true;
}

static uint64_t most_host_memory(const struct gos_situation *s)
{
    /* Managed memory may live on either side. */
    uint64_t device = s->request->kind == GOS_KIND_MANAGED && s->device ? s->free_bytes : 0;
    return gos_plus(s->evidence->host.memory_available_bytes, device);
}

static bool host_starved(const struct gos_situation *s)
{
    return s->on_device && s->missing_bytes == 0 &&
           s->evidence->host.memory_available_bytes < HOST_STARVED_BYTES;
}

/* Registered memory exists already, and reserved addresses need none. */
static bool takes_host_memory(enum gos_kind kind)
{
    return kind == GOS_KIND_HOST || kind == GOS_KIND_MANAGED;
}

bool gos_rule_host_memory(const struct gos_situation *s, struct gos_verdict *verdict)
{
    const struct gos_host_evidence *host = &s->evidence->host;
    if (!s->out_of_memory || host->memory_total_bytes == 0)
        return false;
    bool asked_for_it = takes_host_memory(s->request->kind) && s->asked_bytes > most_host_memory(s);
    if (!asked_for_it && !host_starved(s))
        return false;
    verdict->code = GOS_VERDICT_HOST_MEMORY;
    bool beyond_all =
        s->request->kind == GOS_KIND_HOST && s->asked_bytes > host->memory_total_bytes;
    verdict->confidence = beyond_all ? GOS_CONFIDENCE_PROVEN : GOS_CONFIDENCE_LIKELY;
    verdict->short_bytes = asked_for_it ? s->asked_bytes - most_host_memory(s) : 0;
    verdict->summary =
        gos_wording(s->evidence, "%s asked for; the host has %s of memory available (of %s).",
                    ask_words(s), gos_wording_bytes(s->evidence, host->memory_available_bytes),
                    gos_wording_bytes(s->evidence, host->memory_total_bytes));
    say_device_room(s, verdict);
    if (s->request->kind == GOS_KIND_HOST)
        gos_verdict_say(verdict, "Pinned memory must be resident: swap does not count.");
    gos_verdict_advise(verdict, "Use less pinned host memory: fewer loader workers, smaller "
                                "prefetch, smaller offload buffers.");
    gos_verdict_advise(verdict, "Give the job more host memory; the device is not short.");
    return true;
}

bool gos_rule_cgroup(const struct gos_situation *s, struct gos_verdict *verdict)
{
    const struct gos_host_evidence *host = &s->evidence->host;
    bool limited = host->cgroup_limit_bytes != UINT64_MAX && host->cgroup_limit_bytes != 0;
    if (!s->out_of_memory || !limited || !device_has_room(s))
        return false;
    uint64_t room = gos_beyond(host->cgroup_limit_bytes, host->cgroup_used_bytes);
    bool asks_it = s->on_host && s->request->kind == GOS_KIND_HOST;
    if (room >= (asks_it ? s->asked_bytes : HOST_STARVED_BYTES))
        return false;
    verdict->code = GOS_VERDICT_HOST_LIMIT;
    verdict->confidence = GOS_CONFIDENCE_LIKELY;
    verdict->summary =
        gos_wording(s->evidence, "%s asked for; the cgroup's memory limit leaves %s of its %s.",
                    ask_words(s), gos_wording_bytes(s->evidence, room),
                    gos_wording_bytes(s->evidence, host->cgroup_limit_bytes));
    say_device_room(s, verdict);
    gos_verdict_say(verdict, "Part of what the cgroup uses may be file cache, which would give "
                             "way.");
    gos_verdict_advise(verdict, "Raise the container's or job's memory limit (memory.max).");
    return true;
}

/* What a call has to lock: pinned memory is mapped by the driver and not counted here. */
bool gos_rule_locked_limit(const struct gos_situation *s, struct gos_verdict *verdict)
{
    const struct gos_host_evidence *host = &s->evidence->host;
    bool locks = s->request->kind == GOS_KIND_REGISTERED || s->request->kind == GOS_KIND_HOST;
    bool limited = host->locked_limit_bytes != UINT64_MAX && host->locked_limit_bytes != 0;
    uint64_t room = gos_beyond(host->locked_limit_bytes, host->locked_used_bytes);
    if (!s->out_of_memory || !locks || !limited || s->asked_bytes <= room)
        return false;
    verdict->code = GOS_VERDICT_HOST_LIMIT;
    /* NVIDIA's own kernel module pins without asking this limit; RDMA and WSL's do ask. */
    verdict->confidence = GOS_CONFIDENCE_POSSIBLE;
    verdict->summary =
        gos_wording(s->evidence,
                    "%s to be pinned; RLIMIT_MEMLOCK (ulimit -l) leaves %s of its %s, where the "
                    "system counts pinned memory.",
                    ask_words(s), gos_wording_bytes(s->evidence, room),
                    gos_wording_bytes(s->evidence, host->locked_limit_bytes));
    gos_verdict_advise(verdict, "Raise the limit: ulimit -l unlimited (containers: "
                                "--ulimit memlock=-1).");
    return true;
}

/* In mode 2 the kernel refuses what it could not keep, however much is free. */
bool gos_rule_commit_limit(const struct gos_situation *s, struct gos_verdict *verdict)
{
    const struct gos_host_evidence *host = &s->evidence->host;
    uint64_t room = gos_beyond(host->commit_limit_bytes, host->committed_bytes);
    uint64_t need = s->on_host && s->asked_bytes ? s->asked_bytes : HOST_STARVED_BYTES;
    if (!s->out_of_memory || host->overcommit_mode != 2 || host->commit_limit_bytes == 0 ||
        s->request->kind == GOS_KIND_REGISTERED || !device_has_room(s) || room >= need)
        return false;
    verdict->code = GOS_VERDICT_HOST_LIMIT;
    verdict->confidence = GOS_CONFIDENCE_LIKELY;
    verdict->summary = gos_wording(
        s->evidence,
        "%s asked for; vm.overcommit_memory is 2, and of the %s that it lets the system promise "
        "%s are left.",
        ask_words(s), gos_wording_bytes(s->evidence, host->commit_limit_bytes),
        gos_wording_bytes(s->evidence, room));
    say_device_room(s, verdict);
    gos_verdict_advise(verdict, "Raise vm.overcommit_ratio on the host, or set "
                                "vm.overcommit_memory=0.");
    return true;
}

/*
 * An integrated GPU's memory is the host's: what nobody is seen to hold there
 * are the host's own programs and its file cache, not a hidden neighbour.
 */
bool gos_rule_shared_memory(const struct gos_situation *s, struct gos_verdict *verdict)
{
    if (!s->on_device || !s->device->integrated || s->missing_bytes == 0 ||
        s->hidden_bytes < s->missing_bytes || s->hidden_bytes < s->ledger->own_bytes ||
        s->neighbours_bytes >= s->missing_bytes)
        return false;
    verdict->code = GOS_VERDICT_HOST_MEMORY;
    verdict->confidence = GOS_CONFIDENCE_LIKELY;
    verdict->summary =
        gos_wording(s->evidence,
                    "This GPU shares the host's memory, of which the host's own programs and file "
                    "cache take %s.",
                    gos_wording_bytes(s->evidence, s->hidden_bytes));
    gos_verdict_say(verdict, gos_situation_arithmetic(s));
    gos_verdict_say(
        verdict,
        gos_wording(s->evidence,
                    "The host calls %s available (cache that gives way "
                    "is counted in).",
                    gos_wording_bytes(s->evidence, s->evidence->host.memory_available_bytes)));
    gos_verdict_advise(verdict, "End what else runs on the host, or let it drop its file cache "
                                "(sync; sysctl -w vm.drop_caches=1).");
    return true;
}

bool gos_rule_map_count(const struct gos_situation *s, struct gos_verdict *verdict)
{
    const struct gos_host_evidence *host = &s->evidence->host;
    if (!s->out_of_memory || host->map_count_limit == 0 || !device_has_room(s))
        return false;
    if (host->map_count + MAP_COUNT_MARGIN < host->map_count_limit)
        return false;
    verdict->code = GOS_VERDICT_HOST_LIMIT;
    verdict->confidence = GOS_CONFIDENCE_LIKELY;
    verdict->summary = gos_wording(
        s->evidence, "The process has %llu memory mappings; vm.max_map_count allows %llu.",
        (unsigned long long)host->map_count, (unsigned long long)host->map_count_limit);
    say_device_room(s, verdict);
    gos_verdict_advise(verdict, "Raise it on the host: sysctl -w vm.max_map_count=1048576.");
    return true;
}

bool gos_rule_address_space(const struct gos_situation *s, struct gos_verdict *verdict)
{
    if (!s->out_of_memory || s->request->kind != GOS_KIND_ADDRESS)
        return false;
    uint64_t reserved = s->evidence->host_live[GOS_KIND_ADDRESS].live_bytes;
    uint64_t sum = gos_plus(reserved, s->asked_bytes);
    verdict->code = GOS_VERDICT_HOST_LIMIT;
    verdict->confidence =
        sum > ADDRESS_SPACE_BYTES ? GOS_CONFIDENCE_PROVEN : GOS_CONFIDENCE_POSSIBLE;
    verdict->summary =
        gos_wording(s->evidence,
                    "%s of address space asked for while %s are reserved already; a process has "
                    "%s.",
                    ask_words(s), gos_wording_bytes(s->evidence, reserved),
                    gos_wording_bytes(s->evidence, ADDRESS_SPACE_BYTES));
    gos_verdict_say(verdict, "Reserving addresses takes no device memory.");
    gos_verdict_advise(verdict, "Give back reservations that are not used (cuMemAddressFree), or "
                                "reserve less at once.");
    return true;
}
