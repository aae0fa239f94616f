#include "number_table.h"

#include <stddef.h>

#include "../base/memory.h"

#define SLOTS_FIRST 1024u

uint32_t gos_number_table_next(const struct gos_number_table *table, uint32_t hash, uint32_t *step)
{
    uint64_t slot;

    if (!table->slot_count)
        return 0;
    do
        slot = table->slots[(hash + (*step)++) & (table->slot_count - 1)];
    while (slot && (uint32_t)(slot >> 32) != hash);
    return (uint32_t)slot;
}

static void put(struct gos_number_table *table, uint64_t filled)
{
    uint32_t at = (uint32_t)(filled >> 32) & (table->slot_count - 1);

    while (table->slots[at])
        at = (at + 1) & (table->slot_count - 1);
    table->slots[at] = filled;
}

static bool grow(struct gos_number_table *table)
{
    struct gos_number_table old = *table;
    uint32_t slot_count = old.slot_count ? old.slot_count * 2 : SLOTS_FIRST;
    uint64_t *slots = gos_memory_alloc(slot_count * sizeof *slots);

    if (!slots)
        return false;
    table->slots = slots;
    table->slot_count = slot_count;
    for (uint32_t i = 0; i < old.slot_count; i++)
        if (old.slots[i])
            put(table, old.slots[i]);
    gos_memory_free(old.slots, old.slot_count * sizeof *slots);
    return true;
}

/*
 * Without memory for a larger table the old one serves on, but not to the last
 * slot: who looks for what is not there would look through most of it each time.
 */
bool gos_number_table_has_room(struct gos_number_table *table)
{
    return table->used_count < table->slot_count / 3 * 2 || grow(table) ||
           table->used_count < table->slot_count / 8 * 7;
}

void gos_number_table_add(struct gos_number_table *table, uint32_t hash, uint32_t number)
{
    put(table, (uint64_t)hash << 32 | number);
    table->used_count++;
}
