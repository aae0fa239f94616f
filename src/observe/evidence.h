/*
 * One moment's evidence: everything that a diagnosis may know, as plain
 * values.  Filled by observe_*; read by diagnose (pure), recover and report.
 *
 * All strings and arrays live in the evidence's own scratch memory or are
 * permanent; nothing points into the host.
 */
#ifndef GOS_OBSERVE_EVIDENCE_H
#define GOS_OBSERVE_EVIDENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/memory.h"
#include "../track/event.h"
#include "../track/fallback.h"
#include "../track/kind.h"
#include "../track/registry.h"

enum gos_capture_state { GOS_CAPTURE_NONE, GOS_CAPTURE_THIS_STREAM, GOS_CAPTURE_ELSEWHERE };

/* The call that failed. */
struct gos_request {
    const char *api;    /* what the programmer called: "cudaMalloc", "cuMemAlloc_v2" */
    const char *entry;  /* the driver's symbol */
    enum gos_kind kind; /* GOS_KIND_NONE: not an allocation (launch, module load): watched */
    bool bytes_known;
    uint64_t bytes;
    int device; /* ordinal; -1 for host memory or unknown */
    int result; /* CUresult of the first attempt */
    uint64_t stream;
    uint64_t pool; /* of a stream-ordered request, else 0 */
    enum gos_capture_state capture;
    int tid;
    uint32_t site;             /* the stack of the failing call */
    uint32_t requester_module; /* gos_module_at, UINT32_MAX unknown */
    uint64_t wall_ns;
    uint64_t monotonic_ns;
    uint32_t attempts;   /* times the driver was asked so far */
    bool caller_retries; /* the requester is known to retry by itself */
};

/*
 * Several live allocations of one site, kind and device.  Where only some
 * allocations have a stack (GPUOOMSHIM_STACK_SAMPLE), these are the ones that
 * have it, and the estimate says for how much they stand; for site 0 it is 0.
 */
struct gos_site_use {
    uint32_t site;
    enum gos_kind kind;
    uint32_t device; /* ordinal or GOS_DEVICE_HOST */
    uint64_t live_bytes;
    uint64_t live_count;
    uint64_t largest_bytes;
    uint32_t oldest_ms; /* birth of the oldest, since the registry's start */
    uint32_t newest_ms;
    bool is_estimated;
    uint64_t estimated_bytes;
};

/* What the site holds, as well as it is known. */
static inline uint64_t gos_site_use_bytes(const struct gos_site_use *use)
{
    return use->is_estimated ? use->estimated_bytes : use->live_bytes;
}

/* One small live allocation that may share its 2 MiB block. */
struct gos_small {
    uint64_t address;
    uint32_t bytes;
    uint32_t site;
};

struct gos_pool_evidence {
    uint64_t pool;
    uint32_t device;
    bool is_default;
    bool imported;
    bool attributes_known;
    uint64_t reserved_bytes; /* taken from the device */
    uint64_t used_bytes;     /* of that, in use as the driver counts it */
    uint64_t threshold_bytes;
    uint64_t live_bytes; /* on our books */
};

struct gos_stream_evidence {
    uint64_t stream;
    uint64_t context;
    uint32_t device;
    bool per_thread;
    bool of_other_thread; /* another thread's per-thread stream: only that thread can reach it */
    bool running;         /* its work was not complete when asked */
    bool asked;           /* false: it could not be asked (capture, time, of_other_thread) */
    uint64_t freed_bytes; /* freed in its order since it was last known to be drained */
};

struct gos_device_evidence {
    int ordinal;
    char name[96];
    char uuid[48]; /* "GPU-…", "" unknown */
    bool integrated;
    bool present; /* false: a context never existed, nothing was read */

    bool driver_known; /* cuMemGetInfo answered */
    uint64_t driver_total_bytes;
    uint64_t driver_free_bytes;

    int nvml_status; /* 0 or the negative errno of nvml.h */
    uint64_t nvml_total_bytes;
    uint64_t nvml_reserved_bytes;
    uint64_t nvml_free_bytes;
    uint64_t nvml_used_bytes;
    int processes_status; /* 0, or why the list could not be had */
    bool own_bytes_known; /* our pid was in NVML's list, with a number */
    uint64_t own_bytes;   /* this process by NVML */

    struct gos_total live[GOS_KIND_COUNT]; /* on our books */
    uint64_t peak_bytes;
    uint64_t graph_reserved_bytes; /* graph memory, by the driver; 0 if not known */
    uint64_t graph_used_bytes;
    uint64_t unmapped_physical_bytes;
    uint64_t held_bytes; /* by us, for recovery (GPUOOMSHIM_RESERVE) */

