/*
 * Open hash tables whose readers take no lock: a slot is published and withdrawn
 * by its state, with which it begins.  Writers hold the owner's lock, and keep
 * some slots free.  Hook context: yes.
 */
#ifndef GOS_TRACK_SLOT_TABLE_H
#define GOS_TRACK_SLOT_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GOS_SLOT_NEVER_USED, GOS_SLOT_GIVEN_UP, GOS_SLOT_IN_USE };

struct gos_slot_table {
    void *slots; /* all zero is empty; pages that are not used cost nothing */
    size_t slot_bytes;
    uint32_t slot_count;
};

static inline _Atomic uint32_t *gos_slot_state(const struct gos_slot_table *table, uint32_t at)
{
    return (_Atomic uint32_t *)(void *)((char *)table->slots + at * table->slot_bytes);
}

static inline bool gos_slot_is_used(const struct gos_slot_table *table, uint32_t at)
{
    return atomic_load_explicit(gos_slot_state(table, at), memory_order_acquire) == GOS_SLOT_IN_USE;
}

/* Is there one more in the chain that begins at `start`?  *step counts from 0; then *at is it. */
bool gos_slot_next(const struct gos_slot_table *table, uint32_t start, uint32_t *step,
                   uint32_t *at);

/* The first of a chain that is free. */
uint32_t gos_slot_vacant(const struct gos_slot_table *table, uint32_t start);
/* It has been filled. */
void gos_slot_publish(const struct gos_slot_table *table, uint32_t at);
void gos_slot_give_up(const struct gos_slot_table *table, uint32_t at);

void gos_slot_reset_after_fork(const struct gos_slot_table *table);

#endif
