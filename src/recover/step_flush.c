#include "step_flush.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "../base/memory.h"
#include "../base/options.h"
#include "../base/os.h"
#include "../base/text.h"
#include "../cuda/driver.h"
#include "../observe/gil.h"
#include "../observe/helper_thread.h"
#include "../observe/python_call.h"
#include "../track/capture.h"
#include "flush_callback.h"
#include "flush_plan.h"

#define WORDS_BYTES 400

/* Beyond the request's size: the driver's 2 MiB blocks, and the last few MiB that it keeps. */
#define MARGIN_BYTES (8ull << 20)

/*
 * What the helper reads and writes.  It may outlive the failing call, so it is
 * nobody's stack; whoever claimed the helper owns it.
 */
static struct {
    struct gos_flush_plan plan;
    CUcontext context;
    int device;
    uint64_t wanted_bytes; /* 0: unknown */
    /* The answer. */
    struct gos_text words;
    char words_data[WORDS_BYTES];
    uint32_t done_count;
    const char *asked[GOS_STEP_ASKED_MAX]; /* who answered as they should, permanent */
    size_t asked_count;
    const char *giver; /* of most, permanent; NULL: nobody gave anything */
    uint64_t given_bytes;
} job;

static _Atomic(const char *) being_asked; /* also read when the helper is late */

/* --- on the helper -----------------------------------------------------------------------------
 */

/* Who is asked during a capture may end it: a whole context is synchronized in no mode. */
static bool is_over(void)
{
    return gos_helper_is_abandoned() || gos_capture_count() > 0 ||
           (job.wanted_bytes && gos_driver_free_bytes() >= job.wanted_bytes + MARGIN_BYTES);
}

static void put_name(const char *name)
{
    if (job.words.length)
        gos_text_put(&job.words, ", ");
    gos_text_put(&job.words, name);
}

static uint64_t begin(const char *name)
{
    atomic_store(&being_asked, name);
    return gos_driver_free_bytes();
}

static void note_answer(const char *name)
{
    if (job.asked_count < GOS_STEP_ASKED_MAX)
        job.asked[job.asked_count++] = name;
}

static void note_given(const char *name, uint64_t before_bytes)
{
    uint64_t after_bytes = gos_driver_free_bytes();
    uint64_t given_bytes = after_bytes > before_bytes ? after_bytes - before_bytes : 0;

    job.done_count++;
    if (given_bytes <= job.given_bytes)
        return;
    job.given_bytes = given_bytes;
    job.giver = name;
}

/* One framework, through one or more paths separated by commas; name must be permanent. */
static enum gos_python_answer ask_python(const char *name, const char *path, size_t length)
{
    char words[WORDS_BYTES / 2];
    struct gos_text text = gos_text_on(words, sizeof words);
    uint64_t before_bytes = begin(name);
    enum gos_python_answer answer = gos_python_call(path, length, &text);

    if (answer == GOS_PYTHON_ABSENT || answer == GOS_PYTHON_ENDING)
        return answer;
    put_name(name);
    if (answer == GOS_PYTHON_RAISED)
        gos_text_format(&job.words, " raised %s", words);
    else
        note_answer(name);
    note_given(name, before_bytes);
    return answer;
}

static void ask_path(const char *name, const char *path)
{
    if (!is_over())
        ask_python(name, path, strlen(path));
}

/* In torch since 2.5; before, there is no such attribute and the words say so. */
static void ask_pinned(void)
{
    if (job.plan.torch)
        ask_path("torch (pinned)", "torch._C:_host_emptyCache");
    if (job.plan.cupy)
        ask_path("cupy (pinned)", "cupy:get_default_pinned_memory_pool().free_all_blocks");
}

static void ask_frameworks(void)
{
    if (job.plan.torch)
        ask_path("torch", "torch.cuda:empty_cache");
    if (!job.plan.cupy)
        return;
    ask_path("cupy", "cupy:get_default_memory_pool().free_all_blocks");
    ask_path("cupy (pinned)", "cupy:get_default_pinned_memory_pool().free_all_blocks");
}

/* Said only here: most programs lack one framework or the other. */
static void ask_one_named(const char *name, const char *path, size_t length)
{
    if (ask_python(name, path, length) != GOS_PYTHON_ABSENT)
        return;
    put_name(name);
    gos_text_put(&job.words, " is not imported");
}

static void ask_named(void)
{
    const char *at = job.plan.named ? gos_options.flush : "";

    while (*at && !is_over()) {
        at += strspn(at, ", ");
        size_t length = strcspn(at, ", ");
        const char *name = gos_arena_intern(at, strcspn(at, ":, "));
        if (length && name)
            ask_one_named(name, at, length);
        at += length;
    }
}

