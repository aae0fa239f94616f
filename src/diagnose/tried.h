/*
 * What the steps of recovery that did not help have left: which sources are
 * used up, and what came back all the same.
 */
#ifndef GOS_DIAGNOSE_TRIED_H
#define GOS_DIAGNOSE_TRIED_H

#include <stdbool.h>
#include <stdint.h>

#include "diagnosis.h"

struct gos_situation;

struct gos_tried {
    uint64_t returned_bytes; /* to the device, by all steps */
    uint64_t pooled_bytes;   /* of that, by sync and trim */
    uint64_t flushed_bytes;  /* of that, by flush */
    bool is_drained;         /* nothing is pending any more */
    bool is_trimmed;         /* what pools still have unused, they do not give back */
    bool trim_helped;        /* they did give it back */
};

/* Was it done, to no avail?  What was skipped, or never asked about, is not in vain. */
bool gos_step_was_in_vain(const struct gos_step_record *step);

void gos_tried_make(const struct gos_diagnosis *diagnosis, struct gos_tried *tried);

/* This library was asked to give back what it does not use, and answered. */
bool gos_tried_asked(const struct gos_diagnosis *diagnosis, const char *library);

/* What was tried, and what came of it, after the verdict's first line of evidence. */
void gos_tried_say(const struct gos_situation *situation, struct gos_verdict *verdict);

#endif
