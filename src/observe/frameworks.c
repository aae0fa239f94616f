#include "frameworks.h"

#include <errno.h>
#include <stdatomic.h>

#include "../base/memory.h"
#include "../base/os.h"
#include "../base/text.h"
#include "../cuda/driver.h"
#include "../track/pool.h"
#include "allocator_stack.h"
#include "frameworks_script.h"
#include "gil.h"
#include "helper_thread.h"
#include "python_api.h"
#include "python_script.h"

#define PATH_BYTES 512

/*
 * What the helper reads and writes.  It may outlive the failing call, so it is
 * nobody's stack; whoever claimed the helper owns it.
 */
static struct job {
    CUcontext context;
    char who[32];
    char devices[GOS_DEVICE_MAX * 4];
    char asked[24];
    char snapshot_path[PATH_BYTES];
    void (*answered)(const char *answer, void *arg);
    void *arg;
    char answer[GOS_FRAMEWORKS_ANSWER_BYTES];
} job;

static _Atomic uint32_t begun; /* 0 not yet, 1 the script runs or never will; a futex */

/* --- whom ---------------------------------------------------------------------------------- */

static uint32_t inside_of(const struct gos_allocator_stack *stack)
{
    return (stack->has_torch ? GOS_FRAMEWORK_TORCH : 0u) |
           (stack->has_cupy ? GOS_FRAMEWORK_CUPY : 0u) | (stack->has_jax ? GOS_FRAMEWORK_JAX : 0u);
}

uint32_t gos_frameworks_askable(struct gos_evidence *evidence, uint32_t *inside)
{
    const uint32_t all = GOS_FRAMEWORK_TORCH | GOS_FRAMEWORK_CUPY | GOS_FRAMEWORK_JAX;

    *inside = 0;
    if ((evidence->initialised_pid != 0 && evidence->initialised_pid != evidence->pid) ||
        !gos_python_api())
        return 0;
    if (gos_capture_count() > 0) {
        gos_evidence_incomplete(evidence,
                                "what frameworks say they hold (a graph is being captured)");
        return 0;
    }
    struct gos_allocator_stack stack = gos_allocator_stack(evidence->request.site);
    if (!stack.is_known) {
        gos_evidence_incomplete(evidence, "what frameworks say they hold (the failing stack could "
                                          "not be read, so nobody knows whose locks it holds)");
        return 0;
    }
    *inside = inside_of(&stack);
    return all & ~*inside;
}

/* --- on the helper -------------------------------------------------------------------------- */

static void tell_begun(void)
{
    atomic_store(&begun, 1);
    gos_os.futex_wake((uint32_t *)&begun, INT32_MAX);
}

/* held: on a thread that has the GIL, else on the helper. */
static void run_script(struct job *asked, bool held)
{
    const struct gos_python_word words[] = {{"who", asked->who},
                                            {"devices", asked->devices},
                                            {"asked", asked->asked},
                                            {"snapshot", asked->snapshot_path}};
    const size_t count = sizeof words / sizeof words[0];
    char words_data[160];
    struct gos_text answer = gos_text_on(asked->answer, sizeof asked->answer);
    enum gos_python_answer result =
        held ? gos_python_run_held(gos_frameworks_script, words, count, &answer)
             : gos_python_run(gos_frameworks_script, words, count, &answer, tell_begun);

    if (result != GOS_PYTHON_RAISED)
        return;
    struct gos_text problem = gos_text_on(words_data, sizeof words_data);
    gos_text_put(&problem, asked->answer);
    answer = gos_text_on(asked->answer, sizeof asked->answer);
    gos_text_format(&answer, "- frameworks %s", words_data);
}

/*
 * In the failing call's context: a framework that looks at the current device
 * finds the right one, and creates no context of another.
 */
static void ask_all(void)
{
    if (gos_driver.cuCtxSetCurrent)
        gos_driver.cuCtxSetCurrent(job.context);
    run_script(&job, false);
    if (gos_driver.cuCtxSetCurrent)
        gos_driver.cuCtxSetCurrent(NULL);
}

static void ask_and_answer(void)
{
    ask_all();
    tell_begun();
    job.answered(job.answer, job.arg);
}

/* --- on the failing thread ------------------------------------------------------------------ */

/* A framework may switch to the device that it is asked about, which would create this context. */
static bool has_primary_context(int ordinal)
{
    CUdevice device;
    unsigned flags;
    int active = 0;

    if (!gos_driver.cuDevicePrimaryCtxGetState || !gos_driver.cuDeviceGet)
        return true;
    return gos_driver.cuDeviceGet(&device, ordinal) == CUDA_SUCCESS &&
           gos_driver.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && active;
}

