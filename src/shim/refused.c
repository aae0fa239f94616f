#include "refused.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "../base/log.h"
#include "../base/loss.h"
#include "../base/memory.h"
#include "../base/os.h"
#include "../base/thread.h"
#include "../cuda/error.h"
#include "../diagnose/code_place.h"
#include "../diagnose/framework.h"
#include "../diagnose/holder.h"
#include "../observe/frameworks.h"
#include "../observe/observe.h"
#include "../observe/python_end.h"
#include "../report/report.h"
#include "deferred.h"
#include "episode.h"
#include "failure.h"
#include "moment.h"
#include "place.h"
#include "stack_room.h"
#include "state.h"

struct story {
    struct gos_evidence evidence;
    struct gos_diagnosis diagnosis;
    struct gos_report report;
};

/* --- what was told already ------------------------------------------------------------------ */

#define REMEMBERED 64

/* Exceptions and places; the oldest are forgotten. */
static _Atomic uint64_t told[REMEMBERED], places[REMEMBERED];
static _Atomic uint32_t told_count, place_count;

static bool is_among(_Atomic uint64_t *numbers, uint64_t number)
{
    for (unsigned i = 0; i < REMEMBERED; i++)
        if (atomic_load_explicit(&numbers[i], memory_order_relaxed) == number)
            return true;
    return false;
}

static void remember(_Atomic uint64_t *numbers, _Atomic uint32_t *count, uint64_t number)
{
    atomic_store_explicit(&numbers[atomic_fetch_add(count, 1) % REMEMBERED], number,
                          memory_order_relaxed);
}

