#include "shard.h"

#include <errno.h>
#include <string.h>

#include "../base/loss.h"
#include "allowance.h"
#include "peak.h"

struct gos_shard gos_shards[GOS_SHARD_COUNT] = {
    [0 ... GOS_SHARD_COUNT - 1] = {.lock = GOS_LOCK_INIT(GOS_RANK_SHARD)},
};
struct gos_account gos_accounts[GOS_DEVICE_TABLES][GOS_SHARD_COUNT];
_Atomic uint64_t gos_devices_used;

static inline struct gos_record *look(uint32_t table, const struct gos_key *key)
{
    struct gos_record *head = gos_accounts[table][key->shard].head;
    struct gos_record *record;

    HASH_FIND_BYHASHVALUE(hh, head, key->key, key->space, key->hash, record);
    return record;
}

static struct gos_record *search_others(uint32_t except, const struct gos_key *key)
{
    uint64_t rest = gos_shards[key->shard].tables & ~(UINT64_C(1) << except);
    struct gos_record *record = NULL;

    for (; !record && rest; rest &= rest - 1)
        record = look((uint32_t)__builtin_ctzll(rest), key);
    if (record)
        gos_shards[key->shard].last_table = record->device;
    return record;
}

/* A free does not say which device; in most programs the last guess is right. */
struct gos_record *gos_shard_search(const struct gos_key *key)
{
    uint32_t last = gos_shards[key->shard].last_table;
    struct gos_record *record = look(last, key);

    return record ? record : search_others(last, key);
}

/*
 * uthash drops a table with its last element.  A program that allocates and
 * frees one block in a loop would build and drop it each time, under the one
 * lock of the metadata memory: so an element that is nobody's allocation stays
 * in it.  No key has its length, zero.
 */
static bool add_sentinel(struct gos_account *account, struct gos_shard *shard)
{
    struct gos_record *sentinel = gos_record_take(&shard->magazine);

    if (!sentinel)
        return false;
    memset(sentinel, 0, sizeof(*sentinel));
    HASH_ADD_KEYPTR_BYHASHVALUE(hh, account->head, NULL, 0, 0, sentinel);
    if (!account->head)
        gos_record_give(&shard->magazine, sentinel);
    return account->head != NULL;
}

/* The device's bit first: a child forked in between clears the rows whose bits it finds. */
static bool open_table(struct gos_account *account, struct gos_shard *shard, uint32_t device)
{
    atomic_fetch_or(&gos_devices_used, UINT64_C(1) << device);
    return add_sentinel(account, shard);
}

/* uthash refuses an element when its buckets cannot grow; longer chains are better than a gap. */
static void add_to_table(struct gos_record *head, const struct gos_key *key,
                         struct gos_record *record)
{
    HASH_ADD_KEYPTR_BYHASHVALUE(hh, head, key->key, key->space, key->hash, record);
    if (record->hh.tbl)
        return;
    head->hh.tbl->noexpand = 1;
    HASH_ADD_KEYPTR_BYHASHVALUE(hh, head, key->key, key->space, key->hash, record);
    head->hh.tbl->noexpand = 0;
}

/* Under the lock there is one writer, so no locked instruction is needed. */
static void bump(_Atomic uint64_t *counter, uint64_t change)
{
    uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);

    atomic_store_explicit(counter, value + change, memory_order_relaxed);
}

static void enter_in_books(struct gos_account *account, const struct gos_record *record, bool born)
{
    uint64_t bytes = record->bytes;
    uint64_t one = 1;

    bump(&account->live[record->kind].bytes, born ? bytes : -bytes);
    bump(&account->live[record->kind].count, born ? one : -one);
    if (gos_peak_counts((enum gos_kind)record->kind))
        gos_peak_change(record->device, &account->held_back_bytes,
                        born ? (int64_t)bytes : -(int64_t)bytes);
}

static void fill(struct gos_record *record, const struct gos_allocation *allocation,
                 const struct gos_birth *birth)
{
    record->word = gos_record_word(allocation->bytes, allocation->kind, allocation->device);
    record->site = allocation->site;
    record->sequence = birth->sequence;
    record->born_ms = birth->born_ms;
    record->home = allocation->home;
    record->thread = birth->thread;
}

int gos_shard_insert(const struct gos_key *key, const struct gos_allocation *allocation,
                     const struct gos_birth *birth)
{
    struct gos_shard *shard = &gos_shards[key->shard];
    struct gos_account *account = &gos_accounts[allocation->device][key->shard];
    struct gos_record *record;

    if (!account->head && !open_table(account, shard, allocation->device))
        return -ENOMEM;
    record = gos_record_take(&shard->magazine);
    if (!record)
        return -ENOMEM;
    fill(record, allocation, birth);
    add_to_table(account->head, key, record);
    shard->tables |= UINT64_C(1) << allocation->device;
    shard->last_table = allocation->device;
    enter_in_books(account, record, true);
    if (gos_allowance_is_on())
        gos_allowance_book(allocation->kind, allocation->device, allocation->address, record->bytes,
                           true);
    return 0;
}

void gos_shard_remove(uint32_t shard, struct gos_record *record)
{
    struct gos_account *account = &gos_accounts[record->device][shard];

    enter_in_books(account, record, false);
    if (gos_allowance_is_on())
        gos_allowance_book((enum gos_kind)record->kind, record->device,
                           (uint64_t)(uintptr_t)record->hh.key, record->bytes, false);
    HASH_DELETE(hh, account->head, record);
    gos_record_give(&gos_shards[shard].magazine, record);
}

void gos_shard_values(const struct gos_record *record, struct gos_allocation *values)
{
    values->address = (uint64_t)(uintptr_t)record->hh.key;
    values->bytes = record->bytes;
    values->kind = (enum gos_kind)record->kind;
    values->device = record->device;
    values->site = record->site;
    values->sequence = record->sequence;
    values->born_ms = record->born_ms;
    values->home = record->home;
    values->thread = record->thread;
}
