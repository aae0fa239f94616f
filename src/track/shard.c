#include "shard.h"

#include <errno.h>

#include "../base/loss.h"
#include "allowance.h"
#include "peak.h"

#define BUCKETS_FIRST 16u /* a power of two */
#define CHAIN_RECORDS 2   /* a bucket, on average, before there are twice as many buckets */

struct gos_shard gos_shards[GOS_SHARD_COUNT] = {
    [0 ... GOS_SHARD_COUNT - 1] = {.lock = GOS_LOCK_INIT(GOS_RANK_SHARD)},
};
struct gos_account gos_accounts[GOS_DEVICE_TABLES][GOS_SHARD_COUNT];
_Atomic uint64_t gos_devices_used;

static inline struct gos_record *look(uint32_t table, const struct gos_key *key)
{
    const struct gos_account *account = &gos_accounts[table][key->shard];
    struct gos_record *record;

    if (!account->buckets)
        return NULL;
    record = account->buckets[key->hash & account->bucket_mask];
    while (record && (record->address != key->address ||
                      gos_kind_space((enum gos_kind)record->kind) != key->space))
        record = record->next;
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

/* The device's bit first: a child forked in between clears the rows whose bits it finds. */
static bool open_table(struct gos_account *account, uint32_t device)
{
    atomic_fetch_or(&gos_devices_used, UINT64_C(1) << device);
    account->buckets = gos_memory_alloc(BUCKETS_FIRST * sizeof(account->buckets[0]));
    account->bucket_mask = BUCKETS_FIRST - 1;
    return account->buckets != NULL;
}

static inline void chain(struct gos_account *account, struct gos_record *record, uint32_t hash)
{
    struct gos_record **bucket = &account->buckets[hash & account->bucket_mask];

    record->next = *bucket;
    *bucket = record;
}

static void chain_all(struct gos_account *account, struct gos_record *record)
{
    while (record) {
        struct gos_record *next = record->next;

        chain(account, record, gos_shard_hash(record->address));
        record = next;
    }
}

/* Without memory chains grow longer, which is better than a gap. */
static __attribute__((noinline)) void add_buckets(struct gos_account *account)
{
    struct gos_record **old = account->buckets;
    size_t old_count = (size_t)account->bucket_mask + 1;
    struct gos_record **fresh = gos_memory_alloc(2 * old_count * sizeof(fresh[0]));

    if (!fresh)
        return;
    account->buckets = fresh;
    account->bucket_mask = (uint32_t)(2 * old_count - 1);
    for (size_t i = 0; i < old_count; i++)
        chain_all(account, old[i]);
    gos_memory_free(old, old_count * sizeof(old[0]));
}

static void add_to_table(struct gos_account *account, const struct gos_key *key,
                         struct gos_record *record)
{
    if (account->record_count / CHAIN_RECORDS > account->bucket_mask)
        add_buckets(account);
    record->address = key->address;
    chain(account, record, key->hash);
    account->record_count++;
}

static void remove_from_table(struct gos_account *account, const struct gos_record *record)
{
    uint32_t hash = gos_shard_hash(record->address);
    struct gos_record **link = &account->buckets[hash & account->bucket_mask];

    while (*link != record)
        link = &(*link)->next;
    *link = record->next;
    account->record_count--;
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

    if (!account->buckets && !open_table(account, allocation->device))
        return -ENOMEM;
    record = gos_record_take(&shard->magazine);
    if (!record)
        return -ENOMEM;
    fill(record, allocation, birth);
    add_to_table(account, key, record);
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
        gos_allowance_book((enum gos_kind)record->kind, record->device, record->address,
                           record->bytes, false);
    remove_from_table(account, record);
    gos_record_give(&gos_shards[shard].magazine, record);
}

void gos_shard_values(const struct gos_record *record, struct gos_allocation *values)
{
    values->address = record->address;
    values->bytes = record->bytes;
    values->kind = (enum gos_kind)record->kind;
    values->device = record->device;
    values->site = record->site;
    values->sequence = record->sequence;
    values->born_ms = record->born_ms;
    values->home = record->home;
    values->thread = record->thread;
}
