/*
 * The 2 MiB blocks of one device that small allocations share, and how many
 * live in each.  Not locked: the owner's lock protects it.  Hook context: yes.
 */
#ifndef GOS_TRACK_BLOCK_COUNT_H
#define GOS_TRACK_BLOCK_COUNT_H

#include <stdbool.h>
#include <stdint.h>

struct gos_block;

struct gos_block_count {
    struct gos_block *blocks; /* by number: address / 2 MiB */
};

bool gos_block_count_has(const struct gos_block_count *count, uint64_t address);
/* One more lives at the address.  True: it is the first of its block. */
bool gos_block_count_add(struct gos_block_count *count, uint64_t address);
/* One less.  True: it was the last of its block. */
bool gos_block_count_drop(struct gos_block_count *count, uint64_t address);

void gos_block_count_reset_after_fork(struct gos_block_count *count);

#endif
