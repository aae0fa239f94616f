/*
 * Objects that are opened more than once under one number, and closed as
 * often: memory of another process (cuIpcOpenMemHandle) and contexts
 * (cuCtxAttach).  The first opening makes the record, the last closing ends
 * it; here the openings beyond the first are counted.
 *
 * Hook context: yes; takes the table's lock.
 */
#ifndef GOS_TRACK_SHARES_H
#define GOS_TRACK_SHARES_H

#include <stdbool.h>
#include <stdint.h>

#include "../base/lock.h"

#define GOS_SHARES_MAX 512

struct gos_shares {
    struct gos_lock lock;
    uint32_t used; /* rows from here on were never used */
    struct gos_share {
        uint64_t number;
        uint64_t count; /* 0: free */
    } rows[GOS_SHARES_MAX];
};
#define GOS_SHARES_INIT                                                                            \
    {                                                                                              \
        .lock = GOS_LOCK_INIT(GOS_RANK_POOL)                                                       \
    }

/* Opened once more; with a full table counted as lost. */
void gos_shares_add(struct gos_shares *shares, uint64_t number);
/* One opening beyond the first is taken back: true.  False: there was only the first. */
bool gos_shares_drop(struct gos_shares *shares, uint64_t number);

#endif