    /* Small allocations of the device, ascending by address. */
    struct gos_small *smalls;
    size_t small_count;
    /* Rounding of the larger DEVICE allocations to whole 2 MiB blocks. */
    uint64_t large_rounding_bytes;
};

enum gos_relation { GOS_PROCESS_SELF, GOS_PROCESS_CHILD, GOS_PROCESS_OTHER, GOS_PROCESS_UNSEEN };

struct gos_process_evidence {
    int device;
    uint32_t pid;
    uint64_t used_bytes;        /* UINT64_MAX: not available */
    enum gos_relation relation; /* UNSEEN: a pid that /proc does not know (another namespace) */
    bool zombie;
    uint32_t uid;
    char name[64]; /* comm, "" unknown */
};

/* Live memory of one way and device that stands in for device memory. */
struct gos_fallback_evidence {
    enum gos_fallback way;
    uint32_t device;
    struct gos_total total;
};
#define GOS_FALLBACK_ROWS 24

struct gos_host_evidence {
    uint64_t memory_total_bytes;
    uint64_t memory_available_bytes;
    uint64_t address_limit_bytes; /* RLIMIT_AS, UINT64_MAX unlimited */
    uint64_t address_used_bytes;  /* VmSize */
    uint64_t locked_limit_bytes;  /* RLIMIT_MEMLOCK */
    uint64_t cgroup_limit_bytes;  /* of the tightest group; UINT64_MAX none or unknown */
    uint64_t cgroup_used_bytes;   /* of that group, without file cache that can be dropped */
    uint64_t map_count;
    uint64_t map_count_limit;
    char hostname[64];
};

struct gos_version {
    const char *what;    /* "driver", "libcudart.so.13", "libtorch_cuda.so", "glibc" … */
    const char *version; /* "" unknown */
    const char *path;    /* where it was loaded from, "" none */
};

struct gos_variable {
    const char *name;
    const char *value;    /* "" when it is set no more; a secret's is replaced by a remark */
    const char *at_start; /* its value at first CUDA use, where it differs; else NULL; "" not set */
};

struct gos_evidence {
    struct gos_scratch scratch;
    struct gos_request request; /* .api NULL: a snapshot or exit report, nothing failed */

    int pid;
    int initialised_pid;      /* which process called cuInit; differs after fork; 0 unknown */
    int rank;                 /* of the job, -1 unknown */
    int world;                /* ranks in the job, -1 unknown */
    uint64_t start_wall_ns;   /* when tracking began */
    uint64_t wall_ns;         /* when this was taken */
    uint64_t collected_in_ns; /* how long the taking took */
    char command[256];        /* the command line's first words */
    int driver_version;       /* 13000; 0 unknown */
    int first_sticky_error;   /* CUresult, 0 none */
    uint64_t contexts;        /* contexts seen so far; 0: this is the first use */

    struct gos_device_evidence devices[GOS_DEVICE_MAX];
    uint32_t device_count; /* as the driver counts them; only `present` ones were read */
    struct gos_total host_live[GOS_KIND_COUNT];

    struct gos_site_use *uses; /* descending by gos_site_use_bytes */
    size_t use_count;
    struct gos_pool_evidence *pools;
    size_t pool_count;
    struct gos_stream_evidence *streams; /* only those with freed bytes */
    size_t stream_count;
    struct gos_process_evidence *processes;
    size_t process_count;
    struct gos_fallback_evidence fallbacks[GOS_FALLBACK_ROWS];
    size_t fallback_count;
    struct gos_event *events; /* oldest first */
    size_t event_count;
    uint64_t events_lost;
    struct gos_version *versions;
    size_t version_count;
    struct gos_variable *variables;
    size_t variable_count;
    struct gos_host_evidence host;

    uint64_t allocated_count;
    uint64_t freed_count;
    uint64_t metadata_bytes;
    uint64_t stack_sample_bytes; /* a stack for about one in so many; 0: for each allocation */
    const char *unwinder;
    const char *python; /* version or NULL */

    /* What could not be seen, in words for people. */
    const char *incomplete[32];
    size_t incomplete_count;
};

/* Add a line to incomplete (permanent or scratch text); silently bounded. */
void gos_evidence_incomplete(struct gos_evidence *evidence, const char *line);
/* The same with a text made in the scratch memory; formats as gos_text_format does. */
__attribute__((format(printf, 2, 3))) void
gos_evidence_incomplete_format(struct gos_evidence *evidence, const char *format, ...);

#endif
