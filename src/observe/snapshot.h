/*
 * The registry at one moment: live allocations summed by site, kind and
 * device; totals; the small ones that may share a 2 MiB block.
 *
 * All arrays are sized before the walk, from the registry's own totals and
 * some room for what is allocated meanwhile, because under a shard's lock
 * nothing may be allocated.  What does not fit is counted and said in
 * incomplete; totals stay exact, for they need no room.
 */
#ifndef GOS_OBSERVE_SNAPSHOT_H
#define GOS_OBSERVE_SNAPSHOT_H

#include <stddef.h>
#include <stdint.h>

#include "evidence.h"

struct gos_snapshot {
    struct gos_evidence *evidence;
    uint32_t *slots; /* open addressing: position in evidence->uses plus 1, 0 empty */
    size_t slot_mask;
    size_t use_room;
    size_t small_room[GOS_DEVICE_MAX];
    uint64_t *home_pool_bytes; /* stream-ordered live bytes by home; NULL: no memory */
    uint64_t *home_seen;       /* bitmap of homes that live allocations have */
    uint64_t uses_lost;
};

/* Fills uses, devices[].live/smalls/small_lost/large_rounding_bytes/peak_bytes and host_live. */
void gos_snapshot_take(struct gos_snapshot *snapshot, struct gos_evidence *evidence);

/* Live bytes that are on our books for that pool. */
uint64_t gos_snapshot_pool_bytes(const struct gos_snapshot *snapshot, uint64_t pool);

/* Visit the context of each home that live allocations have; never 0, may repeat. */
void gos_snapshot_contexts(const struct gos_snapshot *snapshot,
                           void (*visit)(uint64_t context, void *arg), void *arg);

#endif
