/*
 * Ring of recent notable events: failures of hooked calls (any code), steps of
 * recovery, contexts and pools that came and went.  Ordinary allocations are
 * not events; the registry knows them.  Hook context: yes.
 */
#ifndef GOS_TRACK_EVENT_H
#define GOS_TRACK_EVENT_H

#include <stddef.h>
#include <stdint.h>

#define GOS_EVENT_RING 256

struct gos_event {
    uint64_t wall_ns;
    const char *what; /* static text: an entry point, or "sync", "trim" */
    int result;       /* CUresult */
    int tid;
    int device;     /* ordinal or -1 */
    uint64_t bytes; /* asked for, or given back; 0 if it has no size */
};

void gos_event_add(const struct gos_event *event); /* wall_ns and tid are filled in */
/*
 * The newest `max`, oldest first; returns how many were copied.  *lost: how many
 * older ones there were.
 */
size_t gos_event_copy(struct gos_event *events, size_t max, uint64_t *lost);
void gos_event_reset_after_fork(void);

#endif
