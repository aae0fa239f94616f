/*
 * From evidence to an answer.  Pure functions: no driver, no clock, no I/O, no
 * memory but the evidence's scratch.  The same evidence gives the same answer.
 */
#ifndef GOS_DIAGNOSE_DIAGNOSIS_H
#define GOS_DIAGNOSE_DIAGNOSIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../observe/evidence.h"
#include "step.h"

/* --- ledger: every byte of a device on one line ------------------------------------------- */

/* LINE(NAME, "code", "words", belongs to this process) in the order shown. */
#define GOS_LEDGER_LINES(LINE)                                                                     \
    LINE(FREE, "free", "free", false)                                                              \
    LINE(RESERVE, "driver_reserve", "driver and firmware", false)                                  \
    LINE(WITHHELD, "withheld", "withheld by GPUOOMSHIM_LIMIT", false)                              \
    LINE(LIVE_DEVICE, "live_device", "live device memory", true)                                   \
    LINE(LIVE_POOL, "live_pool", "live in pools", true)                                            \
    LINE(LIVE_PHYSICAL, "live_physical", "live physical memory (VMM)", true)                       \
    LINE(LIVE_MANAGED, "live_managed", "managed memory resident", true)                            \
    LINE(LIVE_ARRAY, "live_array", "arrays", true)                                                 \
    LINE(LIVE_GRAPH, "live_graph", "graph memory in use", true)                                    \
    LINE(FRAMEWORK_IDLE, "framework_idle", "reserved by frameworks, unused", true)                 \
    LINE(POOL_IDLE, "pool_idle", "idle in pools", true)                                            \
    LINE(POOL_PENDING, "pool_pending", "freed, not yet given back", true)                          \
    LINE(GRAPH_IDLE, "graph_idle", "idle graph memory", true)                                      \
    LINE(HELD, "held_in_reserve", "held in reserve", true)                                         \
    LINE(ROUNDING, "rounding", "rounding to 2 MiB blocks", true)                                   \
    LINE(HALF_EMPTY, "half_empty", "unused parts of shared 2 MiB blocks", true)                    \
    LINE(CONTEXT, "context_modules", "contexts, modules, untracked", true)                         \
    LINE(CHILDREN, "children", "own child processes", false)                                       \
    LINE(OTHERS, "others", "other processes", false)                                               \
    LINE(HIDDEN, "hidden", "not attributable (hidden)", false)                                     \
    LINE(RESIDUAL, "residual", "does not add up", false)

enum gos_ledger_line {
#define GOS_LEDGER_ENUM(name, code, words, own) GOS_LEDGER_##name,
    GOS_LEDGER_LINES(GOS_LEDGER_ENUM)
#undef GOS_LEDGER_ENUM
        GOS_LEDGER_COUNT
};

enum gos_source { GOS_SOURCE_MEASURED, GOS_SOURCE_DERIVED, GOS_SOURCE_UNKNOWN };
const char *gos_source_code(enum gos_source source); /* "measured" … */
const char *gos_ledger_code(enum gos_ledger_line line);
const char *gos_ledger_words(enum gos_ledger_line line);
bool gos_ledger_is_own(enum gos_ledger_line line);

struct gos_ledger {
    bool known; /* false: the device could not be read at all */
    uint64_t total_bytes;
    struct {
        int64_t bytes; /* never negative except on the line RESIDUAL */
        enum gos_source source;
    } lines[GOS_LEDGER_COUNT]; /* sum of all == total_bytes, exactly */
    uint64_t own_bytes;        /* sum of this process' lines */
    /*
     * What we track is more than there is room for (managed memory that is not
     * resident, numbers of different moments): derived lines were cut.
     */
    bool clamped;
    /* Of that, what was counted and not derived: so far two of the numbers contradict each other.
     */
    uint64_t overbooked_bytes;
};

