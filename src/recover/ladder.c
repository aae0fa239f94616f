#include "ladder.h"

#include <stdatomic.h>
#include <stddef.h>

#include "../base/options.h"
#include "../base/os.h"
#include "../cuda/driver.h"
#include "../cuda/relaxed.h"
#include "../diagnose/saturate.h"
#include "../track/event.h"
#include "../track/pool.h"
#include "reserve.h"
#include "step_fallback.h"
#include "step_flush.h"
#include "step_reserve.h"
#include "step_sync.h"
#include "step_trim.h"
#include "step_wait.h"

static const struct {
    const char *name;
    uint32_t option;            /* bit of GPUOOMSHIM_RETRY */
    bool (*is_asked_for)(void); /* NULL: not opt-in */
    bool (*may_help)(const struct gos_ladder *, const char **why_not);
    bool (*run)(struct gos_ladder *, struct gos_step_record *);
} rungs[GOS_STEP_COUNT] = {
    [GOS_STEP_RESERVE] = {"reserve", GOS_RETRY_RESERVE, gos_step_reserve_is_asked_for,
                          gos_step_reserve_may_help, gos_step_reserve_run},
    [GOS_STEP_SYNC] = {"sync", GOS_RETRY_SYNC, NULL, gos_step_sync_may_help, gos_step_sync_run},
    [GOS_STEP_TRIM] = {"trim", GOS_RETRY_TRIM, NULL, gos_step_trim_may_help, gos_step_trim_run},
    [GOS_STEP_FLUSH] = {"flush", GOS_RETRY_FLUSH, NULL, gos_step_flush_may_help,
                        gos_step_flush_run},
    [GOS_STEP_WAIT] = {"wait", GOS_RETRY_WAIT, gos_step_wait_is_asked_for, gos_step_wait_may_help,
                       gos_step_wait_run},
    [GOS_STEP_FALLBACK] = {"fallback", GOS_RETRY_FALLBACK, gos_step_fallback_is_asked_for,
                           gos_step_fallback_may_help, gos_step_fallback_run},
};

static const char being_captured[] = "a stream of this process is being captured";

/* Why nothing may be tried, or NULL. */
static const char *forbidden(const struct gos_evidence *evidence, const struct gos_verdict *verdict)
{
    const struct gos_request *request = &evidence->request;

    if (request->result != CUDA_ERROR_OUT_OF_MEMORY)
        return "the error is not out-of-memory";
    if (evidence->initialised_pid != evidence->pid)
        return "the process was forked after CUDA was initialised";
    if (gos_capture_count() > 0)
        return being_captured;
    if (request->device < 0 && request->kind != GOS_KIND_HOST)
        return "the request is not for a device's memory";
    if (verdict->code == GOS_VERDICT_REQUEST_TOO_LARGE)
        return "no amount of freed memory could serve this size";
    return NULL;
}

static bool is_opted_in(enum gos_step step)
{
    return rungs[step].is_asked_for && rungs[step].is_asked_for();
}

/* Why a step is not taken, or NULL. */
static const char *refusal(const struct gos_ladder *ladder, enum gos_step step)
{
    const char *why_not = NULL;

    if (!(gos_options.retry & rungs[step].option) && !(gos_options.retry && is_opted_in(step)))
        return "not in GPUOOMSHIM_RETRY";
    if (rungs[step].is_asked_for && !is_opted_in(step))
        return "its own setting is not given";
    if (ladder->diagnosis->device < 0 && step != GOS_STEP_FLUSH)
        return "the request is for the host's memory";
    if (gos_capture_count() > 0)
        return being_captured;
    if (step != GOS_STEP_WAIT && gos_os.monotonic_ns() >= ladder->deadline_ns)
        return "GPUOOMSHIM_RETRY_BUDGET is used up";
    return rungs[step].may_help(ladder, &why_not) ? NULL : why_not;
}

static bool is_flush_first(const struct gos_ladder *ladder)
{
    return ladder->diagnosis->device >= 0 && gos_step_sync_is_too_little(ladder) &&
           !refusal(ladder, GOS_STEP_SYNC) && !refusal(ladder, GOS_STEP_FLUSH);
}

