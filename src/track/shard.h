/*
 * One shard of the registry: its lock, its records, its share of the books.
 * Private to the registry's files.
 *
 * Everything here wants the shard's lock held, except where it says otherwise.
 */
#ifndef GOS_TRACK_SHARD_H
#define GOS_TRACK_SHARD_H

#include <errno.h>
#include <stdatomic.h>

#include "../base/lock.h"
#include "allowance.h"
#include "birth.h"
#include "peak.h"
#include "record.h"
#include "registry.h"
#include "table.h"

#define GOS_CACHE_LINE 64

#define GOS_INLINED __attribute__((always_inline))

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
    uint32_t room;           /* for so many more records before there are twice as many buckets */
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
    struct gos_shard *shard;
};

/* Hides how a pointer came about: GCC would work it out anew for each member. */
#define GOS_HIDE(pointer) __asm__("" : "+r"(pointer))

/*
 * One multiplication; the bits above the middle depend on all below them.  The
 * number is one of a few: with it equal distances from 1 to 8 GiB fill all
 * buckets alike, where others leave chains of five for some.
 */
static inline uint32_t gos_shard_hash(uint64_t address)
{
    return (uint32_t)(address * UINT64_C(0x165667b19e3779f9) >> 40);
}

/* No lock. */
static inline struct gos_key gos_shard_key(enum gos_space space, uint64_t address)
{
    uint64_t region = (address >> GOS_REGION_SHIFT) * UINT64_C(0x9e3779b97f4a7c15);
    struct gos_shard *shard = &gos_shards[region >> (64 - GOS_SHARD_BITS)];

    GOS_HIDE(shard);
    return (struct gos_key){
        .address = address,
        .space = space,
        .hash = gos_shard_hash(address),
        .shard = shard,
    };
}

/* Where a record hangs: its account (NULL: nowhere), and the pointer there that leads to it. */
struct gos_spot {
    struct gos_account *account;
    struct gos_record **link;
};

static inline struct gos_account *gos_shard_account(const struct gos_key *key, uint32_t table)
{
    struct gos_account *account = &gos_accounts[table][key->shard - gos_shards];

    GOS_HIDE(account);
    return account;
}

/*
 * The record, in the table that is likely to have it or in any other of the
 * shard.  This and what follows is what every call does, so it is inline.
 */
struct gos_spot gos_shard_search_others(struct gos_key key, uint32_t except);

static inline GOS_INLINED struct gos_spot gos_shard_look(const struct gos_key *key,
                                                         struct gos_account *account)
{
    struct gos_record **link;

    if (__builtin_expect(!account->buckets, 0))
        return (struct gos_spot){NULL, NULL};
    link = &account->buckets[key->hash & account->bucket_mask];
    while (*link && ((*link)->address != key->address ||
                     gos_kind_space(gos_record_facts(*link).kind) != key->space))
        link = &(*link)->next;
    return (struct gos_spot){*link ? account : NULL, link};
}

static inline GOS_INLINED struct gos_spot
gos_shard_search(const struct gos_key *key, struct gos_account *likely, uint32_t table)
{
    struct gos_spot spot = gos_shard_look(key, likely);
    uint64_t others = key->shard->tables & ~(UINT64_C(1) << table);

    if (__builtin_expect(!spot.account && others, 0))
        spot = gos_shard_search_others(*key, table);
    return spot;
}

/* A free does not say which device; in most programs the last guess is right. */
static inline GOS_INLINED struct gos_spot gos_shard_find(const struct gos_key *key)
{
    uint32_t last = key->shard->last_table;

    return gos_shard_search(key, gos_shard_account(key, last), last);
}

/* Under the lock there is one writer, so no locked instruction is needed. */
static inline void gos_shard_bump(_Atomic uint64_t *counter, uint64_t change)
{
    uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);

    atomic_store_explicit(counter, value + change, memory_order_relaxed);
}

static inline void gos_account_change(struct gos_account *account, struct gos_record_facts facts,
                                      bool born)
{
    uint64_t bytes = born ? facts.bytes : -facts.bytes;

    gos_shard_bump(&account->live[facts.kind].bytes, bytes);
    gos_shard_bump(&account->live[facts.kind].count, born ? 1 : UINT64_MAX);
    if (gos_peak_counts(facts.kind))
        gos_peak_change(facts.device, &account->held_back_bytes, (int64_t)bytes);
}

/* Makes room for one more; false without memory for the first ones. */
bool gos_account_grow(struct gos_shard *shard, struct gos_account *account, uint32_t device);

/* A new record into its device's table and books; its birth is not taken from the allocation. */
static inline GOS_INLINED int gos_shard_insert(const struct gos_key *key,
                                               struct gos_account *account,
                                               const struct gos_allocation *allocation,
                                               const struct gos_birth *birth) /* 0 or -ENOMEM */
{
    struct gos_shard *shard = key->shard;
    struct gos_record **bucket;
    struct gos_record *record;

    if (__builtin_expect(account->room == 0, 0) &&
        !gos_account_grow(shard, account, allocation->device))
        return -ENOMEM;
    record = gos_record_take(&shard->magazine);
    if (__builtin_expect(!record, 0))
        return -ENOMEM;
    if (gos_allowance_is_on())
        gos_allowance_book(allocation->kind, allocation->device, key->address,
                           gos_record_bytes(allocation->bytes), true);
    record->address = key->address;
    record->word = gos_record_word(allocation->bytes, allocation->kind, allocation->device);
    record->site = allocation->site;
    record->sequence = birth->sequence;
    record->born_ms = birth->born_ms;
    record->home = allocation->home;
    record->thread = birth->thread;
    bucket = &account->buckets[key->hash & account->bucket_mask];
    record->next = *bucket;
    *bucket = record;
    account->room--;
    shard->last_table = allocation->device;
    gos_account_change(account, gos_record_facts(record), true);
    return 0;
}

/* Out of table and books, and its memory given back. */
static inline GOS_INLINED void gos_shard_remove(struct gos_shard *shard,
                                                const struct gos_spot *spot)
{
    struct gos_record *record = *spot->link;
    struct gos_record_facts facts = gos_record_facts(record);

    gos_account_change(spot->account, facts, false);
    if (gos_allowance_is_on())
        gos_allowance_book(facts.kind, facts.device, record->address, facts.bytes, false);
    *spot->link = record->next;
    spot->account->room++;
    gos_record_give(&shard->magazine, record);
}

static inline void gos_shard_values(const struct gos_record *record, struct gos_allocation *values)
{
    struct gos_record_facts facts = gos_record_facts(record);

    *values = (struct gos_allocation){
        .address = record->address,
        .bytes = facts.bytes,
        .kind = facts.kind,
        .device = facts.device,
        .site = record->site,
        .sequence = record->sequence,
        .born_ms = record->born_ms,
        .home = record->home,
        .thread = record->thread,
    };
}

#endif