/* The program's own two newest lines, as a number that is not 0. */
static uint64_t place_of(const struct gos_python_refusal *refusal)
{
    const struct gos_site *site = gos_site_get(refusal->site);
    char buffer[256];
    struct gos_text text = gos_text_on(buffer, sizeof buffer);
    uint64_t hash = 0xcbf29ce484222325u;

    gos_text_put(&text, refusal->words.framework);
    if (site)
        gos_code_put_python(&text, site->python, site->python_count, 2);
    for (const char *at = buffer; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
    return hash | 1;
}

/*
 * An exception that may be handled says what another one of its place has said:
 * a server that refuses a thousand requests writes one report.  One that ends
 * the program is told in any case, so that the newest report is about the end.
 */
static bool is_worth_telling(const struct gos_python_refusal *refusal, bool is_end)
{
    uint64_t place = place_of(refusal);
    bool is_new = !is_among(places, place);

    if (is_among(told, refusal->mark) || (!is_new && !is_end))
        return false;
    remember(told, &told_count, refusal->mark);
    if (is_new)
        remember(places, &place_count, place);
    return true;
}

/* --- one story ------------------------------------------------------------------------------ */

static struct gos_request describe(const struct gos_python_refusal *refusal)
{
    return (struct gos_request){
        .api = refusal->words.framework,
        .kind = GOS_KIND_DEVICE,
        .bytes_known = refusal->words.asked_known,
        .bytes = refusal->words.asked_known ? refusal->words.asked_bytes : 0,
        .device = -1,
        .tid = gos_os.tid(),
        .site = refusal->site,
        .requester_module = UINT32_MAX,
        .wall_ns = gos_os.wall_ns(),
        .monotonic_ns = gos_os.monotonic_ns(),
        .is_word = true,
    };
}

/*
 * JAX without preallocation lets its arena grow until the driver refuses, again
 * and again; what was put off then, because XLA asks again, is this story.
 */
static bool take_put_off(const struct gos_python_refusal *refusal, struct story *story)
{
    struct gos_request request;
    struct gos_evidence *moment;

    if (!gos_deferred_take(&request, &moment))
        return false;
    if (strcmp(gos_holder_of_request(&request), refusal->words.framework) != 0) {
        gos_deferred_set(&request, moment);
        return false;
    }
    if (moment)
        gos_moment_finish(&story->evidence, moment);
    else
        gos_observe(&story->evidence, &request, GOS_OBSERVE_ALL);
    return true;
}

static void put_word(const struct gos_python_refusal *refusal, struct gos_request *request)
{
    request->api = refusal->words.framework;
    request->is_word = true;
    request->driver_bytes = request->bytes;
    if (refusal->words.asked_known)
        request->bytes = refusal->words.asked_bytes;
    if (refusal->site)
        request->site = refusal->site;
}

static void gather(const struct gos_python_refusal *refusal, struct story *story)
{
    struct gos_request request = describe(refusal);

    gos_thread.depth++;
    if (take_put_off(refusal, story))
        put_word(refusal, &story->evidence.request);
    else
        gos_observe(&story->evidence, &request, GOS_OBSERVE_ALL);
    story->evidence.initialised_pid = gos_shim_initialised_pid();
    gos_thread.depth--;
    gos_frameworks_observe_held(&story->evidence,
                                GOS_FRAMEWORK_TORCH | GOS_FRAMEWORK_CUPY | GOS_FRAMEWORK_JAX);
}

static uint64_t room_of(const struct gos_framework_evidence *framework)
{
    return framework->limit_bytes > framework->used_bytes
               ? framework->limit_bytes - framework->used_bytes
               : 0;
}

/* JAX's words name no device: the one with the least room; CuPy's are about the current one. */
static void find_device(struct gos_evidence *evidence)
{
    struct gos_request *request = &evidence->request;
    uint32_t current = gos_place_of_context()->device;
    const struct gos_framework_evidence *best = NULL;

    for (size_t i = 0; i < evidence->framework_count; i++) {
        const struct gos_framework_evidence *one = &evidence->frameworks[i];

        if (strcmp(one->name, request->api) != 0)
            continue;
        bool is_current = strcmp(request->api, "cupy") == 0 && one->device == current;
        if (!best || is_current || room_of(one) < room_of(best))
            best = one;
        if (is_current)
            break;
    }
    if (best)
        request->device = (int)best->device;
}

/* JAX may run on the host's processors beside another's GPU: then its words are none of ours. */
static bool is_about_devices(const struct gos_evidence *evidence)
{
    char unseen[48];
    struct gos_text text = gos_text_on(unseen, sizeof unseen);

    gos_text_format(&text, "what %s says", evidence->request.api);
    for (size_t i = 0; i < evidence->incomplete_count; i++)
        if (strncmp(evidence->incomplete[i], unseen, text.length) == 0)
            return true;
    return evidence->request.device >= 0;
}

static void say(struct story *story)
{
    struct gos_evidence *evidence = &story->evidence;
    const struct gos_verdict *verdict = &story->diagnosis.verdict;
    const struct gos_report *report = &story->report;
    const char *path = report->text_path[0] ? report->text_path : report->json_path;
    const char *line = gos_holder_line_words(evidence, evidence->request.site, 1);
    char size[32] = "memory";
    struct gos_text text = gos_text_on(size, sizeof size);

    if (evidence->request.bytes_known)
        gos_text_bytes(&text, evidence->request.bytes);
    gos_log(GOS_LOG_NOTICE, "%s refused %s%s%s: %s (%s).%s%s", evidence->request.api, size,
            line[0] ? " at " : "", line, gos_verdict_code(verdict->code),
            gos_confidence_code(verdict->confidence), path[0] ? " Report: " : "", path);
}

static void tell(struct story *story)
{
    if (story->evidence.request.device < 0)
        find_device(&story->evidence);
    if (!is_about_devices(&story->evidence))
        return;
    gos_diagnose(&story->evidence, &story->diagnosis);
    story->report.kind = GOS_REPORT_FAILURE;
    story->report.outcome = GOS_OUTCOME_FAILED;
    story->report.diagnosis = &story->diagnosis;
    if (gos_report_write(&story->report) != 0)
        gos_loss_count(GOS_LOSS_REPORT);
    say(story);
}

/* --- on the host's thread ------------------------------------------------------------------- */

/* In a child of the process that uses CUDA nothing can be asked. */
static bool may_look(void)
{
    return gos_shim_active() && gos_shim_initialised_pid() == gos_os.pid();
}

/* A failing call of this thread that was told, and that nothing answered yet, is the same story. */
static bool was_call_told(const struct gos_python_refusal *refusal)
{
    return strcmp(refusal->words.framework, "jax") != 0 && gos_episode_open != 0;
}

static void refused(const struct gos_python_refusal *refusal, bool is_end)
{
    if (!may_look() || was_call_told(refusal) || !is_worth_telling(refusal, is_end))
        return;
    struct story *story = gos_stack_has_room() ? gos_memory_alloc(sizeof *story) : NULL;
    if (!story) {
        gos_loss_count(GOS_LOSS_REPORT);
        return;
    }
    gather(refusal, story);
    gos_thread.depth++;
    tell(story);
    gos_observe_release(&story->evidence);
    gos_memory_free(story, sizeof *story);
    gos_thread.depth--;
}

static void ends(void)
{
    if (!may_look())
        return;
    gos_thread.depth++;
    gos_failure_python_ends();
    gos_thread.depth--;
}

void gos_refused_watch(void)
{
    static const struct gos_python_watcher watcher = {.ends = ends, .refused = refused};
    int saved = errno;

    if (!gos_shim_active())
        return;
    gos_thread.depth++;
    gos_python_end_watch(&watcher);
    gos_thread.depth--;
    errno = saved;
}
