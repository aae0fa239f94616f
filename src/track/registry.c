#include "registry.h"

#include <errno.h>

#include "../base/hot.h"
#include "../base/loss.h"
#include "birth.h"
#include "shard.h"

static bool is_sound(const struct gos_allocation *allocation)
{
    return allocation->device < GOS_DEVICE_TABLES && (unsigned)allocation->kind < GOS_KIND_NONE;
}

/* The driver gave this address out again, so whatever we had there is gone. */
static __attribute__((cold, noinline)) void remove_stale(struct gos_shard *shard,
                                                         struct gos_spot stale)
{
    gos_shard_remove(shard, &stale);
    gos_loss_count(GOS_LOSS_UNTRACKED);
}

static int add(const struct gos_key *key, const struct gos_allocation *allocation,
               const struct gos_birth *birth)
{
    struct gos_shard *shard = key->shard;
    struct gos_account *account = gos_shard_account(key, allocation->device);
    struct gos_spot stale;
    int error;

    gos_lock_acquire(&shard->lock);
    stale = gos_shard_search(key, account, allocation->device);
    if (__builtin_expect(stale.account != NULL, 0))
        remove_stale(shard, stale);
    error = gos_shard_insert(key, account, allocation, birth);
    if (!error)
        gos_shard_bump(&shard->allocated_count, 1);
    gos_lock_release(&shard->lock);
    return error;
}

GOS_HOT int gos_registry_add(const struct gos_allocation *allocation)
{
    struct gos_birth birth;
    struct gos_key key;
    int error;

    if (!is_sound(allocation)) {
        gos_loss_count(GOS_LOSS_TABLE);
        return -EINVAL;
    }
    gos_birth_now(&birth);
    key = gos_shard_key(gos_kind_space(allocation->kind), allocation->address);
    error = add(&key, allocation, &birth);
    if (error)
        gos_loss_count(GOS_LOSS_MEMORY);
    return error;
}

GOS_HOT bool gos_registry_take(enum gos_space space, uint64_t address, struct gos_allocation *taken)
{
    struct gos_key key = gos_shard_key(space, address);
    struct gos_shard *shard = key.shard;
    struct gos_spot spot;

    gos_lock_acquire(&shard->lock);
    spot = gos_shard_find(&key);
    if (__builtin_expect(spot.account != NULL, 1)) {
        gos_shard_values(*spot.link, taken);
        gos_shard_remove(shard, &spot);
    }
    gos_lock_release(&shard->lock);
    return spot.account != NULL;
}

/* A record that is there by now is newer than ours: the address was given out again. */
static __attribute__((cold, noinline)) int put_back(const struct gos_key *key,
                                                    const struct gos_allocation *taken)
{
    struct gos_shard *shard = key->shard;
    struct gos_account *account = gos_shard_account(key, taken->device);
    struct gos_birth birth = {taken->sequence, taken->born_ms, taken->thread};
    int error = 0;

    gos_lock_acquire(&shard->lock);
    if (!gos_shard_search(key, account, taken->device).account)
        error = gos_shard_insert(key, account, taken, &birth);
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
    struct gos_shard *shard = key.shard;
    struct gos_spot spot;

    gos_lock_acquire(&shard->lock);
    spot = gos_shard_find(&key);
    if (spot.account)
        gos_shard_values(*spot.link, found);
    gos_lock_release(&shard->lock);
    return spot.account != NULL;
}
