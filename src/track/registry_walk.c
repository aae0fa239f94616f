/* The registry as a whole: walks, sums, and starting over. */
#include "registry.h"

#include <string.h>

#include "birth.h"
#include "fallback.h"
#include "peak.h"
#include "shard.h"

struct drop {
    bool (*dies)(const struct gos_allocation *, const void *);
    const void *arg;
    uint64_t count;
};

static void drop_in_chain(struct gos_spot spot, uint32_t shard, struct drop *drop)
{
    while (*spot.link) {
        struct gos_allocation values;

        gos_shard_values(*spot.link, &values);
        if (drop->dies(&values, drop->arg)) {
            gos_shard_remove(&gos_shards[shard], &spot);
            drop->count++;
        } else {
            spot.link = &(*spot.link)->next;
        }
    }
}

static void drop_in_table(uint32_t table, uint32_t shard, struct drop *drop)
{
    struct gos_account *account = &gos_accounts[table][shard];

    for (size_t i = 0; account->buckets && i <= account->bucket_mask; i++)
        drop_in_chain((struct gos_spot){account, &account->buckets[i]}, shard, drop);
}

uint64_t gos_registry_drop(bool (*dies)(const struct gos_allocation *, const void *),
                           const void *arg)
{
    struct drop drop = {dies, arg, 0};

    for (uint32_t i = 0; i < GOS_SHARD_COUNT; i++) {
        gos_lock_acquire(&gos_shards[i].lock);
        for (uint64_t rest = gos_shards[i].tables; rest; rest &= rest - 1)
            drop_in_table((uint32_t)__builtin_ctzll(rest), i, &drop);
        gos_lock_release(&gos_shards[i].lock);
    }
    return drop.count;
}

static void walk_chain(const struct gos_record *record,
                       void (*visit)(const struct gos_allocation *, void *), void *arg)
{
    for (; record; record = record->next) {
        struct gos_allocation values;

        gos_shard_values(record, &values);
        visit(&values, arg);
    }
}

#define FETCH_AHEAD 8 /* buckets */

/*
 * Records lie in memory by birth, and in buckets in no order: without this a
 * walk of a million takes a third more time.  Always inline, because gcc takes
 * a function that does nothing else for one without effect and drops the call.
 */
static inline __attribute__((always_inline)) void fetch_ahead(const struct gos_account *account,
                                                              size_t bucket)
{
    const struct gos_record *sooner =
        account->buckets[(bucket + FETCH_AHEAD / 2) & account->bucket_mask];

    __builtin_prefetch(account->buckets[(bucket + FETCH_AHEAD) & account->bucket_mask]);
    if (sooner)
        __builtin_prefetch(sooner->next);
}

static void walk_table(uint32_t table, uint32_t shard,
                       void (*visit)(const struct gos_allocation *, void *), void *arg)
{
    const struct gos_account *account = &gos_accounts[table][shard];

    for (size_t i = 0; account->buckets && i <= account->bucket_mask; i++) {
        fetch_ahead(account, i);
        walk_chain(account->buckets[i], visit, arg);
    }
}

void gos_registry_walk(void (*visit)(const struct gos_allocation *, void *), void *arg)
{
    for (uint32_t i = 0; i < GOS_SHARD_COUNT; i++) {
        gos_lock_acquire(&gos_shards[i].lock);
        for (uint64_t rest = gos_shards[i].tables; rest; rest &= rest - 1)
            walk_table((uint32_t)__builtin_ctzll(rest), i, visit, arg);
        gos_lock_release(&gos_shards[i].lock);
    }
}

static bool is_used(uint32_t device)
{
    return device < GOS_DEVICE_TABLES && atomic_load(&gos_devices_used) >> device & 1;
}

struct gos_total gos_registry_total(uint32_t device, enum gos_kind kind)
{
    struct gos_total total = {0, 0};

    if (!is_used(device) || (unsigned)kind >= GOS_KIND_COUNT)
        return total;
    for (uint32_t i = 0; i < GOS_SHARD_COUNT; i++) {
        struct gos_account *account = &gos_accounts[device][i];

        total.live_bytes += atomic_load_explicit(&account->live[kind].bytes, memory_order_relaxed);
        total.live_count += atomic_load_explicit(&account->live[kind].count, memory_order_relaxed);
    }
    return total;
}

static uint64_t live_count(void)
{
    uint64_t count = 0;

    for (uint32_t device = 0; device < GOS_DEVICE_TABLES; device++) {
        for (int kind = 0; kind < GOS_KIND_COUNT; kind++)
            count += gos_registry_total(device, (enum gos_kind)kind).live_count;
    }
    return count;
}

uint64_t gos_registry_allocated_count(void)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < GOS_SHARD_COUNT; i++)
        count += atomic_load_explicit(&gos_shards[i].allocated_count, memory_order_relaxed);
    return count;
}

/* Frees are not counted: what was allocated and does not live was freed. */
void gos_registry_counts(uint64_t *allocated, uint64_t *freed)
{
    uint64_t live = live_count();

    *allocated = gos_registry_allocated_count();
    *freed = *allocated > live ? *allocated - live : 0;
}

/*
 * Fork copies page after page while other threads go on writing, so the bit of
 * a table and the table can come from different moments: we look at each table.
 */
static void empty_shard(struct gos_shard *shard)
{
    gos_lock_reset(&shard->lock);
    shard->tables = 0;
    shard->last_table = 0;
    shard->magazine = (struct gos_magazine){NULL, NULL, 0};
    atomic_store_explicit(&shard->allocated_count, 0, memory_order_relaxed);
}

/*
 * The parent's tables may be in the middle of a change by a thread that does
 * not exist here, so nothing is followed and nothing is freed.
 */
void gos_registry_reset_after_fork(void)
{
    gos_fallback_reset_after_fork();
    for (uint32_t device = 0; device < GOS_DEVICE_TABLES; device++) {
        if (is_used(device))
            memset(gos_accounts[device], 0, sizeof(gos_accounts[device]));
    }
    atomic_store(&gos_devices_used, 0);
    for (uint32_t i = 0; i < GOS_SHARD_COUNT; i++)
        empty_shard(&gos_shards[i]);
    gos_record_reset_after_fork();
    gos_home_reset_after_fork();
    gos_peak_reset_after_fork();
    gos_birth_reset_after_fork();
}
