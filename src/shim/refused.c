#include "refused.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "../base/os.h"
#include "../base/text.h"
#include "../base/thread.h"
#include "../cuda/error.h"
#include "../diagnose/framework.h"
#include "../diagnose/holder.h"
#include "../observe/frameworks.h"
#include "../observe/observe.h"
#include "../observe/python_end.h"
#include "../report/report.h"
#include "failure_parts.h"
#include "kept.h"
#include "notice.h"
#include "origin.h"
#include "place.h"
#include "state.h"
#include "story.h"

/* --- what was told already ------------------------------------------------------------------ */

#define REMEMBERED 64

/* Exceptions; the oldest are forgotten. */
static _Atomic uint64_t told[REMEMBERED];
static _Atomic uint32_t told_count;

static bool was_told(uint64_t mark)
{
    for (unsigned i = 0; i < REMEMBERED; i++)
        if (atomic_load_explicit(&told[i], memory_order_relaxed) == mark)
            return true;
    return false;
}

static void remember(uint64_t mark)
{
    atomic_store_explicit(&told[atomic_fetch_add(&told_count, 1) % REMEMBERED], mark,
                          memory_order_relaxed);
}

/* --- one failure ---------------------------------------------------------------------------- */

static struct gos_request describe(const struct gos_python_refusal *refusal)
{
    struct gos_request request = {
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
    request.origin = gos_origin_of(&request);
    return request;
}

/* Without a stack, all that is refused so is one story. */
static uint64_t story_of(const struct gos_request *request)
{
    return request->origin ? request->origin : 1;
}

static bool is_of_framework(const struct gos_failure *failure, const void *framework)
{
    return strcmp(gos_holder_of_request(&failure->evidence.request), framework) == 0;
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

/*
 * JAX without preallocation lets its arena grow until the driver refuses, again
 * and again; what was put off then, because XLA asks again, is this failure.
 */
static struct gos_failure *gather(const struct gos_python_refusal *refusal,
                                  const struct gos_request *request)
{
    struct gos_failure *failure =
        gos_kept_take_unsettled(is_of_framework, refusal->words.framework);

    if (failure) {
        put_word(refusal, &failure->evidence.request);
    } else {
        failure = gos_failure_open(request, GOS_OBSERVE_ALL);
        if (failure)
            gos_failure_inherit(failure, gos_kept_take(story_of(request)));
    }
    if (!failure)
        return NULL;
    gos_thread.depth--;
    gos_frameworks_observe_held(&failure->evidence,
                                GOS_FRAMEWORK_TORCH | GOS_FRAMEWORK_CUPY | GOS_FRAMEWORK_JAX);
    gos_thread.depth++;
    return failure;
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

static void tell(struct gos_failure *failure, uint64_t story)
{
    struct gos_evidence *evidence = &failure->evidence;

    if (evidence->request.device < 0)
        find_device(evidence);
    if (!is_about_devices(evidence)) {
        gos_kept_recovered(story); /* nothing is kept in the place that was taken */
        gos_failure_free(failure);
        return;
    }
    gos_failure_complete(failure);
    gos_failure_write(failure, GOS_OUTCOME_FAILED);
    gos_notice(&failure->report, false);
    struct gos_request request = evidence->request;
    uint64_t ticket = gos_kept_put(story, failure, &request, true);
    if (ticket)
        gos_kept_give_back(ticket);
}

/* --- on the host's thread ------------------------------------------------------------------- */

/* In a child of the process that uses CUDA nothing can be asked. */
static bool may_look(void)
{
    return gos_shim_active() && gos_shim_initialised_pid() == gos_os.pid();
}

/* A refused call of this thread that was told, and that nothing answered yet, is the same story. */
static bool was_call_told(const struct gos_python_refusal *refusal)
{
    return strcmp(refusal->words.framework, "jax") != 0 && gos_story_open &&
           gos_kept_told_ns(gos_story_number());
}

/*
 * An exception that may be handled says what another one of its place has said:
 * a server that refuses a thousand requests writes one report.  One that ends
 * the program is told in any case, so that the newest report is about the end.
 */
static void refused(const struct gos_python_refusal *refusal, bool is_end)
{
    if (!may_look() || was_told(refusal->mark) || was_call_told(refusal))
        return;
    gos_thread.depth++;
    struct gos_request request = describe(refusal);
    if (is_end || !gos_kept_told_ns(story_of(&request))) {
        remember(refusal->mark);
        struct gos_failure *failure = gather(refusal, &request);
        if (failure)
            tell(failure, story_of(&request));
    }
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
