/*
 * One shard of the registry: its lock, its records, its share of the books.
 * Private to the registry's files.
 *
 * Everything here wants the shard's lock held, except where it says otherwise.
 */
#ifndef GOS_TRACK_SHARD_H
#define GOS_TRACK_SHARD_H

#include <stdatomic.h>

#include "../base/lock.h"
#include "birth.h"
#include "record.h"
#include "registry.h"
#include "table.h"

#define GOS_CACHE_LINE 64

#define GOS_SHARD_BITS 9
_Static_assert(GOS_SHARD_COUNT == 1 << GOS_SHARD_BITS, "a shard is chosen by so many bits");

/*
 * Addresses within 32 MiB share a shard.  With smaller regions a thread that
 * walks through its memory moves on to lines that another core wrote at every
 * few calls (measured on 16 cores, allocations of 1 MiB, against one thread:
 * 3.5 times the pairs per second with 2 MiB, 5.6 with 8 MiB, 10.9 with 32 MiB);
 * with larger ones more threads that draw on one pool meet at one lock.
 */
#define GOS_REGION_SHIFT 25

_Static_assert(GOS_DEVICE_TABLES <= 64, "a table is a bit of a word");

/* What every operation writes lies on one line, which no other shard shares. */
struct gos_shard {
    _Alignas(GOS_CACHE_LINE) struct gos_lock lock;
    uint64_t tables;     /* bit d: device table d has been used here */
    uint32_t last_table; /* where the last look-up succeeded */
    struct gos_magazine magazine;
    _Atomic uint64_t allocated_count; /* written under the lock, read without */
};
_Static_assert(sizeof(struct gos_shard) == GOS_CACHE_LINE, "one line per shard");

/*
 * The part of one device's books that one shard keeps.  Records are chained
 * through themselves, newest first: all that finding one takes is a pointer in it.
 */
struct gos_account {
    _Alignas(GOS_CACHE_LINE) struct gos_record **buckets; /* NULL: never used */
    uint32_t bucket_mask;
    uint32_t record_count;
    int64_t held_back_bytes; /* not yet told to the peak (peak.h) */
    struct {
        _Atomic uint64_t bytes; /* written under the lock, read without */
        _Atomic uint64_t count;
    } live[GOS_KIND_COUNT];
};

/* Bit d: some shard has, or is about to have, a table of device d. */
extern _Atomic uint64_t gos_devices_used;
extern struct gos_shard gos_shards[GOS_SHARD_COUNT];
/* Device first: a process that uses one device touches one row. */
extern struct gos_account gos_accounts[GOS_DEVICE_TABLES][GOS_SHARD_COUNT];

/* Where a number belongs. */
struct gos_key {
    uint64_t address;
    enum gos_space space;
    uint32_t hash;
    uint32_t shard;
};

static inline uint32_t gos_shard_hash(uint64_t address)
{
    return gos_table_hash(gos_table_mix(address));
}

/*
 * No lock.  Inline and passed on by address: a copied key is read wider than it
 * was written, which stalls for longer than the look-up takes.
 */
static inline struct gos_key gos_shard_key(enum gos_space space, uint64_t address)
{
    uint64_t region = (address >> GOS_REGION_SHIFT) * UINT64_C(0x9e3779b97f4a7c15);

    return (struct gos_key){
        .address = address,
        .space = space,
        .hash = gos_shard_hash(address),
        .shard = (uint32_t)(region >> (64 - GOS_SHARD_BITS)),
    };
}

/* The record in any of the shard's tables, or NULL. */
struct gos_record *gos_shard_search(const struct gos_key *key);
/* A new record into its device's table and books; its birth is not taken from the allocation. */
int gos_shard_insert(const struct gos_key *key, const struct gos_allocation *allocation,
                     const struct gos_birth *birth); /* 0 or -ENOMEM */
/* Out of table and books, and its memory given back. */
void gos_shard_remove(uint32_t shard, struct gos_record *record);

void gos_shard_values(const struct gos_record *record, struct gos_allocation *values);

#endif
