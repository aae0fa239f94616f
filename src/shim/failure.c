#include "failure.h"

#include <errno.h>
#include <string.h>

#include "../base/log.h"
#include "../base/loss.h"
#include "../base/memory.h"
#include "../base/options.h"
#include "../base/os.h"
#include "../base/thread.h"
#include "../cuda/error.h"
#include "../cuda/relaxed.h"
#include "../diagnose/flushed.h"
#include "../observe/fallbacks.h"
#include "../observe/frameworks.h"
#include "../observe/observe.h"
#include "../recover/ladder.h"
#include "../report/report.h"
#include "../track/event.h"
#include "../track/pool.h"
#include "../track/registry.h"
#include "../track/unwind.h"
#include "deferred.h"
#include "episode.h"
#include "framework_view.h"
#include "moment.h"
#include "notice.h"
#include "place.h"
#include "stack_room.h"
#include "turn.h"

/* From the first failure of a call to its report, and on until its episode ends. */
struct gos_failure {
    struct gos_evidence evidence;
    struct gos_diagnosis diagnosis;
    struct gos_ladder ladder;
    struct gos_report report;
    struct gos_relaxed relaxed; /* while the driver is asked again */
    uint32_t later;             /* frameworks to be asked when the call has returned */
    bool holds_turn;
};

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

static enum gos_capture_state capture_state(const struct gos_call *call)
{
    if (gos_capture_count() == 0)
        return GOS_CAPTURE_NONE;
    return gos_capture_includes(call->stream, call->per_thread) ? GOS_CAPTURE_THIS_STREAM
                                                                : GOS_CAPTURE_ELSEWHERE;
}

static struct gos_request describe(const struct gos_call *call, CUresult result)
{
    const char *entry = gos_entrypoint_name((enum gos_entrypoint)call->entry);
    struct gos_place place = *gos_place_of_context();
    uint32_t site = gos_unwind_site();

    if (call->kind == GOS_KIND_POOL)
        place = *gos_place_of_stream(call->stream, call->pool);
    return (struct gos_request){
        .api = gos_thread.api ? gos_thread.api : entry,
        .entry = entry,
        .kind = (enum gos_kind)call->kind,
        .bytes_known = call->kind != GOS_KIND_NONE,
        .bytes = call->bytes,
        .device = device_asked(call, &place),
        .result = (int)result,
        .stream = call->stream,
        .pool = call->kind == GOS_KIND_POOL ? gos_home_get(place.home).pool : 0,
        .capture = capture_state(call),
        .tid = gos_os.tid(),
        .site = site,
        .requester_module = gos_site_requester_module(gos_site_get(site)),
        .wall_ns = gos_os.wall_ns(),
        .monotonic_ns = gos_os.monotonic_ns(),
        .attempts = 1,
        .refusal = call->rehearsed ? gos_rehearsal_refusal() : GOS_REFUSAL_NONE,
    };
}

static void note(const struct gos_request *request)
{
    gos_event_add(&(struct gos_event){.what = request->entry,
                                      .result = request->result,
                                      .device = request->device,
                                      .bytes = request->bytes});
}

static bool has_room(void)
{
    bool has = gos_stack_has_room();

    if (!has)
        gos_log(GOS_LOG_NOTICE, "a failure was not looked into: its thread's stack is too small");
    return has;
}

/* The moment is taken over; NULL: what is seen now. */
static struct gos_failure *open_failure(const struct gos_request *request,
                                        struct gos_evidence *moment)
{
    struct gos_failure *failure = has_room() ? gos_memory_alloc(sizeof *failure) : NULL;

    if (!failure) {
        gos_moment_free(moment);
        gos_loss_count(GOS_LOSS_REPORT);
        return NULL;
    }
    if (moment)
        gos_moment_finish(&failure->evidence, moment);
    else
        gos_observe(&failure->evidence, request, GOS_OBSERVE_ALL);
    failure->evidence.initialised_pid = gos_shim_initialised_pid();
    failure->evidence.rehearsed = gos_rehearsal_count();
    failure->report.kind = request ? GOS_REPORT_FAILURE : GOS_REPORT_SNAPSHOT;
    failure->report.diagnosis = &failure->diagnosis;
    return failure;
}

void gos_failure_free(struct gos_failure *failure)
{
    if (!failure)
        return;
    gos_observe_release(&failure->evidence);
    gos_memory_free(failure, sizeof *failure);
}

