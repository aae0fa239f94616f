#include "registry.h"

#include <errno.h>

#include "../base/loss.h"
#include "birth.h"
#include "shard.h"

enum gos_space gos_kind_space(enum gos_kind kind)
{
    switch (kind) {
    case GOS_KIND_PHYSICAL:
    case GOS_KIND_HANDLE:
        return GOS_SPACE_HANDLE;
    case GOS_KIND_ARRAY:
        return GOS_SPACE_ARRAY;
    case GOS_KIND_ADDRESS:
        return GOS_SPACE_RANGE;
    default:
        return GOS_SPACE_ADDRESS;
    }
}

static bool is_sound(const struct gos_allocation *allocation)
{
    return allocation->device < GOS_DEVICE_TABLES && (unsigned)allocation->kind < GOS_KIND_NONE;
}

static void count_allocation(struct gos_shard *shard)
{
    uint64_t count = atomic_load_explicit(&shard->allocated_count, memory_order_relaxed);

    atomic_store_explicit(&shard->allocated_count, count + 1, memory_order_relaxed);
}

/* The driver gave this address out again, so whatever we had there is gone. */
static void remove_stale(const struct gos_key *key)
{
    struct gos_record *stale = gos_shard_search(key);

    if (!stale)
        return;
    gos_shard_remove(key->shard, stale);
    gos_loss_count(GOS_LOSS_UNTRACKED);
}

static int add(const struct gos_key *key, const struct gos_allocation *allocation)
{
    struct gos_shard *shard = &gos_shards[key->shard];
    struct gos_birth birth;
    int error;

    gos_birth_now(&birth);
    gos_lock_acquire(&shard->lock);
    remove_stale(key);
    error = gos_shard_insert(key, allocation, &birth);
    if (!error)
        count_allocation(shard);
    gos_lock_release(&shard->lock);
    return error;
}

int gos_registry_add(const struct gos_allocation *allocation)
{
    struct gos_key key;
    int error;

    if (!is_sound(allocation)) {
        gos_loss_count(GOS_LOSS_TABLE);
        return -EINVAL;
    }
    key = gos_shard_key(gos_kind_space(allocation->kind), allocation->address);
    error = add(&key, allocation);
    if (error)
        gos_loss_count(GOS_LOSS_MEMORY);
    return error;
}

bool gos_registry_take(enum gos_space space, uint64_t address, struct gos_allocation *taken)
{
    struct gos_key key = gos_shard_key(space, address);
    struct gos_shard *shard = &gos_shards[key.shard];
    struct gos_record *record;

    gos_lock_acquire(&shard->lock);
    record = gos_shard_search(&key);
    if (record) {
        gos_shard_values(record, taken);
        gos_shard_remove(key.shard, record);
    }
    gos_lock_release(&shard->lock);
    return record != NULL;
}

/* A record that is there by now is newer than ours: the address was given out again. */
static int put_back(const struct gos_key *key, const struct gos_allocation *taken)
{
    struct gos_shard *shard = &gos_shards[key->shard];
    struct gos_birth birth = {taken->sequence, taken->born_ms, taken->thread};
    int error = 0;

    gos_lock_acquire(&shard->lock);
    if (!gos_shard_search(key))
        error = gos_shard_insert(key, taken, &birth);
    gos_lock_release(&shard->lock);
    return error;
}

void gos_registry_restore(const struct gos_allocation *taken)
{
    struct gos_key key;

    if (!is_sound(taken))
        return;
    key = gos_shard_key(gos_kind_space(taken->kind), taken->address);
    if (put_back(&key, taken) != 0)
        gos_loss_count(GOS_LOSS_MEMORY);
}

bool gos_registry_find(enum gos_space space, uint64_t address, struct gos_allocation *found)
{
    struct gos_key key = gos_shard_key(space, address);
    struct gos_shard *shard = &gos_shards[key.shard];
    struct gos_record *record;

    gos_lock_acquire(&shard->lock);
    record = gos_shard_search(&key);
    if (record)
        gos_shard_values(record, found);
    gos_lock_release(&shard->lock);
    return record != NULL;
}
