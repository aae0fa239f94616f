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
#include "../track/capture.h"
#include "../track/event.h"
#include "../track/fallback.h"
#include "../track/history.h"
#include "../track/kind.h"
#include "../track/registry.h"

enum gos_capture_state { GOS_CAPTURE_NONE, GOS_CAPTURE_THIS_STREAM, GOS_CAPTURE_ELSEWHERE };

/* Why a call failed that the driver was never asked: a rehearsal. */
enum gos_refusal {
    GOS_REFUSAL_NONE,     /* the driver itself refused */
    GOS_REFUSAL_LIMIT,    /* GPUOOMSHIM_LIMIT would have been passed */
    GOS_REFUSAL_INJECTED, /* GPUOOMSHIM_INJECT chose it */
};

/* What a call needed that is no allocation, as far as the call itself tells. */
struct gos_need {
    const char *what; /* permanent: "the heap of kernels"; NULL: only its entry point tells */
    uint64_t bytes;   /* 0: not known */
    uint64_t count;   /* of so many of that size, at most; 0: of one */
};

/* The call that failed. */
struct gos_request {
    const char *api;    /* what the programmer called: "cudaMalloc", "cuMemAlloc_v2" */
    const char *entry;  /* the driver's symbol; NULL: no call of CUDA failed, see is_word */
    enum gos_kind kind; /* GOS_KIND_NONE: not an allocation (launch, module load): watched */
    bool bytes_known;
    uint64_t bytes;
    int device; /* ordinal; -1 for host memory or unknown */
    int result; /* CUresult of the first attempt; 0 where no call of CUDA failed */
    uint64_t stream;
    uint64_t pool; /* of a stream-ordered request, else 0 */
    enum gos_capture_state capture;
    int tid;
    uint32_t site;             /* the stack of the failing call */
    uint32_t requester_module; /* gos_module_at, UINT32_MAX unknown */
    uint64_t wall_ns;
    uint64_t monotonic_ns;
    uint32_t attempts; /* times the driver was asked so far */
    enum gos_refusal refusal;
    bool caller_retries; /* the requester is known to retry by itself */
    /*
     * A framework's own word that it has given up ("torch", "jax"; api is that
     * name): bytes is what the program asked the framework for, driver_bytes
     * what the framework last asked the driver for (a segment, a handle), 0
     * where no call of CUDA failed.
     */
    bool is_word;
    uint64_t driver_bytes;
    uint64_t word_used_bytes;     /* in use of what the framework has, as it says itself */
    uint64_t word_reserved_bytes; /* what it has */
    uint32_t trials;              /* refusals of the same story before this one */
    uint64_t origin;      /* who asked, and from which line of the host's: a number; 0 unknown */
    struct gos_need need; /* kind NONE */
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

/* Live bytes over the run, on one device: of one site, or, as site 0, of all together. */
struct gos_growth_series {
    uint32_t site;
    uint32_t device;
    uint32_t oldest_ms;   /* birth of the oldest that lives now */
    uint64_t *live_bytes; /* one for each moment; estimates where the site's uses are */
};

/* The last moment is that of the evidence. */
struct gos_growth {
    struct gos_moment *moments; /* oldest first, growth.moment_count of them */
    size_t moment_count;
    struct gos_growth_series *series; /* of each device, then of sites by live bytes */
    size_t series_count;
};

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
    bool used_sticks;        /* that count is known to say too much (track/pool.h) */
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
    char uuid[48];          /* "GPU-…", "" unknown */
    bool integrated;        /* its memory is the host's */
    bool mps;               /* contexts on it are shared through an MPS server */
    bool mig;               /* an instance of a partitioned card, by NVML */
    uint32_t context_count; /* of this process, as far as they are known */
    bool unused;            /* no context or memory of this process is there */
    bool present;           /* false: unused, and nobody asked for it: nothing was read */

    bool driver_known; /* cuMemGetInfo answered */
    uint64_t driver_total_bytes;
    uint64_t driver_free_bytes; /* without what the limit withholds */

