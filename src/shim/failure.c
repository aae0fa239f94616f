#include "failure.h"

#include <errno.h>
#include <string.h>

#include "../base/log.h"
#include "../base/loss.h"
#include "../base/memory.h"
#include "../base/options.h"
#include "../base/os.h"
#include "../base/text.h"
#include "../base/thread.h"
#include "../cuda/error.h"
#include "../diagnose/flushed.h"
#include "../observe/fallbacks.h"
#include "../observe/frameworks.h"
#include "../observe/gil.h"
#include "../observe/observe.h"
#include "../recover/flush_plan.h"
#include "../recover/ladder.h"
#include "../recover/step_wait.h"
#include "../report/report.h"
#include "../track/event.h"
#include "../track/pool.h"
#include "../track/registry.h"
#include "../track/unwind.h"
#include "deferred.h"
#include "episode.h"
#include "framework_view.h"
#include "place.h"
#include "stack_room.h"
#include "turn.h"

/* From the first failure of a call to its report, and on until its episode ends. */
struct gos_failure {
    struct gos_evidence evidence;
    struct gos_diagnosis diagnosis;
    struct gos_ladder ladder;
    struct gos_report report;
    uint32_t later; /* frameworks to be asked when the call has returned */
    bool holds_turn;
};

/*
 * Threads that fail together share the outcome of the first: what recovered
 * memory for it may serve them, and where nothing helped, its report tells of
 * them all.
 */
static struct {
    uint64_t ended_ns;
    uint64_t freed_count; /* of the registry, then */
    uint64_t bytes;
    uint32_t thread; /* gos_thread_index */
    int device;
    int result;
    enum gos_kind kind;
    enum gos_refusal refusal;
    bool recovered;
} last_story; /* guarded by the turn */

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

static struct gos_failure *open_failure(const struct gos_request *request)
{
    struct gos_failure *failure = has_room() ? gos_memory_alloc(sizeof *failure) : NULL;

    if (!failure) {
        gos_loss_count(GOS_LOSS_REPORT);
        return NULL;
    }
    gos_observe(&failure->evidence, request, GOS_OBSERVE_ALL);
    failure->evidence.initialised_pid = gos_shim_initialised_pid();
    gos_diagnose(&failure->evidence, &failure->diagnosis);
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

