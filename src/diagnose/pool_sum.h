/*
 * The pools of one device taken together: how much they hold, how much of it
 * is in use, freed but not back, or idle.
 *
 * Whether the driver's "used" still counts memory whose free is pending is not
 * documented, so both readings give the same answer here: what is used beyond
 * our books is pending as far as frees are outstanding.  Where it is known to
 * say too much, our books say what is in use.
 */
#ifndef GOS_DIAGNOSE_POOL_SUM_H
#define GOS_DIAGNOSE_POOL_SUM_H

#include <stdbool.h>
#include <stdint.h>

#include "../observe/evidence.h"

struct gos_pool_sum {
    uint64_t reserved_bytes; /* live + pending + idle */
    uint64_t live_bytes;
    uint64_t pending_bytes;
    uint64_t idle_bytes;
    /* Of idle and pending together: in pools without anything live, so that nothing pins it. */
    uint64_t unpinned_bytes;
    /*
     * Of that, what a proof may stand on: in pools of which the driver says that
     * nothing is in use, or nothing but exactly what was freed.
     */
    uint64_t surely_unpinned_bytes;
    /* Freed in stream order, in pools whose size is not known. */
    uint64_t unplaced_bytes;
    bool complete; /* every pool told its numbers */
    bool any;      /* at least one did */
};

/* Of a pool that told its numbers, in use: as the driver counts it, where that can be believed. */
uint64_t gos_pool_used_bytes(const struct gos_pool_evidence *pool);

/* Pools imported from another process are on that one's account and left out. */
void gos_pool_sum_make(const struct gos_evidence *evidence,
                       const struct gos_device_evidence *device, struct gos_pool_sum *sum);

/* Unused bytes (pending included) of the pool that this request is served from, 0 if none. */
uint64_t gos_pool_unused_own(const struct gos_evidence *evidence, uint32_t device);

/* Bytes freed in stream order on the device that the host has not seen come back. */
uint64_t gos_pool_freed_bytes(const struct gos_evidence *evidence, uint32_t device);

#endif
