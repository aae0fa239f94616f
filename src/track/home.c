#include "home.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "../base/lock.h"
#include "../base/loss.h"
#include "handle_map.h"
#include "registry.h"
#include "slot_table.h"
#include "table.h"

/* At most half full; a home's number is its slot's, counted from 1. */
#define SLOT_COUNT UINT16_MAX
_Static_assert(2 * GOS_HOME_MAX <= SLOT_COUNT, "chains are short");

struct slot {
    _Atomic uint32_t state;
    _Atomic uint64_t context;
    _Atomic uint64_t pool;
};

static struct slot slots[SLOT_COUNT];
static const struct gos_slot_table table = {slots, sizeof(slots[0]), SLOT_COUNT};
static _Atomic uint32_t in_use; /* written under the lock */
static _Atomic bool is_touched; /* some slot was used since the process began */
static struct gos_lock lock = GOS_LOCK_INIT(GOS_RANK_POOL);

/* What this thread interned last; valid for one generation, because homes end. */
static __thread struct {
    struct gos_home home;
    uint64_t generation;
    uint16_t index;
} last __attribute__((tls_model("initial-exec")));

#define LOAD(field) atomic_load_explicit(&(field), memory_order_relaxed)
#define STORE(field, value) atomic_store_explicit(&(field), (value), memory_order_relaxed)

static bool is_same(const struct gos_home *a, const struct gos_home *b)
{
    return a->context == b->context && a->pool == b->pool;
}

static bool matches(uint32_t at, const struct gos_home *home)
{
    return gos_slot_is_used(&table, at) && LOAD(slots[at].context) == home->context &&
           LOAD(slots[at].pool) == home->pool;
}

static uint32_t chain_start(const struct gos_home *home)
{
    uint64_t mixed = gos_table_mix(home->context);

    return (uint32_t)gos_table_mix(mixed ^ home->pool) % SLOT_COUNT;
}

static uint16_t find(const struct gos_home *home)
{
    uint32_t start = chain_start(home);
    uint32_t step = 0;
    uint32_t at;

    while (gos_slot_next(&table, start, &step, &at)) {
        if (matches(at, home))
            return (uint16_t)(at + 1);
    }
    return GOS_HOME_UNKNOWN;
}

static uint16_t publish(const struct gos_home *home)
{
    uint32_t at;

    if (LOAD(in_use) == GOS_HOME_MAX)
        return GOS_HOME_UNKNOWN;
    at = gos_slot_vacant(&table, chain_start(home));
    STORE(is_touched, true);
    STORE(in_use, LOAD(in_use) + 1);
    STORE(slots[at].context, home->context);
    STORE(slots[at].pool, home->pool);
    gos_slot_publish(&table, at);
    return (uint16_t)(at + 1);
}

static uint16_t add(const struct gos_home *home)
{
    uint16_t index;

    gos_lock_acquire(&lock);
    index = find(home);
    if (!index)
        index = publish(home);
    gos_lock_release(&lock);
    if (!index)
        gos_loss_count(GOS_LOSS_TABLE);
    return index;
}

/* The generation is read before the home is looked for: what ends in between is noticed. */
uint16_t gos_home_intern(const struct gos_home *home)
{
    uint64_t generation = gos_handle_generation();

    if (last.index && last.generation == generation && is_same(&last.home, home))
        return last.index;
    last.home = *home;
    last.generation = generation;
    last.index = find(home);
    if (!last.index)
        last.index = add(home);
    return last.index;
}

struct gos_home gos_home_get(uint16_t index)
{
    uint32_t at = index - 1u;

    if (!index || !gos_slot_is_used(&table, at))
        return (struct gos_home){0, 0};
    return (struct gos_home){LOAD(slots[at].context), LOAD(slots[at].pool)};
}

static void forget(const struct gos_home *home)
{
    uint16_t index;

    gos_lock_acquire(&lock);
    index = find(home);
    if (index) {
        gos_slot_give_up(&table, index - 1u);
        STORE(in_use, LOAD(in_use) - 1);
    }
    gos_lock_release(&lock);
    gos_handle_invalidate();
}

void gos_home_context_ended(uint64_t context)
{
    forget(&(struct gos_home){.context = context});
}

struct search {
    uint16_t index;
    bool found;
};

static void look_for(const struct gos_allocation *allocation, void *arg)
{
    struct search *search = arg;

    search->found |= allocation->home == search->index;
}

void gos_home_pool_ends(uint64_t pool)
{
    struct gos_home home = {.pool = pool};
    struct search search = {find(&home), false};

    if (!search.index)
        return;
    gos_registry_walk(look_for, &search);
    if (!search.found)
        forget(&home);
}

void gos_home_reset_after_fork(void)
{
    gos_lock_reset(&lock);
    if (LOAD(is_touched))
        gos_slot_reset_after_fork(&table);
    STORE(in_use, 0);
    last.index = 0;
}
