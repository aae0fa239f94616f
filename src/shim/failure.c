#include "failure.h"

#include <errno.h>

#include "../base/log.h"
#include "../base/loss.h"
#include "../base/memory.h"
#include "../base/options.h"
#include "../base/os.h"
#include "../base/thread.h"
#include "../cuda/error.h"
#include "../cuda/relaxed.h"
#include "../diagnose/revise.h"
#include "../diagnose/saturate.h"
#include "../observe/fallbacks.h"
#include "../observe/frameworks.h"
#include "../observe/observe.h"
#include "../recover/ladder.h"
#include "../report/report.h"
#include "../track/event.h"
#include "../track/pool.h"
#include "../track/registry.h"
#include "../track/unwind.h"
#include "failure_parts.h"
#include "framework_view.h"
#include "kept.h"
#include "notice.h"
#include "origin.h"
#include "other_error.h"
#include "place.h"
#include "story.h"
#include "turn.h"
#include "watched_need.h"

static bool is_host_kind(enum gos_kind kind)
{
    return kind == GOS_KIND_HOST || kind == GOS_KIND_REGISTERED;
}

static int device_asked(const struct gos_call *call, const struct gos_place *place)
{
    if (is_host_kind((enum gos_kind)call->kind) || call->device == GOS_DEVICE_HOST)
        return -1;
    if (call->device >= 0)
        return call->device;
    return place->device < GOS_DEVICE_MAX ? (int)place->device : -1;
}

static enum gos_capture_state capture_state(const struct gos_call *call, bool may_ask)
{
    bool includes;

    if (gos_capture_count() == 0)
        return GOS_CAPTURE_NONE;
    includes = may_ask ? gos_capture_includes(call->stream, call->per_thread)
                       : gos_capture_has(call->stream);
    return includes ? GOS_CAPTURE_THIS_STREAM : GOS_CAPTURE_ELSEWHERE;
}

static struct gos_place place_of(const struct gos_call *call, bool may_ask)
{
    if (!may_ask)
        return (struct gos_place){.device = GOS_DEVICE_HOST, .home = GOS_HOME_UNKNOWN};
    return call->kind == GOS_KIND_POOL ? *gos_place_of_stream(call->stream, call->pool)
                                       : *gos_place_of_context();
}

static struct gos_need need_of(const struct gos_call *call, CUresult result, int device)
{
    bool is_known = call->kind == GOS_KIND_NONE && call->watched &&
                    result == CUDA_ERROR_OUT_OF_MEMORY && !gos_observe_forbids_driver((int)result);

    return is_known ? gos_need_of(call->watched, device) : (struct gos_need){.what = NULL};
}

static struct gos_request describe(const struct gos_call *call, CUresult result)
{
    const char *entry = gos_entrypoint_name((enum gos_entrypoint)call->entry);
    bool may_ask = !gos_observe_forbids_driver((int)result);
    struct gos_place place = place_of(call, may_ask);
    int device = device_asked(call, &place);
    uint32_t site = gos_unwind_site();

    struct gos_request request = {
        .api = gos_thread.api ? gos_thread.api : entry,
        .entry = entry,
        .kind = (enum gos_kind)call->kind,
        .bytes_known = call->kind != GOS_KIND_NONE,
        .bytes = call->bytes,
        .device = device,
        .result = (int)result,
        .stream = call->stream,
        .pool = call->kind == GOS_KIND_POOL ? gos_home_get(place.home).pool : 0,
        .capture = capture_state(call, may_ask),
        .tid = gos_os.tid(),
        .site = site,
        .requester_module = gos_site_requester_module(gos_site_get(site)),
        .wall_ns = gos_os.wall_ns(),
        .monotonic_ns = gos_os.monotonic_ns(),
        .attempts = 1,
        .need = need_of(call, result, device),
        .refusal = call->rehearsed ? gos_rehearsal_refusal() : GOS_REFUSAL_NONE,
    };
    request.origin = gos_origin_of(&request);
    return request;
}

static void note(const struct gos_request *request)
{
    gos_event_add(&(struct gos_event){.what = request->entry,
                                      .result = request->result,
                                      .device = request->device,
                                      .bytes = request->bytes});
}

