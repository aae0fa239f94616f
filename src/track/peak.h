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
bool gos_peak_counts(enum gos_kind kind);

/* held_back belongs to the caller's shard, whose lock is held. */
void gos_peak_change(uint32_t device, int64_t *held_back, int64_t bytes);

void gos_peak_reset_after_fork(void);

#endif