static void ask_callback(size_t at)
{
    const char *name = gos_flush_callback_name(at);
    uint64_t before_bytes = name ? begin(name) : 0;
    int result = 0;

    if (!name || !gos_flush_callback_call(at, job.device, job.wanted_bytes, &result))
        return;
    put_name(name);
    if (result != 0)
        gos_text_format(&job.words, " returned %d", result);
    else
        note_answer(name);
    note_given(name, before_bytes);
}

static void ask_callbacks(void)
{
    for (size_t i = 0; job.plan.callbacks && i < GOS_FLUSH_CALLBACK_MAX && !is_over(); i++)
        ask_callback(i);
}

/*
 * The failing call's context, so that who gives back memory "of the current
 * device" means the right one.
 */
static void ask_all(void)
{
    if (gos_driver.cuCtxSetCurrent)
        gos_driver.cuCtxSetCurrent(job.context);
    if (job.plan.pinned)
        ask_pinned();
    else
        ask_frameworks();
    ask_named();
    ask_callbacks();
    if (gos_driver.cuCtxSetCurrent)
        gos_driver.cuCtxSetCurrent(NULL);
}

/* --- on the failing thread ---------------------------------------------------------------------
 */

bool gos_step_flush_may_help(const struct gos_ladder *ladder, const char **why_not)
{
    struct gos_flush_plan plan;

    *why_not = gos_flush_plan_make(ladder->diagnosis, &plan);
    return !*why_not;
}

static void fill_job(const struct gos_diagnosis *diagnosis)
{
    const struct gos_request *request = &diagnosis->evidence->request;

    memset(&job, 0, sizeof job);
    job.words = gos_text_on(job.words_data, sizeof job.words_data);
    job.device = diagnosis->device;
    /* What is free of the device does not tell when there is enough of the host's. */
    job.wanted_bytes = request->bytes_known && diagnosis->device >= 0 ? request->bytes : 0;
    if (gos_driver.cuCtxGetCurrent)
        gos_driver.cuCtxGetCurrent(&job.context);
    gos_flush_plan_make(diagnosis, &job.plan);
    atomic_store(&being_asked, NULL);
}

static uint64_t time_left_ns(uint64_t deadline_ns)
{
    uint64_t now_ns = gos_os.monotonic_ns();
    uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;

    return left_ns < gos_options.flush_budget ? left_ns : gos_options.flush_budget;
}

/* Whoever was asked what it holds, and is late, may be about to answer. */
static bool claim_helper(uint64_t timeout_ns)
{
    if (gos_helper_claim())
        return true;
    void *released = gos_gil_release();
    bool claimed = gos_helper_claim_within(timeout_ns);
    gos_gil_retake(released);
    return claimed;
}

static int run_helper(uint64_t timeout_ns)
{
    void *released = gos_gil_release();
    int result = gos_helper_run(ask_all, timeout_ns);

    gos_gil_retake(released);
    return result;
}

static const char *permanent(const struct gos_text *text)
{
    const char *kept = gos_arena_intern(text->data, text->length);

    return kept ? kept : "";
}

static void tell_late(struct gos_step_record *record)
{
    char words[WORDS_BYTES];
    struct gos_text text = gos_text_on(words, sizeof words);
    const char *name = atomic_load(&being_asked);

    gos_text_format(&text, "%s did not answer in time", name ? name : "the helper thread");
    record->result = "timed out";
    record->reason = permanent(&text);
}

static bool tell_answer(struct gos_step_record *record)
{
    record->reason = job.words.length ? permanent(&job.words) : "nobody was there to be asked";
    memcpy(record->asked, job.asked, sizeof record->asked);
    record->asked_count = job.asked_count;
    record->giver = job.giver;
    record->given_bytes = job.given_bytes;
    return job.done_count > 0;
}

/*
 * Late, the helper may still have got something from whoever it asked first.
 * While it is inside the driver, whatever we ask there may wait as long as it.
 */
bool gos_step_flush_run(struct gos_ladder *ladder, struct gos_step_record *record)
{
    record->result = "no help";
    if (!claim_helper(time_left_ns(ladder->deadline_ns))) {
        record->result = "skipped";
        record->reason = "who was asked before has not ended yet";
        return false;
    }
    fill_job(ladder->diagnosis);
    uint64_t before_bytes = gos_driver_free_bytes();
    int result = run_helper(time_left_ns(ladder->deadline_ns));
    if (result == -ETIMEDOUT) {
        tell_late(record);
        ladder->closed = gos_driver_is_held();
        return !ladder->closed && gos_driver_free_bytes() > before_bytes;
    }
    bool retry = result == 0 && tell_answer(record);
    if (result != 0) {
        record->result = "error";
        record->reason = "no thread could be made for it";
    }
    gos_helper_release();
    return retry;
}

void gos_step_flush_reset_after_fork(void)
{
    gos_flush_callback_reset_after_fork();
}