/* Other memory is made in the current context, and so has to be wanted there. */
static bool is_replaceable(const struct gos_call *call)
{
    struct gos_place current = *gos_place_of_context();
    struct gos_place place = place_of(call, true);

    return call->replaceable && place.context == current.context && place.device == current.device;
}

static void open_ladder(struct gos_failure *failure, const struct gos_call *call)
{
    const char *reason;

    gos_ladder_open(&failure->ladder, &failure->diagnosis, gos_turn_spent_ns(), &reason);
    failure->ladder.is_replaceable = !reason && is_replaceable(call);
    if (!reason && failure->evidence.request.refusal == GOS_REFUSAL_INJECTED &&
        !gos_options.inject.recover)
        reason = "the failure was injected, without recover=1";
    if (!reason && !failure->holds_turn)
        reason = gos_turn_refusal();
    failure->ladder.closed = reason != NULL;
    if (reason)
        failure->report.steps[failure->report.step_count++] =
            (struct gos_step_record){.step = "recovery", .result = "skipped", .reason = reason};
}

/* A snapshot of torch's lies beside the report and bears its name, so that comes first. */
void gos_failure_look_at_frameworks(struct gos_failure *failure)
{
    struct gos_evidence *evidence = &failure->evidence;
    bool named = failure->report.kind == GOS_REPORT_FAILURE && gos_options.torch_snapshot;

    if (named)
        gos_failure_write(failure, GOS_OUTCOME_FAILED);
    failure->later = gos_view_take(evidence, &failure->report);
    if (evidence->framework_count)
        gos_diagnose(evidence, &failure->diagnosis);
}

/* The retry was not the host's to time: no capture that begins meanwhile may suffer from it. */
static bool climb(struct gos_call *call, struct gos_failure *failure)
{
    struct gos_ladder *ladder = &failure->ladder;
    gos_relaxed_end(&failure->relaxed);
    bool again = gos_ladder_climb(ladder, failure->report.steps, &failure->report.step_count);
    if (again && ladder->substitute) {
        call->substitute = ladder->substitute;
        call->kind = (uint8_t)ladder->substitute_kind;
    }
    if (again)
        gos_relaxed_begin(&failure->relaxed);
    return again;
}

/*
 * The evidence is put down before anything is tried: a kill in a step loses
 * nothing.  What the caller has survived before may cost it only little.
 */
static bool look_into(struct gos_call *call, const struct gos_request *request, bool has_turn,
                      enum gos_story_answer answer)
{
    bool is_cheap = answer == GOS_STORY_QUIET;
    struct gos_failure *failure =
        gos_failure_open(request, is_cheap ? GOS_OBSERVE_MOMENT : GOS_OBSERVE_ALL);

    if (!failure) {
        if (has_turn)
            gos_turn_pass();
        return false;
    }
    failure->was_told = gos_kept_told_ns(gos_story_number()) != 0;
    gos_failure_inherit(failure, gos_kept_take(gos_story_number()));
    gos_diagnose(&failure->evidence, &failure->diagnosis);
    failure->holds_turn = has_turn;
    failure->is_quiet = answer != GOS_STORY_SURFACES;
    call->failure = failure;
    gos_failure_look_at_frameworks(failure);
    open_ladder(failure, call);
    if (!failure->ladder.closed)
        (void)gos_failure_draft(failure);
    return climb(call, failure);
}

void gos_failure_keep(struct gos_failure *failure, bool told)
{
    uint32_t later = failure->later;
    struct gos_request request = failure->evidence.request;
    uint64_t ticket = gos_kept_put(gos_story_number(), failure, &request, told);

    if (!ticket)
        return;
    if (later && told)
        gos_view_take_later(&failure->evidence, &failure->report, later, ticket);
    gos_kept_give_back(ticket);
}

/*
 * Not about memory: nothing is tried and no framework is asked, so that no turn
 * is waited for either, and the stories of failures are as if it had not been.
 */
static void tell_other(const struct gos_call *call, const struct gos_request *request)
{
    struct gos_failure *failure = NULL;

    if (gos_other_error_is_first(request))
        failure = gos_failure_open(request, GOS_OBSERVE_ALL);
    if (!failure)
        return;
    gos_diagnose(&failure->evidence, &failure->diagnosis);
    open_ladder(failure, call);
    gos_failure_write(failure, GOS_OUTCOME_FAILED);
    gos_notice(&failure->report, false);
    gos_failure_free(failure);
}

