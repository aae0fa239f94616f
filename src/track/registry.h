/*
 * Every live allocation, in a table per device.
 *
 * The tables are hash tables in GOS_SHARD_COUNT shards by address, each with
 * a lock of its own.  Neighbours are in one shard, so that threads on different
 * memory do not meet.  A record is 40 bytes.
 *
 * Hook context: all functions but the walks are allowed in a hook; each takes
 * at most one shard lock.
 */
#ifndef GOS_TRACK_REGISTRY_H
#define GOS_TRACK_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "home.h"
#include "kind.h"

#define GOS_DEVICE_MAX 32
#define GOS_DEVICE_HOST GOS_DEVICE_MAX /* table of host memory and address space */
#define GOS_DEVICE_TABLES (GOS_DEVICE_MAX + 1)
#define GOS_SHARD_COUNT 512

/* One live allocation, as values. */
struct gos_allocation {
    uint64_t address; /* device or host pointer; for PHYSICAL and HANDLE the handle; for ARRAY the
                         CUarray */
    uint64_t bytes;   /* as requested; kept up to 2^48 - 1 */
    enum gos_kind kind;
    uint32_t device;   /* ordinal, or GOS_DEVICE_HOST */
    uint32_t site;     /* interned stack, 0 for none (site.h) */
    uint32_t sequence; /* low 32 bits of the order of birth; threads draw up to 32 at once */
    uint32_t born_ms;  /* since the registry's start */
    uint16_t home;
    uint16_t thread; /* gos_thread_index, 0 if above 65535 */
};

/*
 * Add a record.  sequence, born_ms and thread are filled in here.  An existing
 * record of the same address and space, on whichever device, is replaced (its
 * free was missed: counted as untracked).  Lost for want of memory: counted,
 * -ENOMEM; no such device or kind: counted as a full table, -EINVAL.
 */
int gos_registry_add(const struct gos_allocation *allocation);

/*
 * Take a record out, before the driver frees it.  False when unknown; whether
 * that is a loss is for the caller to say.
 * Handles of PHYSICAL and HANDLE and CUarrays are numbers of another space than
 * addresses; `kind_space` says which: GOS_SPACE_*.
 */
enum gos_space { GOS_SPACE_ADDRESS, GOS_SPACE_HANDLE, GOS_SPACE_ARRAY, GOS_SPACE_RANGE };
#define GOS_SPACE_OF(kind, space) ((uint64_t)GOS_SPACE_##space << 2 * GOS_KIND_##kind)
/* Two bits a kind in one constant: a look into a table would be one more line of memory. */
static inline enum gos_space gos_kind_space(enum gos_kind kind)
{
    const uint64_t spaces = GOS_SPACE_OF(PHYSICAL, HANDLE) | GOS_SPACE_OF(HANDLE, HANDLE) |
                            GOS_SPACE_OF(ARRAY, ARRAY) | GOS_SPACE_OF(ADDRESS, RANGE);

    return (enum gos_space)(spaces >> (2 * (unsigned)kind & 63) & 3);
}
bool gos_registry_take(enum gos_space space, uint64_t address, struct gos_allocation *taken);

/*
 * Put a taken record back exactly as it was: the driver refused the free.  A
 * newer record at the address stays.
 */
void gos_registry_restore(const struct gos_allocation *taken);

/* Look without taking. */
bool gos_registry_find(enum gos_space space, uint64_t address, struct gos_allocation *found);

/*
 * Drop every record for which the predicate holds (a context or pool died).
 * Locks one shard after the other; the predicate must not block or take a
 * lock.  Returns the number dropped.
 */
uint64_t gos_registry_drop(bool (*dies)(const struct gos_allocation *, const void *),
                           const void *arg);

/* Visit every record, shard by shard under its lock: visit must not block or take a lock. */
void gos_registry_walk(void (*visit)(const struct gos_allocation *, void *), void *arg);

struct gos_total {
    uint64_t live_bytes;
    uint64_t live_count;
};

/* Exact when no thread is inside a hook. */
struct gos_total gos_registry_total(uint32_t device, enum gos_kind kind);
/*
 * Highest sum over the kinds on the device's books plus POOL and MANAGED.
 * Kept in stripes so that threads do not share a cache line: may be low by at
 * most 4 MiB per shard, is never high, and is at least what is live now.
 */
uint64_t gos_registry_peak_bytes(uint32_t device);
/* Allocations since the start, over all devices. */
uint64_t gos_registry_allocated_count(void);
/* The same, and the frees. */
void gos_registry_counts(uint64_t *allocated, uint64_t *freed);

uint64_t gos_registry_start_wall_ns(void);

/* In a forked child: empty, homes too; the parent's memory is left behind. */
void gos_registry_reset_after_fork(void);

#endif
