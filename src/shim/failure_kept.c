/* A failure after its call: put off, told late, changed, survived; and reports without a failure.
 */
#include <errno.h>

#include "../base/log.h"
#include "../base/loss.h"
#include "../base/memory.h"
#include "../base/options.h"
#include "../base/os.h"
#include "../observe/frameworks.h"
#include "../observe/observe.h"
#include "../track/capture.h"
#include "../track/registry.h"
#include "../track/unwind.h"
#include "failure_parts.h"
#include "framework_view.h"
#include "kept.h"
#include "notice.h"
#include "origin.h"
#include "other_error.h"
#include "stack_room.h"
#include "story.h"
#include "torch_word.h"
#include "turn.h"
#include "word.h"

static bool has_room(void)
{
    bool has = gos_stack_has_room();

    if (!has)
        gos_log(GOS_LOG_NOTICE, "a failure was not looked into: its thread's stack is too small");
    return has;
}

static void add_torchs_books(struct gos_evidence *evidence)
{
    uint64_t reserved_bytes; /* told with the last block: a cache emptied since is still in it */

    for (int i = 0; i < GOS_DEVICE_MAX; i++) {
        struct gos_device_evidence *device = &evidence->devices[i];
        device->torch_used_known = gos_torch_totals(i, &device->torch_used_bytes, &reserved_bytes);
    }
}

static void look(struct gos_failure *failure, const struct gos_request *request, unsigned parts)
{
    gos_observe(&failure->evidence, request, parts);
    failure->evidence.initialised_pid = gos_shim_initialised_pid();
    add_torchs_books(&failure->evidence);
    failure->evidence.rehearsed = gos_rehearsal_count();
    failure->lacks_lasting = parts != GOS_OBSERVE_ALL;
    failure->is_mapped = false;
    if (parts == GOS_OBSERVE_ALL)
        failure->thorough_ns = gos_os.monotonic_ns();
    if (request && request->is_word)
        gos_frameworks_by_word(&failure->evidence);
}

/* What is kept of other failures can be had from their reports. */
static void make_room(void)
{
    while (!gos_memory_keep_ballast() && gos_kept_let_go(gos_story_number()))
        continue;
}

static struct gos_failure *alloc(void)
{
    struct gos_failure *failure = gos_memory_alloc(sizeof *failure);

    return !failure && gos_memory_drop_ballast() ? gos_memory_alloc(sizeof *failure) : failure;
}

struct gos_failure *gos_failure_open(const struct gos_request *request, unsigned parts)
{
    make_room();
    struct gos_failure *failure = has_room() ? alloc() : NULL;

    if (!failure) {
        gos_loss_count(GOS_LOSS_REPORT);
        return NULL;
    }
    look(failure, request, parts);
    failure->report.kind = request ? GOS_REPORT_FAILURE : GOS_REPORT_SNAPSHOT;
    failure->report.diagnosis = &failure->diagnosis;
    return failure;
}

void gos_failure_free(struct gos_failure *failure)
{
    if (!failure)
        return;
    gos_report_draft_void(&failure->report);
    gos_observe_release(&failure->evidence);
    gos_memory_free(failure, sizeof *failure);
}

void gos_failure_inherit(struct gos_failure *failure, struct gos_failure *earlier)
{
    if (!earlier)
        return;
    gos_report_inherit(&failure->report, &earlier->report);
    gos_failure_free(earlier);
}

void gos_failure_write(struct gos_failure *failure, enum gos_outcome outcome)
{
    failure->report.outcome = outcome;
    if (gos_report_write(&failure->report) != 0)
        gos_loss_count(GOS_LOSS_REPORT);
}

bool gos_failure_draft(struct gos_failure *failure)
{
    failure->report.outcome = GOS_OUTCOME_FAILED;
    bool stored = gos_report_draft(&failure->report) == 0;
    if (!stored)
        gos_loss_count(GOS_LOSS_REPORT);
    return stored;
}