/*
 * --- fragmentation: the share of unused memory that cannot serve the request ---------------
 *
 * Of each layer: unused memory in pieces smaller than the request, over its
 * unused memory.  A piece of the driver's is the unused rest of a shared 2 MiB
 * block; what the driver calls free is paged, so that a request which fits is
 * served whatever lies between: it is no piece.  A pool's pieces are what the
 * driver did not take back, though it takes whole chunks: the unused bytes of
 * pools in which something is still live.
 */

struct gos_fragmentation {
    /* 2 MiB blocks of small device allocations. */
    uint64_t block_count;
    uint64_t block_live_bytes;
    uint64_t block_stuck_bytes;  /* unused, in blocks that something still pins */
    uint64_t block_pinned_count; /* blocks at most half used */
    uint64_t block_lost_count;   /* small allocations that the map lacks: it overstates */
    /* Driver blocks: stuck / (stuck + free), in 1/1000; 0 when nothing is unused. */
    uint32_t block_permille;
    /* Pools: unused bytes of pools with live memory / all unused bytes, in 1/1000. */
    uint32_t pool_permille;
    /*
     * Frameworks that told their segments (torch): what is reserved and unused,
     * and of that stuck, what could not serve the request: for a framework's own
     * request all blocks smaller than it; for others' whatever is not in whole
     * segments, which it could give back.  stuck / unused, in 1/1000.
     */
    uint64_t framework_idle_bytes;
    uint64_t framework_stuck_bytes;
    uint32_t framework_permille;
    /* Sites that keep blocks at most half used, by stuck bytes, descending. */
    struct {
        uint32_t site;
        uint64_t blocks;
        uint64_t stuck_bytes;
    } pins[8];
    size_t pin_count;
};

/* --- verdict -------------------------------------------------------------------------------- */

/* VERDICT(NAME, "code", "in words") */
#define GOS_VERDICTS(VERDICT)                                                                      \
    VERDICT(UNEXPLAINED, "unexplained", "nothing that was visible explains it")                    \
    VERDICT(EXHAUSTED_BY_PROCESS, "exhausted-by-process", "this process uses the memory itself")   \
    VERDICT(LEAK, "leak", "one line of code keeps more and more")                                  \
    VERDICT(EXHAUSTED_BY_OTHERS, "exhausted-by-others", "other processes hold the memory")         \
    VERDICT(CACHE_HELD, "cache-held", "a cache holds enough unused memory")                        \
    VERDICT(PENDING_FREE, "pending-free", "freed memory is not back yet")                          \
    VERDICT(FRAGMENTED, "fragmented", "enough is unused, but in pieces")                           \
    VERDICT(REQUEST_TOO_LARGE, "request-too-large", "no such amount exists")                       \
    VERDICT(POLICY_LIMIT, "policy-limit", "a limit forbids it")                                    \
    VERDICT(HOST_MEMORY, "host-memory", "the host's memory is short")                              \
    VERDICT(HOST_LIMIT, "host-limit", "a limit of the host's system forbids it")                   \
    VERDICT(DRIVER_OR_CONTEXT, "driver-or-context", "the driver or context is not usable")         \
    VERDICT(FORKED, "forked", "CUDA was initialised before this process was forked")               \
    VERDICT(IN_CAPTURE, "in-capture", "not allowed while a graph is being captured")               \
    VERDICT(INJECTED, "injected", "made to fail by GPUOOMSHIM_INJECT")

enum gos_verdict_code {
#define GOS_VERDICT_ENUM(name, code, words) GOS_VERDICT_##name,
    GOS_VERDICTS(GOS_VERDICT_ENUM)
#undef GOS_VERDICT_ENUM
        GOS_VERDICT_COUNT
};
const char *gos_verdict_code(enum gos_verdict_code code);
const char *gos_verdict_words(enum gos_verdict_code code);

/* proven: follows from what was measured; likely: fits best; possible: a guess. */
enum gos_confidence { GOS_CONFIDENCE_PROVEN, GOS_CONFIDENCE_LIKELY, GOS_CONFIDENCE_POSSIBLE };
const char *gos_confidence_code(enum gos_confidence confidence);