    bool torch_used_known; /* torch tells of each block that it hands out; so many are in use: */
    uint64_t torch_used_bytes;

    uint64_t limit_bytes;    /* GPUOOMSHIM_LIMIT for this device; 0: none */
    uint64_t withheld_bytes; /* of what is really free, by the limit */

    int nvml_status; /* 0 or the negative errno of nvml.h */
    uint64_t nvml_total_bytes;
    uint64_t nvml_reserved_bytes;
    uint64_t nvml_free_bytes;
    uint64_t nvml_used_bytes;
    int processes_status; /* 0, or why the list could not be had */
    bool own_bytes_known; /* our pid was in NVML's list, with a number, or has nothing here */
    uint64_t own_bytes;   /* this process by NVML */
    bool bar1_known;      /* the window through which others reach the device's memory */
    uint64_t bar1_total_bytes;
    uint64_t bar1_used_bytes;

    struct gos_total live[GOS_KIND_COUNT]; /* on our books */
    uint64_t peak_bytes;
    uint64_t graph_reserved_bytes; /* graph memory, by the driver; 0 if not known */
    uint64_t graph_used_bytes;
    uint64_t unmapped_physical_bytes;
    uint64_t held_bytes; /* by us, for recovery (GPUOOMSHIM_RESERVE) */

    /* Small allocations of the device, ascending by address. */
    struct gos_small *smalls;
    size_t small_count;
    uint64_t small_lost; /* others, for which there was no room: the block map lacks them */
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
    bool mps_server; /* what it holds may belong to its clients */
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
    uint64_t locked_used_bytes;   /* VmLck */
    uint64_t pinned_used_bytes;   /* VmPin: by drivers, beside what is locked */
    uint64_t commit_limit_bytes;  /* of the whole system; binds in overcommit mode 2 only */
    uint64_t committed_bytes;     /* of that, promised already */
    int overcommit_mode;          /* vm.overcommit_memory: 0, 1, 2; -1 unknown */
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

enum gos_setting_state { GOS_SETTING_UNKNOWN, GOS_SETTING_OFF, GOS_SETTING_ON };

/*
 * What a framework says about its cache on one device: torch by
 * torch.cuda.memory_stats and its snapshot, CuPy by its default pool, JAX by
 * device.memory_stats.  All of one moment, with the GIL held.
 */
struct gos_framework_evidence {
    const char *name; /* everyday name, permanent: "torch", "cupy", "jax" */
    uint32_t device;
    uint64_t reserved_bytes;       /* taken from the driver */
    uint64_t used_bytes;           /* of that, in use by the program */
    uint64_t active_bytes;         /* torch: used, or freed and waiting for a stream */
    uint64_t inactive_split_bytes; /* torch: unused parts of segments that are used in part */
    uint64_t free_block_count;     /* unused blocks, whole segments among them; 0: not known */
    bool in_driver_pools; /* its cache is a memory pool of the driver's, whose idle is known */

    /* torch's segments, block by block; not known when there are too many to walk. */
    bool map_known;
    uint64_t segment_count;
    uint64_t pinned_segment_count; /* with something used and something unused in them */
    uint64_t piece_count;          /* unused blocks in those */
    uint64_t piece_bytes;
    uint64_t fitting_bytes; /* unused blocks that are large enough for the request */
    /* Of all unused blocks; JAX knows this one too.  0: not known. */
    uint64_t largest_free_bytes;

    /* What it would give back if it were asked to; else not known. */
    bool releasable_known;
    uint64_t releasable_bytes;

    enum gos_setting_state expandable; /* torch: expandable segments */
    enum gos_setting_state max_split;  /* torch: a largest size of blocks to split */
    enum gos_setting_state collects;   /* torch: garbage_collection_threshold */
    enum gos_setting_state limited; /* torch: a memory fraction below 1; CuPy: its pool's limit */
    const char *backend;            /* torch: "native", "cudaMallocAsync"; "" unknown */
    const char *settings;           /* torch: the allocator's configuration, "" none */
    uint64_t pinned_free_count;     /* CuPy: unused blocks of pinned host memory */

