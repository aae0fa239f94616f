/* One step of recovery as it went: written by recover, shown by report. */
#ifndef GOS_DIAGNOSE_STEP_H
#define GOS_DIAGNOSE_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GOS_STEP_ASKED_MAX 8

struct gos_step_record {
    const char *step;   /* "reserve", "sync", "trim", "flush", "wait", "fallback" */
    const char *result; /* "helped", "no help", "skipped", "timed out", "stopped", "error" */
    const char *reason; /* why it was skipped, what went wrong, who was asked; "" none */
    uint64_t freed_bytes;
    uint64_t duration_ns;
    int cuda_result; /* of the retry after it; of the step itself where nothing was retried */
    /* sync, trim: all was waited for or trimmed that could be, so that this source is used up. */
    bool is_whole;
    /* flush: who answered, permanent names, as many as there is room for. */
    const char *asked[GOS_STEP_ASKED_MAX];
    size_t asked_count;
    const char *giver; /* flush: who gave back most, permanent; NULL: nobody */
    /* By the giver; by sync into a pool, which the device does not show; by wait without a context.
     */
    uint64_t given_bytes;
};
#define GOS_STEP_MAX 16

#endif
