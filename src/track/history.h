/*
 * What each site held over the run: its live device memory, sampled on a clock
 * of allocations.
 *
 * The clock is looked at by a thread that has used up its numbers of birth
 * (birth.h): at each of the process's first allocations, later at every 32nd of
 * a thread.  When a sample is due, one thread takes it and nobody waits for it.
 *
 * At most GOS_HISTORY_SAMPLES are kept.  When they are full every other one is
 * dropped and the distance doubles, so that a run of any length has 16 to 32 of
 * them, which a doubling of its length costs 16 walks.  Each distance is drawn
 * at random between a half and one and a half of its mean: a program that
 * repeats itself would else be met at a phase that slowly drifts, which looks
 * like growth.
 *
 * Cost: a walk visits each live record under its shard's lock, on the thread
 * that allocated: 15 to 40 ns a record, so 25 to 40 ms for a million.  Beyond the
 * first GOS_HISTORY_GRANT visits of a process, a few milliseconds in all, walks
 * wait until they have taken no more than about 1 % of the time since the
 * registry's start.  A program that fills up with small allocations at full speed
 * then has samples ever further apart, which look like steps (diagnose/trend.h):
 * its growth is not recognised, and nobody is accused.
 */
#ifndef GOS_TRACK_HISTORY_H
#define GOS_TRACK_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/thread.h"
#include "registry.h"

#define GOS_HISTORY_SAMPLES 32
/* Sites, each on one device; when more hold memory that is counted once a sample (loss.h). */
#define GOS_HISTORY_SITES 4096
#define GOS_HISTORY_GRANT (UINT64_C(1) << 18)

struct gos_moment {
    uint64_t allocated_count; /* of all memory, since the start */
    uint64_t freed_count;
    uint32_t age_ms; /* on the clock of born_ms */
};

/* Take a sample if one is due.  Hook context: yes; hold no lock of rank history or above. */
void gos_history_look(void);

/* After each allocation that was recorded. */
static inline void gos_history_tick(void)
{
    if (__builtin_expect(gos_thread.sequence_next == gos_thread.sequence_end, 0))
        gos_history_look();
}

/* Does memory of this kind count?  What takes room on a device. */
bool gos_history_counts(enum gos_kind kind);

/*
 * One site's live bytes on one device, in whole KiB up to 4 TiB; site 0: all
 * that is live there, with a stack or without.  Of a site whose allocations
 * have a stack only now and then (sample.h) they are estimates.
 */
struct gos_history_series {
    uint32_t site;
    uint32_t device;
    uint32_t live_kib[GOS_HISTORY_SAMPLES];
};

/*
 * The samples so far, oldest first: their moments, and the live bytes of each
 * of the series whose site and device the caller has filled in (zeroes where it
 * held nothing).  Returns their number.  Hook context: yes; may wait for a walk.
 */
uint32_t gos_history_copy(struct gos_moment moments[GOS_HISTORY_SAMPLES],
                          struct gos_history_series *series, size_t count);

void gos_history_reset_after_fork(void);

#endif