static bool is_about_memory(CUresult result)
{
    return result == CUDA_ERROR_OUT_OF_MEMORY && !gos_other_error_is_forked();
}

static bool first_failure(struct gos_call *call, CUresult result)
{
    struct gos_request request = describe(call, result);
    enum gos_story_answer answer = GOS_STORY_SURFACES;

    note(&request);
    if (gos_thread.is_helper)
        return false;
    if (!is_about_memory(result)) {
        if (gos_other_error_is_telling((enum gos_kind)call->kind, (int)result))
            tell_other(call, &request);
        return false;
    }
    if (!call->shared)
        answer = gos_story_refused(&request);
    if (answer == GOS_STORY_PUT_OFF || answer == GOS_STORY_AGAIN)
        return false;
    bool has_turn = gos_turn_take(call->shared);
    if (!has_turn || !gos_turn_is_told(&request, call->shared))
        return look_into(call, &request, has_turn, answer);
    call->shared = gos_turn_pass();
    if (!call->shared && request.origin)
        gos_kept_note(gos_story_number(), &request);
    return call->shared;
}

bool gos_failure_handle(struct gos_call *call, CUresult result)
{
    bool again;

    if (!call->failure) {
        again = first_failure(call, result);
    } else {
        struct gos_report *report = &call->failure->report;
        report->steps[report->step_count - 1].cuda_result = (int)result;
        call->failure->evidence.request.attempts++;
        again = result == CUDA_ERROR_OUT_OF_MEMORY && climb(call, call->failure);
    }
    if (!again && call->failure) {
        gos_failure_close(call->failure, result);
        call->failure = NULL;
    }
    return again;
}

/* What came back into a pool the device does not show, but the driver took it from there. */
static void mark_last_step(struct gos_failure *failure)
{
    struct gos_report *report = &failure->report;
    struct gos_step_record *last =
        report->step_count ? &report->steps[report->step_count - 1] : NULL;

    if (!last)
        return;
    last->result = "helped";
    last->cuda_result = CUDA_SUCCESS;
    last->freed_bytes = gos_greater(last->freed_bytes, last->given_bytes);
    if (!last->freed_bytes && !failure->ladder.substitute) /* the host's, or taken at once */
        last->freed_bytes = failure->diagnosis.verdict.short_bytes
                                ? failure->diagnosis.verdict.short_bytes
                                : failure->evidence.request.bytes;
}

void gos_failure_learn_from_steps(struct gos_failure *failure, bool recovered)
{
    gos_diagnose_revise(&failure->evidence, &failure->diagnosis, failure->report.steps,
                        failure->report.step_count, recovered);
}

/* The turn goes last: the next thread that failed at the same place finds this failure kept. */
static void end_story(struct gos_failure *failure, bool recovered)
{
    struct gos_request request = failure->evidence.request;
    bool holds_turn = failure->holds_turn;

    gos_story_told();
    if (recovered) {
        gos_story_recovered();
        gos_failure_free(failure);
    } else {
        gos_failure_keep(failure, !failure->is_quiet);
    }
    if (holds_turn)
        gos_turn_end(&request, recovered);
}

void gos_failure_close(struct gos_failure *failure, CUresult result)
{
    bool recovered = result == CUDA_SUCCESS;

    gos_relaxed_end(&failure->relaxed);
    if (recovered)
        mark_last_step(failure);
    gos_failure_learn_from_steps(failure, recovered);
    if (failure->ladder.substitute)
        gos_fallbacks_observe(&failure->evidence);
    if (!recovered)
        gos_view_announce(&failure->evidence, failure->later);
    if (recovered) {
        gos_report_disown(&failure->report); /* what was refused there before stays told */
        gos_failure_write(failure, GOS_OUTCOME_RECOVERED);
    } else if (!failure->is_quiet || !gos_failure_draft(failure)) {
        failure->is_quiet = false;
        gos_failure_write(failure, GOS_OUTCOME_FAILED);
    }
    if (recovered || !(failure->is_quiet || failure->was_told))
        gos_notice(&failure->report, failure->ladder.substitute != 0);
    end_story(failure, recovered);
}
