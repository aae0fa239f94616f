#include "shard.h"

#include "../base/loss.h"

#define BUCKETS_FIRST 16u /* a power of two */
#define CHAIN_RECORDS 2u  /* a bucket, on average, before there are twice as many buckets */

struct gos_shard gos_shards[GOS_SHARD_COUNT] = {
    [0 ... GOS_SHARD_COUNT - 1] = {.lock = GOS_LOCK_INIT(GOS_RANK_SHARD)},
};
struct gos_account gos_accounts[GOS_DEVICE_TABLES][GOS_SHARD_COUNT];
_Atomic uint64_t gos_devices_used;

__attribute__((cold, noinline)) struct gos_spot gos_shard_search_others(struct gos_key key,
                                                                        uint32_t except)
{
    uint64_t rest = key.shard->tables & ~(UINT64_C(1) << except);

    for (; rest; rest &= rest - 1) {
        uint32_t table = (uint32_t)__builtin_ctzll(rest);
        struct gos_spot spot = gos_shard_look(&key, gos_shard_account(&key, table));

        if (spot.account) {
            key.shard->last_table = table;
            return spot;
        }
    }
    return (struct gos_spot){NULL, NULL};
}

/* The device's bit first: a child forked in between clears the rows whose bits it finds. */
static bool open_table(struct gos_shard *shard, struct gos_account *account, uint32_t device)
{
    atomic_fetch_or(&gos_devices_used, UINT64_C(1) << device);
    shard->tables |= UINT64_C(1) << device;
    account->buckets = gos_memory_alloc(BUCKETS_FIRST * sizeof(account->buckets[0]));
    account->bucket_mask = BUCKETS_FIRST - 1;
    account->room = account->buckets ? CHAIN_RECORDS * BUCKETS_FIRST : 0;
    return account->buckets != NULL;
}

static void chain_all(struct gos_account *account, struct gos_record *record)
{
    while (record) {
        struct gos_record *next = record->next;
        uint32_t hash = gos_shard_hash(record->address);
        struct gos_record **bucket = &account->buckets[hash & account->bucket_mask];

        record->next = *bucket;
        *bucket = record;
        record = next;
    }
}

/* Without memory chains grow longer, which is better than a gap. */
static void add_buckets(struct gos_account *account)
{
    struct gos_record **old = account->buckets;
    size_t old_count = (size_t)account->bucket_mask + 1;
    struct gos_record **fresh = gos_memory_alloc(2 * old_count * sizeof(fresh[0]));

    account->room = 1;
    if (!fresh)
        return;
    account->room = (uint32_t)(CHAIN_RECORDS * old_count);
    account->buckets = fresh;
    account->bucket_mask = (uint32_t)(2 * old_count - 1);
    for (size_t i = 0; i < old_count; i++)
        chain_all(account, old[i]);
    gos_memory_free(old, old_count * sizeof(old[0]));
}

__attribute__((cold, noinline)) bool gos_account_grow(struct gos_shard *shard,
                                                      struct gos_account *account, uint32_t device)
{
    if (!account->buckets)
        return open_table(shard, account, device);
    add_buckets(account);
    return true;
}