/* Other memory is made in the current context, and so has to be wanted there. */
static bool is_replaceable(const struct gos_call *call)
{
    struct gos_place current = *gos_place_of_context();
    struct gos_place place = current;

    if (call->kind == GOS_KIND_POOL)
        place = *gos_place_of_stream(call->stream, call->pool);
    return call->replaceable && place.context == current.context && place.device == current.device;
}

static void open_ladder(struct gos_failure *failure, const struct gos_call *call)
{
    const char *reason;

    gos_ladder_open(&failure->ladder, &failure->diagnosis, gos_turn_spent_ns(), &reason);
    failure->ladder.is_replaceable = is_replaceable(call);
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

/* The evidence is written down before anything is tried: a kill in a step loses nothing. */
static void write_report(struct gos_failure *failure, enum gos_outcome outcome)
{
    failure->report.outcome = outcome;
    if (gos_report_write(&failure->report) != 0)
        gos_loss_count(GOS_LOSS_REPORT);
}

/* A snapshot of torch's lies beside the report and bears its name, so that comes first. */
static void look_at_frameworks(struct gos_failure *failure)
{
    struct gos_evidence *evidence = &failure->evidence;
    bool named = failure->report.kind == GOS_REPORT_FAILURE && gos_options.torch_snapshot;

    if (named)
        write_report(failure, GOS_OUTCOME_FAILED);
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

/* Codes with which the allocation itself is not at fault and that are worth a report. */
static bool is_worth_telling(const struct gos_call *call, CUresult result)
{
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return true;
    if (call->kind == GOS_KIND_NONE)
        return false;
    return result == CUDA_ERROR_NOT_INITIALIZED || result == CUDA_ERROR_NO_DEVICE ||
           result == CUDA_ERROR_INVALID_CONTEXT || result == CUDA_ERROR_STUB_LIBRARY ||
           result == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH ||
           result == CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE ||
           gos_cuda_error_is_sticky((int)result);
}

static void give_turn_back(struct gos_failure *failure, bool recovered)
{
    if (failure->holds_turn)
        gos_turn_end(&failure->evidence.request, recovered);
    failure->holds_turn = false;
}

static bool tell(struct gos_call *call, const struct gos_request *request, bool has_turn)
{
    struct gos_failure *failure = open_failure(request, NULL);

    if (!failure) {
        if (has_turn)
            gos_turn_pass();
        return false;
    }
    gos_diagnose(&failure->evidence, &failure->diagnosis);
    failure->holds_turn = has_turn;
    call->failure = failure;
    look_at_frameworks(failure);
    open_ladder(failure, call);
    if (!failure->ladder.closed)
        write_report(failure, GOS_OUTCOME_FAILED);
    return climb(call, failure);
}

static void keep(struct gos_failure *failure)
{
    uint32_t later = failure->later;
    uint64_t ticket = gos_episode_keep(failure);

    if (!ticket)
        return;
    if (later)
        gos_view_take_later(&failure->evidence, &failure->report, later, ticket);
    gos_episode_give_back(ticket);
}

/* For whoever wants to read of what the caller survives: seen now, written when it has. */
static void look_in_silence(const struct gos_request *request)
{
    if (gos_options.report_on != GOS_REPORT_ON_ALL || !gos_episode_is_new())
        return;
    struct gos_failure *failure = open_failure(request, NULL);
    if (!failure)
        return;
    gos_diagnose(&failure->evidence, &failure->diagnosis);
    keep(failure);
}

static bool surfaces(struct gos_request *request)
{
    enum gos_episode_answer answer = gos_episode_failed(request);

    if (answer == GOS_EPISODE_DEFER)
        look_in_silence(request);
    return answer == GOS_EPISODE_SURFACES;
}

static bool first_failure(struct gos_call *call, CUresult result)
{
    struct gos_request request = describe(call, result);

    note(&request);
    if (!is_worth_telling(call, result) || gos_thread.is_helper)
        return false;
    if (!call->shared && !surfaces(&request))
        return false;
    bool has_turn = gos_turn_take(call->shared);
    if (!has_turn || !gos_turn_is_told(&request, call->shared))
        return tell(call, &request, has_turn);
    call->shared = gos_turn_pass();
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

static void mark_last_step(struct gos_report *report, bool recovered)
{
    if (!recovered || report->step_count == 0)
        return;
    report->steps[report->step_count - 1].result = "helped";
    report->steps[report->step_count - 1].cuda_result = CUDA_SUCCESS;
}

/* That a flush helped says who had held the memory, which nobody could see before. */
static void learn_from_last_step(struct gos_failure *failure)
{
    const struct gos_report *report = &failure->report;
    const struct gos_step_record *last =
        report->step_count ? &report->steps[report->step_count - 1] : NULL;

    if (last && last->giver)
        gos_diagnose_flushed(&failure->evidence, &failure->diagnosis, last->giver,
                             last->given_bytes);
}

static bool was_flushed_in_vain(const struct gos_report *report)
{
    for (uint32_t i = 0; i < report->step_count; i++)
        if (strcmp(report->steps[i].step, "flush") == 0 &&
            strcmp(report->steps[i].result, "no help") == 0)
            return true;
    return false;
}

static void learn_from_steps(struct gos_failure *failure, bool recovered)
{
    if (recovered)
        learn_from_last_step(failure);
    else if (was_flushed_in_vain(&failure->report))
        gos_diagnose_flushed_in_vain(&failure->evidence, &failure->diagnosis);
}

void gos_failure_learn(struct gos_failure *failure, const char *answer)
{
    struct gos_evidence *evidence = &failure->evidence;
    enum gos_verdict_code before = failure->diagnosis.verdict.code;

    gos_view_arrived(evidence);
    gos_frameworks_read(evidence, answer, true);
    gos_diagnose(evidence, &failure->diagnosis);
    learn_from_steps(failure, false);
    write_report(failure, failure->report.outcome);
    if (failure->diagnosis.verdict.code != before)
        gos_notice_changed(&failure->report);
}

void gos_failure_close(struct gos_failure *failure, CUresult result)
{
    bool recovered = result == CUDA_SUCCESS;

    gos_relaxed_end(&failure->relaxed);
    mark_last_step(&failure->report, recovered);
    learn_from_steps(failure, recovered);
    if (failure->ladder.substitute)
        gos_fallbacks_observe(&failure->evidence);
    if (!recovered)
        gos_view_announce(&failure->evidence, failure->later);
    write_report(failure, recovered ? GOS_OUTCOME_RECOVERED : GOS_OUTCOME_FAILED);
    give_turn_back(failure, recovered);
    gos_notice(&failure->report, failure->ladder.substitute != 0);
    if (!recovered) {
        keep(failure);
        return;
    }
    gos_episode_recovered();
    gos_failure_free(failure);
}

void gos_failure_survived(struct gos_failure *failure)
{
    write_report(failure, GOS_OUTCOME_RECOVERED_BY_CALLER);
}

/* --- reports without a failing call --- */

static const char of_telling_words[] =
    "memory at the moment of the failure (the caller was expected to ask again; all here is as it "
    "was when the process ended)";

static int report_now(enum gos_report_kind kind, const char *path_prefix)
{
    struct gos_failure *failure = open_failure(NULL, NULL);

    if (!failure)
        return -ENOMEM;
    gos_diagnose(&failure->evidence, &failure->diagnosis);
    failure->report.kind = kind;
    failure->report.outcome = GOS_OUTCOME_NONE;
    failure->report.path_prefix = path_prefix;
    if (kind == GOS_REPORT_SNAPSHOT)
        look_at_frameworks(failure);
    int result = gos_report_write(&failure->report);
    gos_failure_free(failure);
    return result;
}

/* A failure that was put off, and that nothing answered. */
static void tell_at_exit(const struct gos_request *request, struct gos_evidence *moment)
{
    bool is_of_telling = moment == NULL;
    struct gos_failure *failure = open_failure(request, moment);

    if (!failure)
        return;
    failure->evidence.told_wall_ns = gos_os.wall_ns();
    failure->evidence.is_of_telling = is_of_telling;
    if (is_of_telling)
        gos_evidence_incomplete(&failure->evidence, of_telling_words);
    gos_diagnose(&failure->evidence, &failure->diagnosis);
    write_report(failure, GOS_OUTCOME_FAILED);
    gos_notice(&failure->report, false);
    gos_failure_free(failure);
}

int gos_failure_snapshot(const char *path_prefix)
{
    return report_now(GOS_REPORT_SNAPSHOT, path_prefix);
}

void gos_failure_at_exit(void)
{
    struct gos_request request;
    struct gos_evidence *moment;

    gos_view_settle();
    while (gos_deferred_take(&request, &moment))
        tell_at_exit(&request, moment);
    if (gos_options.exit_report && report_now(GOS_REPORT_EXIT, NULL) != 0)
        gos_loss_count(GOS_LOSS_REPORT);
}

void gos_failure_reset_after_fork(void)
{
    gos_turn_reset_after_fork();
    gos_view_reset_after_fork();
    gos_ladder_reset_after_fork();
    gos_episode_reset_after_fork();
}