#define GOS_LINES_MAX 12

struct gos_verdict {
    enum gos_verdict_code code;
    enum gos_confidence confidence;
    const char *summary; /* one sentence with the numbers */
    const char *evidence[GOS_LINES_MAX];
    size_t evidence_count;
    const char *advice[GOS_LINES_MAX]; /* best first */
    size_t advice_count;
    bool has_runner_up;
    enum gos_verdict_code runner_up;
    uint64_t short_bytes; /* asked minus free, 0 if it would have fitted or is unknown */
    /* Who holds the most: a library's everyday name ("torch"), "" unknown. */
    const char *holder;
    uint64_t holder_bytes;
    /* What a step of recovery could give back, so that it is tried only if it can help. */
    uint64_t pending_bytes; /* sync */
    uint64_t idle_bytes;    /* trim */
};

/* Versions or paths that do not fit together, and what to change. */
struct gos_mismatch {
    const char *line; /* with the paths that were loaded */
    const char *advice;
};
#define GOS_MISMATCH_MAX 8

struct gos_diagnosis {
    const struct gos_evidence *evidence;
    struct gos_mismatch mismatches[GOS_MISMATCH_MAX]; /* the most telling first */
    size_t mismatch_count;
    size_t driver_mismatch_count; /* so many of them, the first, are about the driver */
    struct {
        const char *words; /* of what is no allocation (need.h); NULL: it is one, or not known */
        uint64_t bytes;    /* 0: not known */
        bool is_most;      /* at most so much: part of it may have been there before */
    } need;
    int device; /* ordinal that the verdict is about, -1 for the host */
    struct gos_ledger ledgers[GOS_DEVICE_MAX]; /* of the devices that are present */
    struct gos_fragmentation fragmentation[GOS_DEVICE_MAX];
    struct gos_verdict verdict;
    /* Live bytes by requesting library, descending; everyday names. */
    struct {
        const char *name;
        uint64_t live_bytes;
        uint64_t live_count;
        uint64_t managed_bytes; /* of that; it may be on the host */
    } holders[8];
    size_t holder_count;
    /*
     * Live bytes whose stack, as it was kept, does not show the library that
     * asked (GPUOOMSHIM_STACK, _DEPTH): whatever they are called above, they
     * may be anybody's.
     */
    uint64_t unseen_bytes;
    /* What was tried since in vain, in order: the verdict says what is left (revise.h). */
    const struct gos_step_record *steps;
    size_t step_count;
    const struct gos_step_record *helped; /* the one after them that did; NULL: none */
};

/* Text goes to the evidence's scratch memory, hence not const. */
void gos_diagnose(struct gos_evidence *evidence, struct gos_diagnosis *diagnosis);
/*
 * The same, where the diagnosis is of this evidence, and only its request and what
 * frameworks say have changed: without the block maps, which cost in proportion
 * to what is alive.
 */
void gos_diagnose_again(struct gos_evidence *evidence, struct gos_diagnosis *diagnosis);

/* The parts, for tests. */
void gos_ledger_make(const struct gos_evidence *evidence, const struct gos_device_evidence *device,
                     const struct gos_fragmentation *blocks, struct gos_ledger *ledger);
void gos_fragmentation_make(const struct gos_evidence *evidence,
                            const struct gos_device_evidence *device,
                            struct gos_fragmentation *fragmentation);
/* With the block map that it has. */
void gos_fragmentation_make_again(const struct gos_evidence *evidence,
                                  const struct gos_device_evidence *device,
                                  struct gos_fragmentation *fragmentation);
void gos_verdict_make(struct gos_evidence *evidence, struct gos_diagnosis *diagnosis);

/* Everyday name of the library that a module belongs to: "torch", "cupy", "nccl"; or its file name.
 */
const char *gos_library_name(const char *module_path);

#endif
