/*
 * From a hash of something's contents to the small number that it was given.
 * The contents are elsewhere, and the caller compares them.
 *
 * All zero is empty.  Not locked: the owner's lock protects it.  Hook context: yes.
 */
#ifndef GOS_TRACK_NUMBER_TABLE_H
#define GOS_TRACK_NUMBER_TABLE_H

#include <stdbool.h>
#include <stdint.h>

struct gos_number_table {
    uint64_t *slots;     /* hash and number in one word, so that a look is one cache miss */
    uint32_t slot_count; /* a power of two, or 0 */
    uint32_t used_count;
};

/* The numbers under that hash, one a call, then 0; *step counts from 0. */
uint32_t gos_number_table_next(const struct gos_number_table *table, uint32_t hash, uint32_t *step);

/* Room for one more?  False when memory is short. */
bool gos_number_table_has_room(struct gos_number_table *table);
/* There is room. */
void gos_number_table_add(struct gos_number_table *table, uint32_t hash, uint32_t number);

#endif