void gos_ladder_open(struct gos_ladder *ladder, const struct gos_diagnosis *diagnosis,
                     uint64_t spent_ns, const char **reason)
{
    *reason = forbidden(diagnosis->evidence, &diagnosis->verdict);
    *ladder = (struct gos_ladder){
        .diagnosis = diagnosis,
        .deadline_ns = gos_os.monotonic_ns() + gos_beyond(gos_options.retry_budget, spent_ns),
        .free_bytes = *reason ? 0 : gos_driver_free_bytes(), /* a forked child must not ask */
        .closed = *reason != NULL,
    };
    ladder->flush_first = !*reason && is_flush_first(ladder);
}

/* Work that never ends must not take the time of what may still help. */
static uint64_t sync_until(const struct gos_ladder *ladder)
{
    uint64_t half_ns = gos_beyond(ladder->deadline_ns, gos_os.monotonic_ns()) / 2;

    if ((ladder->flush_first || refusal(ladder, GOS_STEP_FLUSH)) &&
        refusal(ladder, GOS_STEP_FALLBACK))
        return ladder->deadline_ns;
    return ladder->deadline_ns - gos_lesser(half_ns, gos_options.flush_budget);
}

static _Atomic uint64_t waited_ns;

uint64_t gos_ladder_waited_ns(void)
{
    return atomic_load(&waited_ns);
}

/* True when it ran and a retry makes sense. */
static bool run(struct gos_ladder *ladder, enum gos_step step, struct gos_step_record *record)
{
    struct gos_relaxed relaxed;

    gos_relaxed_begin(&relaxed);
    if (step == GOS_STEP_SYNC)
        ladder->sync_until_ns = sync_until(ladder);
    uint64_t started_ns = gos_os.monotonic_ns();
    uint64_t before_bytes = gos_driver_free_bytes();
    bool retry = rungs[step].run(ladder, record);
    uint64_t after_bytes = gos_driver_free_bytes();
    gos_relaxed_end(&relaxed);

    record->freed_bytes = gos_beyond(after_bytes, before_bytes);
    record->duration_ns = gos_os.monotonic_ns() - started_ns;
    if (step == GOS_STEP_WAIT) { /* which has a budget of its own */
        ladder->deadline_ns += record->duration_ns;
        atomic_fetch_add(&waited_ns, record->duration_ns);
    }
    gos_event_add(&(struct gos_event){.what = rungs[step].name,
                                      .result = record->cuda_result,
                                      .device = ladder->diagnosis->device,
                                      .bytes = record->freed_bytes});
    return retry;
}

/* Nobody has heard of it: neither its own setting nor GPUOOMSHIM_RETRY names it. */
static bool is_unasked(enum gos_step step)
{
    return rungs[step].is_asked_for && !is_opted_in(step) &&
           !(gos_options.retry & rungs[step].option);
}

/* A capture that began during the step must not suffer from what the host asked before it. */
static bool may_retry(const struct gos_ladder *ladder, struct gos_step_record *record)
{
    if (ladder->substitute || gos_capture_count() == 0)
        return true;
    record->result = "stopped";
    record->is_whole = false;
    record->reason = "a capture began meanwhile, so the driver was not asked again";
    return false;
}

static enum gos_step step_at(const struct gos_ladder *ladder, uint32_t position)
{
    static const enum gos_step flush_first[GOS_STEP_COUNT] = {
        GOS_STEP_RESERVE, GOS_STEP_FLUSH, GOS_STEP_SYNC,
        GOS_STEP_TRIM,    GOS_STEP_WAIT,  GOS_STEP_FALLBACK,
    };

    return ladder->flush_first ? flush_first[position] : (enum gos_step)position;
}

bool gos_ladder_climb(struct gos_ladder *ladder, struct gos_step_record *steps, uint32_t *count)
{
    while (!ladder->closed && ladder->next < GOS_STEP_COUNT && *count < GOS_STEP_MAX) {
        enum gos_step step = step_at(ladder, ladder->next++);

        if (is_unasked(step))
            continue;
        struct gos_step_record *record = &steps[(*count)++];
        *record = (struct gos_step_record){
            .step = rungs[step].name, .result = "skipped", .reason = refusal(ladder, step)};
        if (record->reason)
            continue;
        record->reason = "";
        bool retry = run(ladder, step, record) && may_retry(ladder, record);
        if (step == GOS_STEP_SYNC && ladder->sync_left_some)
            ladder->next--;
        if (retry)
            return true;
    }
    return false;
}

void gos_ladder_reset_after_fork(void)
{
    gos_step_flush_reset_after_fork();
    gos_step_wait_reset_after_fork();
    gos_reserve_reset_after_fork();
}
