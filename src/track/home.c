#include "home.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "../base/lock.h"
#include "../base/loss.h"
#include "handle_map.h"
#include "registry.h"
#include "table.h"

/*
 * An open hash table, at most half full; a home's number is its slot's, counted
 * from 1.  Readers take no lock: a slot is published and withdrawn by its state.
 */
#define SLOT_COUNT UINT16_MAX
_Static_assert(2 * GOS_HOME_MAX <= SLOT_COUNT, "chains are short");

enum { NEVER_USED, GIVEN_UP, IN_USE };

struct slot {
    _Atomic uint32_t state;
    _Atomic uint64_t context;
    _Atomic uint64_t pool;
};

static struct slot slots[SLOT_COUNT]; /* pages that are not used cost nothing */
static _Atomic uint32_t in_use;       /* written under the lock */
static _Atomic bool is_touched;       /* some slot was used since the process began */
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

static uint32_t state_of(const struct slot *slot)
{
    return atomic_load_explicit(&slot->state, memory_order_acquire);
}

static bool matches(const struct slot *slot, const struct gos_home *home)
{
    return state_of(slot) == IN_USE && LOAD(slot->context) == home->context &&
           LOAD(slot->pool) == home->pool;
}

static uint32_t chain_start(const struct gos_home *home)
{
    uint64_t mixed = gos_table_mix(home->context);

    return (uint32_t)gos_table_mix(mixed ^ home->pool) % SLOT_COUNT;
}

static uint16_t find(const struct gos_home *home)
{
    uint32_t at = chain_start(home);

    for (uint32_t step = 0; step < SLOT_COUNT && state_of(&slots[at]) != NEVER_USED; step++) {
        if (matches(&slots[at], home))
            return (uint16_t)(at + 1);
        at = (at + 1) % SLOT_COUNT;
    }
    return GOS_HOME_UNKNOWN;
}

static uint16_t publish(const struct gos_home *home)
{
    uint32_t at = chain_start(home);

    if (LOAD(in_use) == GOS_HOME_MAX)
        return GOS_HOME_UNKNOWN;
    while (state_of(&slots[at]) == IN_USE)
        at = (at + 1) % SLOT_COUNT;
    STORE(is_touched, true);
    STORE(in_use, LOAD(in_use) + 1);
    STORE(slots[at].context, home->context);
    STORE(slots[at].pool, home->pool);
    atomic_store_explicit(&slots[at].state, IN_USE, memory_order_release);
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
    const struct slot *slot = index ? &slots[index - 1] : NULL;

    if (!slot || state_of(slot) != IN_USE)
        return (struct gos_home){0, 0};
    return (struct gos_home){LOAD(slot->context), LOAD(slot->pool)};
}

/*
 * Behind a slot that was never used no chain goes on, so slots that were given
 * up right before one can be as if never used; chains stay short that way.
 */
static void shorten_chains(uint32_t at)
{
    while (LOAD(slots[(at + 1) % SLOT_COUNT].state) == NEVER_USED &&
           LOAD(slots[at].state) == GIVEN_UP) {
        STORE(slots[at].state, NEVER_USED);
        at = (at + SLOT_COUNT - 1) % SLOT_COUNT;
    }
}

static void forget(const struct gos_home *home)
{
    uint16_t index;

    gos_lock_acquire(&lock);
    index = find(home);
    if (index) {
        atomic_store_explicit(&slots[index - 1].state, GIVEN_UP, memory_order_release);
        shorten_chains((uint32_t)index - 1);
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
    for (uint32_t i = 0; LOAD(is_touched) && i < SLOT_COUNT; i++) {
        if (LOAD(slots[i].state) != NEVER_USED)
            STORE(slots[i].state, NEVER_USED);
    }
    STORE(in_use, 0);
    last.index = 0;
}
