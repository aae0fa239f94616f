/*
 * Made-up evidence that adds up: a scene says in MiB who holds what on one
 * device; what nobody holds is free.  Sites and modules are made up too: the
 * fixture defines the look-ups that diagnose makes.
 */
#ifndef GOS_TESTS_DIAGNOSE_FIXTURE_H
#define GOS_TESTS_DIAGNOSE_FIXTURE_H

#include "../../src/diagnose/diagnosis.h"

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

enum site {
    SITE_NONE,
    SITE_TORCH,  /* libc10_cuda, model.py:41 forward below torch's own frames */
    SITE_NCCL,   /* libnccl, no Python */
    SITE_APP,    /* a program's own library, train.py:88 load_batch */
    SITE_PIECES, /* the same library, pieces.py:7 fill */
    SITE_CTYPES, /* _ctypes, libffi, then the interpreter */
    SITE_CUPY,
    SITE_NUMBA,  /* _ctypes, then the interpreter; newest Python frame is numba's */
    SITE_JIT,    /* code in no module, then cuBLAS */
    SITE_UNSEEN, /* only its Python frames were kept */
    /* Through one function, alloc.py:12: model.py:3 keeps, of two callers, and model.py:7 uses. */
    SITE_KEEPS_IN_TRAINING,
    SITE_KEEPS_IN_EVALUATION,
    SITE_USES,
    SITE_COUNT
};

/* What NVML lets us see. */
enum view {
    VIEW_FULL,       /* everything, our own pid too */
    VIEW_NO_LIST,    /* memory, but no list of processes */
    VIEW_NOT_LISTED, /* a list that leaves us out, others as unseen pids */
    VIEW_NO_NUMBERS, /* WSL: pids without numbers */
    VIEW_NONE,       /* no NVML at all */
    VIEW_FORBIDDEN,  /* MIG: refuses everything */
    VIEW_COUNT
};

/* How app and torch came to what they hold. */
enum course {
    COURSE_UNKNOWN,  /* no history */
    COURSE_LEAK,     /* app steadily, while the rest came and went */
    COURSE_UNFREED,  /* app steadily, and nothing was freed */
    COURSE_FLAT,     /* app in the first third of the run, then no more */
    COURSE_TOGETHER, /* both steadily */
    COURSE_TORCH,    /* torch steadily, and nothing was freed */
};

struct scene {
    const char *name;
    enum gos_verdict_code code;
    enum gos_confidence confidence;

    /* The request. */
    uint64_t ask; /* bytes */
    bool unsized;
    bool makes_context;
    enum gos_kind kind;
    int result; /* 0 stands for 2, out of memory */
    enum site by;
    enum gos_capture_state capture;
    bool forked;
    bool injected; /* by GPUOOMSHIM_INJECT */
    bool limited;  /* refused by GPUOOMSHIM_LIMIT */

    /* The device, in MiB. */
    uint64_t total;   /* 0: 16,384 */
    uint64_t context; /* 0: 512 */
    uint64_t torch;
    uint64_t torch_physical;
    uint64_t torch_unused; /* torch's own word of what it holds; 0: it was not asked */
    uint64_t torch_pieces; /* of that, beside live blocks; the rest are whole segments */
    uint64_t torch_untold; /* of what it holds on our books, beyond its word */
    uint64_t cupy;
    uint64_t cupy_unused; /* CuPy's own word; 0: it was not asked */
    uint64_t app;
    uint64_t unseen; /* allocated by whom the stacks that were kept do not show */
    enum course course;
    uint64_t managed;
    uint64_t pieces;        /* live MiB, each alone in its 2 MiB block */
    uint64_t pool_live;     /* default pool */
    uint64_t pool_idle;     /* default pool */
    uint64_t pool_pending;  /* default pool, freed on a stream */
    bool pending_done;      /* the stream has finished, but nobody waited */
    uint64_t pending_seen;  /* freed on a stream, but the host has seen it: back long ago */
    uint64_t pool_stale;    /* freed by cuMemFree: the default pool's count has it still */
    bool pool_silent;       /* the driver does not tell its attributes */
    uint64_t pool2_idle;    /* in a second pool that has nothing live */
    uint64_t pool2_foreign; /* in use there, though not on our books */
    uint64_t graph_idle;
    uint64_t held;  /* in reserve */
    uint64_t limit; /* GPUOOMSHIM_LIMIT; what it would pass is refused; 0: none */
    uint64_t others;
    uint64_t children;
    uint64_t hidden;
    uint64_t mps_server; /* listed for an MPS server of another user; may be our own */
    bool integrated;
    bool first; /* nothing was allocated before */
    uint64_t smalls_lost;
    enum view view;

    /* The host: 0 is plenty or no limit. */
    uint64_t host_available;
    uint64_t address_room;
    uint64_t cgroup_room;
    uint64_t maps_left;
    uint64_t locked_room; /* MiB of RLIMIT_MEMLOCK */
    uint64_t commit_room; /* MiB, in overcommit mode 2 */
    uint64_t addresses_reserved_gib;

    const char *variable; /* "NAME=value" */
    bool variable_late;   /* set after the first CUDA use */

    /* Versions; NULL: not loaded, or not known. */
    const char *libcuda; /* path; its version is what follows ".so." */
    const char *nvml;
    const char *kernel;
    const char *cudart;
    const char *torch_cuda;
    int driver_version; /* 12080; 0 unknown */

    int earlier_error; /* of cuLaunchKernel */

    /* In the summary, some line of evidence, or some advice; NULL: anything. */
    const char *says;
    const char *says_too;
    const char *advises;
    const char *never_advises;
    enum gos_verdict_code next; /* the runner-up; 0: any or none */
};

/* Fill the evidence; gos_scratch_release(&evidence->scratch) when done. */
void scene_evidence(const struct scene *scene, struct gos_evidence *evidence);

/* What this process has of the scene's device, in MiB. */
uint64_t scene_own(const struct scene *scene);

/* What is free on the scene's device, in MiB, as the process sees it; and without the limit. */
uint64_t scene_free(const struct scene *scene);
uint64_t scene_really_free(const struct scene *scene);

/* Does the text appear in the summary or in a line of evidence (or of advice)? */
bool verdict_says(const struct gos_verdict *verdict, const char *text);
bool verdict_advises(const struct gos_verdict *verdict, const char *text);

/* A small generator with a fixed start: the same numbers in each run. */
uint64_t random_next(uint64_t *state);
uint64_t random_below(uint64_t *state, uint64_t end);

#endif