/* Nothing that was tried has recovered memory. */
static void judge(struct gos_failure *failure)
{
    if (failure->is_mapped)
        gos_diagnose_again(&failure->evidence, &failure->diagnosis);
    else
        gos_diagnose(&failure->evidence, &failure->diagnosis);
    failure->is_mapped = true;
    if (failure->report.step_count > 0)
        gos_failure_learn_from_steps(failure, false);
}

/* --- a refusal that is not told ------------------------------------------------------------- */

/* Until then no other process is taken to have changed much. */
#define HOLDS_NS 100000000u

static bool still_holds(const struct gos_evidence *evidence, const struct gos_request *request)
{
    uint64_t allocated, freed;

    gos_registry_counts(&allocated, &freed);
    return evidence->allocated_count == allocated && evidence->freed_count == freed &&
           request->wall_ns >= evidence->wall_ns && request->wall_ns - evidence->wall_ns < HOLDS_NS;
}

/*
 * Looking costs in proportion to what is alive.  A caller that is refused again
 * and again pays a twentieth of its time for it at the most.
 */
#define SHARE 20

static bool may_look(const struct gos_evidence *evidence, const struct gos_request *request)
{
    return request->wall_ns >= evidence->wall_ns &&
           request->wall_ns - evidence->wall_ns >= SHARE * evidence->collected_in_ns;
}

/* NVML, the processes and the host take milliseconds. */
#define THOROUGH_NS 1000000000u

static unsigned parts_again(const struct gos_failure *failure, const struct gos_request *request)
{
    bool is_told = failure->report.text_path[0] || failure->report.json_path[0];

    return is_told && request->monotonic_ns - failure->thorough_ns >= THOROUGH_NS
               ? GOS_OBSERVE_ALL
               : GOS_OBSERVE_MOMENT;
}

static void look_again(struct gos_failure *failure, const struct gos_request *request,
                       unsigned parts)
{
    gos_observe_release(&failure->evidence);
    look(failure, request, parts);
}

struct gos_failure *gos_failure_note(struct gos_failure *failure, const struct gos_request *request)
{
    if (!failure) {
        failure = gos_failure_open(request, GOS_OBSERVE_MOMENT);
        if (!failure)
            return NULL;
    } else if (!gos_stack_has_room()) {
        return failure;
    } else if (!still_holds(&failure->evidence, request)) {
        if (may_look(&failure->evidence, request))
            look_again(failure, request, parts_again(failure, request));
        else
            failure->evidence.is_of_earlier = true;
    }
    failure->evidence.request = *request;
    failure->evidence.rehearsed = gos_rehearsal_count();
    failure->evidence.told_wall_ns = 0;
    judge(failure);
    (void)gos_failure_draft(failure);
    return failure;
}

/* --- what becomes of it --------------------------------------------------------------------- */

void gos_failure_complete(struct gos_failure *failure)
{
    make_room();
    if (failure->lacks_lasting)
        gos_observe_lasting(&failure->evidence);
    failure->lacks_lasting = false;
    judge(failure);
}

void gos_failure_tell_late(struct gos_failure *failure)
{
    failure->evidence.told_wall_ns = gos_os.wall_ns();
    gos_failure_complete(failure);
    gos_failure_write(failure, GOS_OUTCOME_FAILED);
    gos_notice(&failure->report, false);
}

void gos_failure_update(struct gos_failure *failure)
{
    gos_failure_complete(failure);
    failure->report.newest = true;
    gos_failure_write(failure, GOS_OUTCOME_FAILED);
}

void gos_failure_survived(struct gos_failure *failure, bool was_told)
{
    if (was_told || gos_options.report_on == GOS_REPORT_ON_ALL) {
        gos_failure_complete(failure);
        gos_failure_write(failure, GOS_OUTCOME_RECOVERED_BY_CALLER);
    }
    gos_failure_answered(failure);
}

void gos_failure_answered(struct gos_failure *failure)
{
    gos_report_draft_void(&failure->report);
}

void gos_failure_learn(struct gos_failure *failure, const char *answer)
{
    struct gos_evidence *evidence = &failure->evidence;
    enum gos_verdict_code before = failure->diagnosis.verdict.code;

    gos_view_arrived(evidence);
    gos_frameworks_read(evidence, answer, true);
    judge(failure);
    gos_failure_write(failure, failure->report.outcome);
    if (failure->diagnosis.verdict.code != before)
        gos_notice_changed(&failure->report);
}

