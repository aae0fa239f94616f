/*
 * The recovery ladder: what can honestly help, in a fixed order, each step at
 * most once for one failure, each only when the diagnosis says that it can
 * help.  After a step that could have helped the caller asks the driver again.
 * Two exceptions: flush comes before sync and trim where those would be too
 * little without it, and sync comes twice where less than it could drain seemed
 * enough and was not.
 *
 * The host's state stays: no context is synchronized as a whole, no current
 * context, last error or capture mode is changed.  Beside a capture nothing is
 * tried; one that begins during a step is not hurt, and the caller gets its error.
 *
 * Hook context, with gos_thread.depth raised by the caller.  Calls the driver;
 * may wait, within the budget.
 */
#ifndef GOS_RECOVER_LADDER_H
#define GOS_RECOVER_LADDER_H

#include <stdbool.h>
#include <stdint.h>

#include "../diagnose/diagnosis.h"
#include "../diagnose/step.h"

enum gos_step {
    GOS_STEP_RESERVE,
    GOS_STEP_SYNC,
    GOS_STEP_TRIM,
    GOS_STEP_FLUSH,
    GOS_STEP_WAIT,
    GOS_STEP_FALLBACK,
    GOS_STEP_COUNT
};

struct gos_ladder {
    const struct gos_diagnosis *diagnosis;
    uint64_t deadline_ns;   /* CLOCK_MONOTONIC */
    uint64_t sync_until_ns; /* before that, for the sake of the steps after it */
    uint64_t free_bytes;    /* of the device when the ladder was opened */
    uint32_t next;          /* how many steps have had their turn */
    bool closed;            /* the gate said no */
    bool flush_first;       /* before sync and trim, which would be too little without it */
    bool sync_left_some;    /* what was drained should do: the rest only if it does not */
    bool is_replaceable;    /* in: the call could return other memory, and its context is current */
    /* Out: the memory that serves the call in place of the driver's; 0: ask the driver again. */
    uint64_t substitute;
    enum gos_kind substitute_kind;
};

/*
 * The gate.  Always gives a usable ladder; when nothing may be tried at all it
 * is closed, without a call of the driver, and *reason says why in words for
 * the report, else NULL.  Of GPUOOMSHIM_RETRY_BUDGET, spent_ns have gone by already.
 */
void gos_ladder_open(struct gos_ladder *ladder, const struct gos_diagnosis *diagnosis,
                     uint64_t spent_ns, const char **reason);

/*
 * Run steps, appending a record for each to steps (room for GOS_STEP_MAX),
 * until one may have helped: true, retry now, or take the substitute.  False:
 * nothing is left.  A step that is opt-in and that nobody asked for leaves no
 * record.
 */
bool gos_ladder_climb(struct gos_ladder *ladder, struct gos_step_record *steps, uint32_t *count);

/* Time that this process has spent waiting for others, in all: no part of anybody's budget. */
uint64_t gos_ladder_waited_ns(void);

void gos_ladder_reset_after_fork(void);

#endif