    uint64_t limit_bytes; /* of what it may take at all (CuPy's pool, JAX's arena); 0 none known */

    uint64_t after_ns; /* since the request failed */
    /*
     * Asked only when the failing call had returned, because it was inside
     * this framework's allocator: what was used then may be unused by now.
     */
    bool is_late;
};

/*
 * What a framework's own profile says one line of the program holds in its
 * arena (JAX: the line that made arrays which still live).
 */
struct gos_framework_line {
    const char *framework; /* permanent */
    uint32_t device;
    enum gos_framework_part {
        GOS_PART_ARRAYS,   /* of one line of the program */
        GOS_PART_PROGRAMS, /* compiled ones, all together */
        GOS_PART_REST,     /* arrays of other lines, all together */
    } part;
    uint64_t bytes;
    uint64_t count;
    const char *label; /* "train.py:8 step" */
};

struct gos_evidence {
    struct gos_scratch scratch;
    struct gos_request request; /* .api NULL: a snapshot or exit report, nothing failed */

    int pid;
    bool uid_known;
    uint32_t uid;
    int initialised_pid;        /* which process called cuInit; differs after fork; 0 unknown */
    const char *initialised_by; /* file name of the library that called it, NULL unknown */
    int rank;                   /* of the job, -1 unknown */
    int world;                  /* ranks in the job, -1 unknown */
    uint64_t start_wall_ns;     /* when tracking began */
    uint64_t wall_ns;           /* when this was taken */
    /*
     * When a failure that was put off, because its caller asks again, was told
     * after all; 0: at once.  Host, versions and environment are of that time.
     */
    uint64_t told_wall_ns;
    bool is_of_earlier;       /* the memory is that of an earlier refusal: looking cost too much */
    uint64_t collected_in_ns; /* how long the taking took */
    char command[256];        /* the command line's first words */
    struct gos_capture_origin
        captured;           /* of the request's stream, else the newest in the process */
    int driver_version;     /* 13000; 0 unknown */
    int first_sticky_error; /* CUresult, 0 none */
    bool injecting;         /* GPUOOMSHIM_INJECT is set */
    struct gos_rehearsed {
        uint64_t candidate_count; /* calls that passed GPUOOMSHIM_INJECT's filters so far */
        uint64_t injected_count;  /* those of them that were made to fail */
        uint64_t limited_count;   /* calls that GPUOOMSHIM_LIMIT refused so far */
    } rehearsed;
    uint64_t contexts; /* contexts seen so far; 0: this is the first use */

    struct gos_device_evidence devices[GOS_DEVICE_MAX];
    uint32_t device_count; /* as the driver counts them; only `present` ones were read */
    struct gos_total host_live[GOS_KIND_COUNT];

    struct gos_site_use *uses; /* descending by gos_site_use_bytes */
    size_t use_count;
    struct gos_growth growth;
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

    struct gos_framework_evidence *frameworks; /* only those that answered */
    size_t framework_count;
    struct gos_framework_line *framework_lines; /* of each framework, the largest first */
    size_t framework_line_count;
    const char *torch_snapshot; /* path of the pickled snapshot; NULL none */

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

/* By its everyday name; NULL when it said nothing about that device. */
const struct gos_framework_evidence *gos_framework_find(const struct gos_evidence *evidence,
                                                        const char *name, uint32_t device);

/* Add a line to incomplete (permanent or scratch text), once; silently bounded. */
void gos_evidence_incomplete(struct gos_evidence *evidence, const char *line);
/* Take it back: it was seen after all. */
void gos_evidence_complete(struct gos_evidence *evidence, const char *line);
/* The same with a text made in the scratch memory; formats as gos_text_format does. */
__attribute__((format(printf, 2, 3))) void
gos_evidence_incomplete_format(struct gos_evidence *evidence, const char *format, ...);

#endif
