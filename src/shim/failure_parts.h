/* A failure as its two files know it: the call itself (failure.c), and after it (failure_kept.c).
 */
#ifndef GOS_SHIM_FAILURE_PARTS_H
#define GOS_SHIM_FAILURE_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "../cuda/relaxed.h"
#include "../recover/ladder.h"
#include "../report/report.h"
#include "failure.h"

/* From the first refusal of a call to its report, and on until its story ends. */
struct gos_failure {
    struct gos_evidence evidence;
    struct gos_diagnosis diagnosis;
    struct gos_ladder ladder;
    struct gos_report report;
    struct gos_relaxed relaxed; /* while the driver is asked again */
    uint32_t later;             /* frameworks to be asked when the call has returned */
    bool holds_turn;
    bool is_quiet;        /* its caller may survive it: a draft, and no line on stderr */
    bool was_told;        /* a line on stderr has told of its place already */
    bool is_mapped;       /* the diagnosis is of this evidence, apart from the request */
    bool lacks_lasting;   /* evidence of a moment alone: host, versions, environment are missing */
    uint64_t thorough_ns; /* when everything was looked at last (monotonic); 0: never */
};

/* Zeroed, with the evidence of now; request NULL: nothing failed.  NULL: no memory, no stack. */
struct gos_failure *gos_failure_open(const struct gos_request *request, unsigned parts);

/* Ask those frameworks that may be asked now; who is to be asked later goes into the failure. */
void gos_failure_look_at_frameworks(struct gos_failure *failure);

/* The call is over, the failure remains: to kept.h; who is to be asked later is asked now. */
void gos_failure_keep(struct gos_failure *failure, bool told);

/* The verdict as what was tried has left it. */
void gos_failure_learn_from_steps(struct gos_failure *failure, bool recovered);

/* The next failure of a story changes the report that there is, and has its draft.  NULL is fine.
 */
void gos_failure_inherit(struct gos_failure *failure, struct gos_failure *earlier);

/* What a moment's evidence lacks is added, and the verdict made. */
void gos_failure_complete(struct gos_failure *failure);

/* Write the report with that outcome; what cannot be written is counted. */
void gos_failure_write(struct gos_failure *failure, enum gos_outcome outcome);
/*
 * Put it down as a draft: a process that ends in whatever way leaves it behind.
 * False: it could not be, so that only words can tell of it.
 */
bool gos_failure_draft(struct gos_failure *failure);

#endif