    gos_ladder_open(&failure->ladder, &failure->diagnosis, &reason);
    failure->ladder.is_replaceable = is_replaceable(call);
    if (!reason && failure->evidence.request.refusal == GOS_REFUSAL_INJECTED &&
        !gos_options.inject.recover)
        reason = "the failure was injected, without recover=1";
    if (!reason && !failure->holds_turn)
        reason = "the recovery of another thread took all the time";
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

static bool climb(struct gos_call *call, struct gos_failure *failure)
{
    struct gos_ladder *ladder = &failure->ladder;
    bool again = gos_ladder_climb(ladder, failure->report.steps, &failure->report.step_count);

    if (again && ladder->substitute) {
        call->substitute = ladder->substitute;
        call->kind = (uint8_t)ladder->substitute_kind;
    }
    return again;
}

/* Threads that "fail together" do not all do so before the first one's story ends. */
#define TOGETHER_NS 100000000u

static uint64_t freed_count(void)
{
    uint64_t allocated;
    uint64_t freed;

    gos_registry_counts(&allocated, &freed);
    return freed;
}

/* The story ended after this thread had failed, or only just, and all is still as it was. */
static bool is_of_now(const struct gos_request *request)
{
    if (last_story.ended_ns >= request->monotonic_ns)
        return true;
    return !last_story.recovered && last_story.thread != gos_thread_index() &&
           request->monotonic_ns - last_story.ended_ns < TOGETHER_NS &&
           last_story.freed_count == freed_count();
}

/* Was the last story about this failure too?  The turn is ours. */
static bool is_told_already(const struct gos_request *request, bool shared)
{
    /* One failure that was made up says nothing of any other. */
    if (request->refusal == GOS_REFUSAL_INJECTED || last_story.refusal == GOS_REFUSAL_INJECTED)
        return false;
    if (last_story.device != request->device || !is_of_now(request))
        return false;
    if (last_story.recovered)
        return !shared; /* once; then this failure is a story of its own */
    return last_story.kind == request->kind && last_story.result == request->result &&
           last_story.bytes <= request->bytes;
}

static void give_turn_back(struct gos_failure *failure, bool recovered)
{
    const struct gos_request *request = &failure->evidence.request;

    if (!failure->holds_turn)
        return;
    failure->holds_turn = false;
    last_story.ended_ns = gos_os.monotonic_ns();
    last_story.freed_count = freed_count();
    last_story.thread = gos_thread_index();
    last_story.bytes = request->bytes;
    last_story.device = request->device;
    last_story.result = request->result;
    last_story.kind = request->kind;
    last_story.refusal = request->refusal;
    last_story.recovered = recovered;
    gos_turn_give_back();
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

static bool tell(struct gos_call *call, const struct gos_request *request, bool has_turn)
{
    struct gos_failure *failure = open_failure(request);

    if (!failure) {
        if (has_turn)
            gos_turn_give_back();
        return false;
    }
    failure->holds_turn = has_turn;
    call->failure = failure;
    look_at_frameworks(failure);
    open_ladder(failure, call);
    if (!failure->ladder.closed)
        write_report(failure, GOS_OUTCOME_FAILED);
    return climb(call, failure);
}

/* Inside a framework's allocator nobody waits longer, for its lock may be what the other needs. */
#define IN_ALLOCATOR_NS 200000000u

/* Whoever recovers may need the interpreter to do so. */
static bool wait_for_turn(void)
{
    uint64_t most_ns = gos_options.retry_budget + gos_step_wait_longest_ns();

    if (most_ns > IN_ALLOCATOR_NS && gos_flush_caller_is_in_allocator())
        most_ns = IN_ALLOCATOR_NS;
    void *released = gos_gil_release();
    bool taken = gos_turn_take_within(most_ns);
    gos_gil_retake(released);
    return taken;
}

static bool take_turn(void)
{
    return gos_turn_try() || wait_for_turn();
}

static bool first_failure(struct gos_call *call, CUresult result)
{
    struct gos_request request = describe(call, result);

    note(&request);
    if (!is_worth_telling(call, result) || gos_thread.is_helper)
        return false;
    if (!call->shared && gos_episode_failed(&request) != GOS_EPISODE_SURFACES)
        return false;
    bool has_turn = take_turn();
    if (!has_turn || !is_told_already(&request, call->shared))
        return tell(call, &request, has_turn);
    call->shared = last_story.recovered;
    gos_turn_give_back();
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

/* Without the suffixes that tell ABIs apart: "cuMemAlloc" of "cuMemAlloc_v2". */
static int api_length(const char *api)
{
    const char *suffix = strchr(api, '_');

    return (int)(suffix ? (size_t)(suffix - api) : strlen(api));
}

static const char *what_happened(const struct gos_failure *failure)
{
    const struct gos_request *request = &failure->evidence.request;
    bool recovered = failure->report.outcome == GOS_OUTCOME_RECOVERED;

    if (failure->ladder.substitute)
        return "failed, then was given other memory, which is slower";
    if (request->bytes_known)
        return recovered ? "failed, then succeeded" : "failed";
    return recovered ? "ran out of memory, then succeeded" : "ran out of memory";
}

static const char *path_of(const struct gos_report *report)
{
    return report->text_path[0] ? report->text_path : report->json_path;
}

/* The line of before named what was known then. */
static void say_changed(const struct gos_failure *failure)
{
    const struct gos_verdict *verdict = &failure->diagnosis.verdict;
    const char *path = path_of(&failure->report);

    gos_log(GOS_LOG_NOTICE, "%s was asked what it holds: %s (%s).%s%s", verdict->holder,
            gos_verdict_code(verdict->code), gos_confidence_code(verdict->confidence),
            path[0] ? " Report: " : "", path);
}

/* Nobody should take a rehearsal for the real thing. */
static const char *rehearsal_words(enum gos_refusal refusal)
{
    switch (refusal) {
    case GOS_REFUSAL_LIMIT:
        return " (under GPUOOMSHIM_LIMIT)";
    case GOS_REFUSAL_INJECTED:
        return " (by GPUOOMSHIM_INJECT)";
    default:
        return "";
    }
}

static void say(const struct gos_failure *failure)
{
    const struct gos_request *request = &failure->evidence.request;
    const struct gos_verdict *verdict = &failure->diagnosis.verdict;
    char size[48] = "";
    struct gos_text text = gos_text_on(size, sizeof size);
    const char *path = path_of(&failure->report);

    if (request->bytes_known && verdict->code == GOS_VERDICT_REQUEST_TOO_LARGE) {
        gos_text_format(&text, " of 0x%llx bytes", (unsigned long long)request->bytes);
    } else if (request->bytes_known) {
        gos_text_put(&text, " of ");
        gos_text_bytes(&text, request->bytes);
    }
    gos_log(GOS_LOG_NOTICE, "%.*s%s %s%s: %s (%s).%s%s", api_length(request->api), request->api,
            size, what_happened(failure), rehearsal_words(request->refusal),
            gos_verdict_code(verdict->code), gos_confidence_code(verdict->confidence),
            path[0] ? " Report: " : "", path);
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
        say_changed(failure);
}

void gos_failure_close(struct gos_failure *failure, CUresult result)
{
    bool recovered = result == CUDA_SUCCESS;

    mark_last_step(&failure->report, recovered);
    learn_from_steps(failure, recovered);
    if (failure->ladder.substitute)
        gos_fallbacks_observe(&failure->evidence);
    if (!recovered)
        gos_view_announce(&failure->evidence, failure->later);
    write_report(failure, recovered ? GOS_OUTCOME_RECOVERED : GOS_OUTCOME_FAILED);
    give_turn_back(failure, recovered);
    say(failure);
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

/* --- reports without a failing call ------------------------------------------------------------
 */

static int report_now(const struct gos_request *request, enum gos_report_kind kind,
                      const char *path_prefix)
{
    struct gos_failure *failure = open_failure(request);

    if (!failure)
        return -ENOMEM;
    failure->report.kind = kind;
    failure->report.outcome = request ? GOS_OUTCOME_FAILED : GOS_OUTCOME_NONE;
    failure->report.path_prefix = path_prefix;
    if (kind == GOS_REPORT_SNAPSHOT)
        look_at_frameworks(failure);
    int result = gos_report_write(&failure->report);
    if (request && result == 0)
        say(failure);
    gos_failure_free(failure);
    return result;
}

int gos_failure_snapshot(const char *path_prefix)
{
    return report_now(NULL, GOS_REPORT_SNAPSHOT, path_prefix);
}

void gos_failure_at_exit(void)
{
    struct gos_request request;

    gos_view_settle();
    while (gos_deferred_take(&request))
        if (report_now(&request, GOS_REPORT_FAILURE, NULL) != 0)
            gos_loss_count(GOS_LOSS_REPORT);
    if (gos_options.exit_report && report_now(NULL, GOS_REPORT_EXIT, NULL) != 0)
        gos_loss_count(GOS_LOSS_REPORT);
}

void gos_failure_reset_after_fork(void)
{
    gos_turn_reset_after_fork();
    gos_view_reset_after_fork();
    gos_ladder_reset_after_fork();
    last_story.ended_ns = 0;
    gos_episode_reset_after_fork();
}
