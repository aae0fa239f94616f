/*
 * The highest memory use of each device, kept in stripes: a shard tells the
 * shared sum only when it holds back more than it may, so that threads on
 * different shards seldom write the same line.
 *
 * What a shard holds back is never negative.  So the sum is never above the
 * truth, and below it by less than GOS_PEAK_HELD_BYTES per shard.
 */
#ifndef GOS_TRACK_PEAK_H
#define GOS_TRACK_PEAK_H

#include "registry.h"

#define GOS_PEAK_HELD_BYTES (INT64_C(4) << 20)

/* Kinds that occupy a device: on its books, or stream-ordered, or managed. */
#define GOS_PEAK_BIT(name, code, words, books, shares)                                             \
    ((uint32_t)((books) || GOS_KIND_##name == GOS_KIND_POOL ||                                     \
                GOS_KIND_##name == GOS_KIND_MANAGED)                                               \
     << GOS_KIND_##name) |
static inline bool gos_peak_counts(enum gos_kind kind)
{
    return (GOS_KINDS(GOS_PEAK_BIT) 0u) >> kind & 1u;
}
_Static_assert((int)GOS_KIND_COUNT <= 32, "a kind is a bit of a word");

/* Tells what is held back, but for half of what may be. */
void gos_peak_tell(uint32_t device, int64_t *held_back);

/* held_back belongs to the caller's shard, whose lock is held. */
static inline void gos_peak_change(uint32_t device, int64_t *held_back, int64_t bytes)
{
    *held_back += bytes;
    if (__builtin_expect((uint64_t)*held_back >= (uint64_t)GOS_PEAK_HELD_BYTES, 0))
        gos_peak_tell(device, held_back);
}

void gos_peak_reset_after_fork(void);

#endif
