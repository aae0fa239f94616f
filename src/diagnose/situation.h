/*
 * The arithmetic that every rule needs, done once: what was asked, what it
 * costs the device, what is missing, and where memory could come from.
 */
#ifndef GOS_DIAGNOSE_SITUATION_H
#define GOS_DIAGNOSE_SITUATION_H

#include <stdbool.h>
#include <stdint.h>

#include "diagnosis.h"
#include "leak.h"
#include "pool_sum.h"
#include "tried.h"

/*
 * A device with less than this free is called full when the size of what
 * failed is not known (a kernel's module, a stream, a context's parts).
 */
#define GOS_DEVICE_FULL_BYTES (64ull << 20)
/*
 * Or less than this share of it: before a launch fails, the driver gives back
 * what local memory it has, 0.4 GiB of 140 [H200].
 */
#define GOS_DEVICE_FULL_SHARE 256

/* What a context may take [524 MiB on an H200, driver 580]. */
#define GOS_CONTEXT_BYTES (640ull << 20)
/* While our own share is not known, this much of what is hidden may be our context. */
#define GOS_CONTEXT_ALLOWANCE_BYTES (1ull << 30)

/*
 * The last few MiB that the driver calls free cannot be had: with 3 MiB free,
 * a request of 2 MiB was seen to fail.
 */
#define GOS_FREE_DUST_BYTES (4ull << 20)

#define GOS_BLOCK_BYTES (2ull << 20)

struct gos_situation {
    struct gos_evidence *evidence; /* text goes to its scratch */
    const struct gos_diagnosis *diagnosis;
    const struct gos_request *request;
    /* NULL unless the request is about a device that could be read. */
    const struct gos_device_evidence *device;
    const struct gos_ledger *ledger;
    const struct gos_fragmentation *fragmentation;
    struct gos_pool_sum pools;
    const char *requester; /* everyday name, "" unknown */

    bool out_of_memory; /* the result is 2 */
    bool on_device;     /* asks for the device's memory, and the device could be read */
    bool on_host;       /* asks for host memory or address space */

    uint64_t asked_bytes;   /* or needed (need.h); 0 when the size is not known */
    uint64_t cost_bytes;    /* what the device must have free for it */
    uint64_t free_bytes;    /* of the device, after the failure */
    uint64_t missing_bytes; /* free must grow by this; 0: there is room */
    /*
     * Missing by arithmetic alone, not because of the last few MiB or of an
     * unknown size: what follows from it can be proven.
     */
    bool strict;

    /*
     * What was tried since in vain.  What came back is missing no more, and no
     * source any more; was_taken: it would have been enough, so that somebody
     * else has it now, and all of it is missing again.
     */
    struct gos_tried tried;
    bool was_taken;

    uint64_t idle_bytes;     /* of other pools than the request's own, and of graphs */
    uint64_t givable_bytes;  /* of that, what trimming may give back */
    uint64_t own_idle_bytes; /* in the pool that the request is served from */
    uint64_t pending_bytes;
    uint64_t stuck_bytes;      /* unused parts of shared blocks */
    uint64_t tracked_bytes;    /* this process, without its context and the reserve */
    uint64_t neighbours_bytes; /* children and others, with a number */
    uint64_t imported_bytes;   /* of what others hold, mapped here (IPC) */
    uint64_t hidden_bytes;     /* of the hidden line, what another process could be */

    struct gos_leak leak; /* of the device, where the request did not fit; else of kind NONE */
};

/*
 * About diagnosis->device, whose ledger and fragmentation are made already.  Not
 * to be copied.  Most of the time goes into the look for a leak.
 */
void gos_situation_make(struct gos_evidence *evidence, const struct gos_diagnosis *diagnosis,
                        struct gos_situation *situation);

/* What a device must have free for the request, as well as that is known. */
uint64_t gos_situation_cost_bytes(const struct gos_request *request);

/* Unused memory of this process that lies anywhere: pools, graphs, blocks. */
uint64_t gos_situation_unused_bytes(const struct gos_situation *situation);

/* The caching library with most live bytes on the device, "" none; *bytes: may be unused. */
const char *gos_situation_cache(const struct gos_situation *situation, uint64_t *bytes);

/* A device's memory was asked for, and too little of it was free. */
static inline bool gos_situation_is_short(const struct gos_situation *s)
{
    return s->on_device && s->missing_bytes > 0;
}

/* What that line of the device's ledger has. */
static inline uint64_t gos_situation_line_bytes(const struct gos_situation *s,
                                                enum gos_ledger_line line)
{
    return (uint64_t)s->ledger->lines[line].bytes;
}

/*
 * By how much it was short, as people reckon it: asked less free; where that
 * much was free, what whole 2 MiB blocks take less free.  Only when strict.
 */
uint64_t gos_situation_short_bytes(const struct gos_situation *s);

/* "4.00 GiB"; an amount as people read it. */
const char *gos_situation_amount(const struct gos_situation *situation, uint64_t bytes);

/* "4.00 GiB asked, 0.50 GiB free: short by 3.50 GiB." */
const char *gos_situation_arithmetic(const struct gos_situation *situation);

/* As the process sees it: of the device, or what GPUOOMSHIM_LIMIT makes of it. */
uint64_t gos_situation_total_bytes(const struct gos_situation *situation);

/* "the process that made this call", or the library's name. */
const char *gos_situation_requester(const struct gos_situation *situation);

#endif