static void put_devices(const struct gos_evidence *evidence, struct job *asked)
{
    struct gos_text text = gos_text_on(asked->devices, sizeof asked->devices);

    for (int i = 0; i < GOS_DEVICE_MAX; i++)
        if (evidence->devices[i].present && has_primary_context(i))
            gos_text_format(&text, " %d", i);
}

static void put_who(uint32_t who, struct job *asked)
{
    struct gos_text text = gos_text_on(asked->who, sizeof asked->who);

    gos_text_put(&text, who & GOS_FRAMEWORK_TORCH ? "torch " : "");
    gos_text_put(&text, who & GOS_FRAMEWORK_CUPY ? "cupy " : "");
    gos_text_put(&text, who & GOS_FRAMEWORK_JAX ? "jax" : "");
}

static void fill_job(const struct gos_evidence *evidence, uint32_t who, const char *snapshot_path,
                     struct job *asked)
{
    const struct gos_request *request = &evidence->request;
    struct gos_text bytes = gos_text_on(asked->asked, sizeof asked->asked);
    struct gos_text path = gos_text_on(asked->snapshot_path, sizeof asked->snapshot_path);

    put_who(who, asked);
    put_devices(evidence, asked);
    gos_text_format(&bytes, "%llu",
                    request->bytes_known ? (unsigned long long)request->bytes : 0ull);
    gos_text_put(&path, snapshot_path ? snapshot_path : "");
    asked->context = NULL;
    asked->answer[0] = '\0';
    if (gos_driver.cuCtxGetCurrent)
        gos_driver.cuCtxGetCurrent(&asked->context);
}

static int run_helper(uint64_t timeout_ns)
{
    void *released = gos_gil_release();
    int result = gos_helper_run(ask_all, timeout_ns);

    gos_gil_retake(released);
    return result;
}

void gos_frameworks_observe(struct gos_evidence *evidence, uint32_t who, uint64_t timeout_ns,
                            const char *snapshot_path)
{
    if (!gos_helper_claim()) {
        gos_evidence_incomplete(
            evidence, "what frameworks say they hold (one that was asked before has not answered)");
        return;
    }
    fill_job(evidence, who, snapshot_path, &job);
    int result = run_helper(timeout_ns);
    if (result == -ETIMEDOUT) {
        gos_evidence_incomplete(evidence, "what frameworks say they hold (no answer within "
                                          "GPUOOMSHIM_FRAMEWORK_BUDGET)");
        return;
    }
    if (result == 0)
        gos_frameworks_read(evidence, job.answer, false);
    else
        gos_evidence_incomplete(evidence,
                                "what frameworks say they hold (no thread could be made to ask)");
    gos_helper_release();
}

void gos_frameworks_observe_held(struct gos_evidence *evidence, uint32_t who)
{
    struct job *asked;

    if (gos_capture_count() > 0) {
        gos_evidence_incomplete(evidence,
                                "what frameworks say they hold (a graph is being captured)");
        return;
    }
    asked = gos_memory_alloc(sizeof *asked);
    if (!asked) {
        gos_evidence_incomplete(evidence, "what frameworks say they hold (no memory for it)");
        return;
    }
    fill_job(evidence, who, NULL, asked);
    run_script(asked, true);
    gos_frameworks_read(evidence, asked->answer, false);
    gos_memory_free(asked, sizeof *asked);
}

/*
 * A program that dies of this failure leaves a thread that still has to take
 * the GIL no time.  One that has it, and waits inside the framework for the
 * lock of the failing call, gets its answer before the program goes on: the
 * failing thread needs the GIL for that.  (Were the GIL its own, it would have
 * to be let go of, and taken back while the helper waits: for each other.)
 */
#define BEGIN_NS 10000000u

static void wait_for_begin(void)
{
    uint64_t deadline_ns = gos_os.monotonic_ns() + BEGIN_NS;

    for (uint64_t now_ns = gos_os.monotonic_ns(); atomic_load(&begun) == 0 && now_ns < deadline_ns;
         now_ns = gos_os.monotonic_ns())
        gos_os.futex_wait((uint32_t *)&begun, 0, deadline_ns - now_ns);
}

int gos_frameworks_start(const struct gos_evidence *evidence, uint32_t who,
                         const char *snapshot_path, void (*answered)(const char *answer, void *arg),
                         void *arg)
{
    if (!gos_helper_claim())
        return -EBUSY;
    fill_job(evidence, who, snapshot_path, &job);
    job.answered = answered;
    job.arg = arg;
    atomic_store(&begun, 0);
    int result = gos_helper_start(ask_and_answer);
    if (result != 0)
        gos_helper_release();
    else if (!gos_gil_is_held())
        wait_for_begin();
    return result;
}
