#include "slot_table.h"

static uint32_t state_of(const struct gos_slot_table *table, uint32_t at)
{
    return atomic_load_explicit(gos_slot_state(table, at), memory_order_relaxed);
}

static void set_state(const struct gos_slot_table *table, uint32_t at, uint32_t state)
{
    atomic_store_explicit(gos_slot_state(table, at), state, memory_order_release);
}

bool gos_slot_next(const struct gos_slot_table *table, uint32_t start, uint32_t *step, uint32_t *at)
{
    *at = (start + *step) % table->slot_count;
    if (*step == table->slot_count ||
        atomic_load_explicit(gos_slot_state(table, *at), memory_order_acquire) ==
            GOS_SLOT_NEVER_USED)
        return false;
    ++*step;
    return true;
}

uint32_t gos_slot_vacant(const struct gos_slot_table *table, uint32_t start)
{
    uint32_t at = start;

    while (gos_slot_is_used(table, at))
        at = (at + 1) % table->slot_count;
    return at;
}

void gos_slot_publish(const struct gos_slot_table *table, uint32_t at)
{
    set_state(table, at, GOS_SLOT_IN_USE);
}

/*
 * Behind a slot that was never used no chain goes on, so slots that were given
 * up right before one can be as if never used; chains stay short that way.
 */
static void shorten_chains(const struct gos_slot_table *table, uint32_t at)
{
    while (state_of(table, (at + 1) % table->slot_count) == GOS_SLOT_NEVER_USED &&
           state_of(table, at) == GOS_SLOT_GIVEN_UP) {
        set_state(table, at, GOS_SLOT_NEVER_USED);
        at = (at + table->slot_count - 1) % table->slot_count;
    }
}

void gos_slot_give_up(const struct gos_slot_table *table, uint32_t at)
{
    set_state(table, at, GOS_SLOT_GIVEN_UP);
    shorten_chains(table, at);
}

void gos_slot_reset_after_fork(const struct gos_slot_table *table)
{
    for (uint32_t at = 0; at < table->slot_count; at++) {
        if (state_of(table, at) != GOS_SLOT_NEVER_USED)
            set_state(table, at, GOS_SLOT_NEVER_USED);
    }
}
