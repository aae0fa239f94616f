#include "framework_view.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "../base/log.h"
#include "../base/options.h"
#include "../base/os.h"
#include "../base/text.h"
#include "../base/thread.h"
#include "../observe/frameworks.h"
#include "../observe/gil.h"
#include "failure.h"
#include "kept.h"
#include "word.h"

static const char later_words[] =
    "what the framework that asked says it holds (it was inside its own allocator; it had not "
    "answered yet when this was written)";

static _Atomic bool awaited; /* an answer that is to go into a report */

/* --- torch's own snapshot beside the report ------------------------------------------------- */

#define PATH_BYTES 512

/* "" when there is no report, or none is wanted. */
static const char *snapshot_path(const struct gos_report *report, char path[PATH_BYTES])
{
    const char *of = report->json_path[0] ? report->json_path : report->text_path;
    const char *dot = strrchr(of, '.');
    struct gos_text text = gos_text_on(path, PATH_BYTES);

    if (!gos_options.torch_snapshot || !dot)
        return "";
    gos_text_put_n(&text, of, (size_t)(dot - of));
    gos_text_put(&text, ".torch.pickle");
    return text.truncated ? "" : path;
}

/* --- now ------------------------------------------------------------------------------------ */

/* Pickling takes as long as the program has history. */
static uint64_t time_limit_ns(const char *path)
{
    bool longer = path[0] && gos_options.flush_budget > gos_options.framework_budget;

    return longer ? gos_options.flush_budget : gos_options.framework_budget;
}

/* The helper would need the GIL; and a script on this thread may hand it over at any bytecode. */
static void tell_unasked(struct gos_evidence *evidence, uint32_t who)
{
    if (who & gos_frameworks_imported())
        gos_evidence_incomplete(evidence, "what frameworks say they hold (not asked: the failing "
                                          "thread holds the GIL)");
}

uint32_t gos_view_take(struct gos_evidence *evidence, const struct gos_report *report)
{
    char buffer[PATH_BYTES];
    uint32_t inside = 0;

    if (gos_options.framework_budget == 0)
        return 0;
    uint32_t who = gos_frameworks_askable(evidence, &inside);
    /* Its own word says what torch holds; only its snapshot it has to be asked for. */
    if (gos_word_can_come() && !gos_options.torch_snapshot)
        inside &= ~(uint32_t)GOS_FRAMEWORK_TORCH;
    if (gos_gil_is_held()) {
        tell_unasked(evidence, who);
        return inside;
    }
    const char *path = who & GOS_FRAMEWORK_TORCH ? snapshot_path(report, buffer) : "";
    if (who)
        gos_frameworks_observe(evidence, who, time_limit_ns(path), path);
    return inside;
}

/* --- later ---------------------------------------------------------------------------------- */

void gos_view_announce(struct gos_evidence *evidence, uint32_t later)
{
    if (later)
        gos_evidence_incomplete(evidence, later_words);
}

void gos_view_arrived(struct gos_evidence *evidence)
{
    gos_evidence_complete(evidence, later_words);
}

/* On the helper. */
static void answered(const char *answer, void *arg)
{
    uint64_t ticket = (uintptr_t)arg;

    gos_thread.depth++;
    struct gos_failure *failure = answer[0] ? gos_kept_borrow(ticket) : NULL;
    if (failure) {
        gos_failure_learn(failure, answer);
        gos_kept_give_back(ticket);
    }
    atomic_store(&awaited, false);
    gos_thread.depth--;
}

void gos_view_take_later(const struct gos_evidence *evidence, const struct gos_report *report,
                         uint32_t later, uint64_t ticket)
{
    char buffer[PATH_BYTES];
    const char *path = later & GOS_FRAMEWORK_TORCH ? snapshot_path(report, buffer) : "";

    atomic_store(&awaited, true);
    if (gos_frameworks_start(evidence, later, path, answered, (void *)(uintptr_t)ticket) == 0)
        return;
    atomic_store(&awaited, false);
    gos_log(GOS_LOG_DEBUG, "the framework that asked is not asked what it holds: an earlier "
                           "question has no answer yet, or there is no thread for it");
}

#define SETTLE_NS 200000000u
#define PAUSE_NS 1000000u

void gos_view_settle(void)
{
    uint64_t deadline_ns = gos_os.monotonic_ns() + SETTLE_NS;

    while (atomic_load(&awaited) && gos_os.monotonic_ns() < deadline_ns)
        gos_os.sleep_ns(PAUSE_NS);
}

void gos_view_reset_after_fork(void)
{
    atomic_store(&awaited, false);
}