/* --- torch's word --------------------------------------------------------------------------- */

static struct gos_request describe(const struct gos_word *word)
{
    uint32_t site = gos_unwind_site();
    struct gos_request request = {
        .api = "torch",
        .kind = GOS_KIND_DEVICE,
        .bytes_known = true,
        .bytes = word->asked_bytes,
        .device = word->device,
        .capture = gos_capture_count() ? GOS_CAPTURE_ELSEWHERE : GOS_CAPTURE_NONE,
        .tid = gos_os.tid(),
        .site = site,
        .requester_module = gos_site_requester_module(gos_site_get(site)),
        .wall_ns = gos_os.wall_ns(),
        .monotonic_ns = gos_os.monotonic_ns(),
        .attempts = 0,
        .is_word = true,
        .word_used_bytes = word->allocated_bytes,
        .word_reserved_bytes = word->reserved_bytes,
    };
    request.origin = gos_origin_of(&request);
    return request;
}

/* The evidence is that of torch's last call of the driver, where there was one. */
static struct gos_failure *take_or_open(const struct gos_request *request, bool is_quiet)
{
    struct gos_failure *failure = gos_kept_take(gos_story_number());

    if (!failure)
        return gos_failure_open(request, GOS_OBSERVE_ALL);
    if (failure->lacks_lasting && !is_quiet)
        look_again(failure, request, GOS_OBSERVE_ALL);
    else if (!still_holds(&failure->evidence, request))
        look_again(failure, request, parts_again(failure, request));
    failure->evidence.request = *request;
    gos_frameworks_by_word(&failure->evidence);
    return failure;
}

static void tell_word(const struct gos_request *request, bool is_quiet)
{
    struct gos_failure *failure = has_room() ? take_or_open(request, is_quiet) : NULL;

    if (!failure)
        return;
    if (is_quiet)
        judge(failure);
    if (!is_quiet || !gos_failure_draft(failure)) {
        is_quiet = false;
        gos_failure_complete(failure);
        gos_failure_write(failure, GOS_OUTCOME_FAILED);
        gos_notice(&failure->report, false);
    }
    gos_failure_keep(failure, !is_quiet);
}

void gos_failure_word(const struct gos_word *word)
{
    struct gos_request request = describe(word);
    enum gos_story_answer answer = gos_story_word(&request);

    if (answer == GOS_STORY_AGAIN)
        gos_kept_note(gos_story_number(), &request);
    else
        tell_word(&request, answer == GOS_STORY_QUIET);
}

/* --- reports without a failing call --------------------------------------------------------- */

static int report_now(enum gos_report_kind kind, const char *path_prefix)
{
    struct gos_failure *failure = gos_failure_open(NULL, GOS_OBSERVE_ALL);

    if (!failure)
        return -ENOMEM;
    gos_diagnose(&failure->evidence, &failure->diagnosis);
    failure->report.kind = kind;
    failure->report.outcome = GOS_OUTCOME_NONE;
    failure->report.path_prefix = path_prefix;
    if (kind == GOS_REPORT_SNAPSHOT)
        gos_failure_look_at_frameworks(failure);
    int result = gos_report_write(&failure->report);
    gos_failure_free(failure);
    return result;
}

int gos_failure_snapshot(const char *path_prefix)
{
    return report_now(GOS_REPORT_SNAPSHOT, path_prefix);
}

void gos_failure_python_ends(void)
{
    gos_kept_settle(0);
}

void gos_failure_at_exit(void)
{
    gos_view_settle();
    gos_kept_settle(0);
    gos_report_drafts_end();
    if (gos_options.exit_report && report_now(GOS_REPORT_EXIT, NULL) != 0)
        gos_loss_count(GOS_LOSS_REPORT);
}

void gos_failure_reset_after_fork(void)
{
    gos_turn_reset_after_fork();
    gos_view_reset_after_fork();
    gos_ladder_reset_after_fork();
    gos_story_reset_after_fork();
    gos_other_error_reset_after_fork();
}
