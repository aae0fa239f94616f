#include "home.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "../base/lock.h"
#include "../base/loss.h"
#include "handle_map.h"
#include "table.h"

#define HOME_MAX UINT16_MAX
#define SLOT_COUNT (1u << 17) /* at least twice HOME_MAX, so that chains end */

/* Never changed once published by its slot.  Pages that are not used cost nothing. */
static struct gos_home homes[HOME_MAX + 1];
static _Atomic uint16_t slots[SLOT_COUNT]; /* open hash table of indices into homes; 0: free */
static _Atomic uint32_t home_count;
static struct gos_lock lock = GOS_LOCK_INIT(GOS_RANK_POOL);

/* What this thread interned last; valid for one generation, because of fork. */
static __thread struct {
    struct gos_home home;
    uint64_t generation;
    uint16_t index;
} last __attribute__((tls_model("initial-exec")));

static bool is_same(const struct gos_home *a, const struct gos_home *b)
{
    return a->stream == b->stream && a->context == b->context && a->pool == b->pool;
}

static uint32_t chain_start(const struct gos_home *home)
{
    uint64_t mixed = gos_table_mix(home->context);

    mixed = gos_table_mix(mixed ^ home->stream);
    return (uint32_t)gos_table_mix(mixed ^ home->pool) % SLOT_COUNT;
}

/* The home's index, or 0 with *slot where it belongs. */
static uint16_t find(const struct gos_home *home, uint32_t *slot)
{
    uint16_t index;

    for (*slot = chain_start(home);; *slot = (*slot + 1) % SLOT_COUNT) {
        index = atomic_load_explicit(&slots[*slot], memory_order_acquire);
        if (!index || is_same(&homes[index], home))
            return index;
    }
}

static uint16_t publish(const struct gos_home *home, uint32_t slot)
{
    uint32_t count = atomic_load_explicit(&home_count, memory_order_relaxed);

    if (count == HOME_MAX)
        return GOS_HOME_UNKNOWN;
    homes[count + 1] = *home;
    atomic_store_explicit(&home_count, count + 1, memory_order_relaxed);
    atomic_store_explicit(&slots[slot], (uint16_t)(count + 1), memory_order_release);
    return (uint16_t)(count + 1);
}

static uint16_t add(const struct gos_home *home)
{
    uint32_t slot;
    uint16_t index;

    gos_lock_acquire(&lock);
    index = find(home, &slot);
    if (!index)
        index = publish(home, slot);
    gos_lock_release(&lock);
    if (!index)
        gos_loss_count(GOS_LOSS_TABLE);
    return index;
}

uint16_t gos_home_intern(const struct gos_home *home)
{
    uint64_t generation = gos_handle_generation();
    uint32_t slot;

    if (last.index && last.generation == generation && is_same(&last.home, home))
        return last.index;
    last.home = *home;
    last.generation = generation;
    last.index = find(home, &slot);
    if (!last.index)
        last.index = add(home);
    return last.index;
}

struct gos_home gos_home_get(uint16_t index)
{
    return homes[index];
}

void gos_home_reset_after_fork(void)
{
    uint32_t used = atomic_load_explicit(&home_count, memory_order_relaxed);

    gos_lock_reset(&lock);
    atomic_store_explicit(&home_count, 0, memory_order_relaxed);
    for (uint32_t i = 0; used && i < SLOT_COUNT; i++)
        atomic_store_explicit(&slots[i], 0, memory_order_relaxed);
    last.index = 0;
}
