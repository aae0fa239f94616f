/* Failures that the result code or the process itself explains. */
#include <string.h>

#include "../base/text.h"
#include "../cuda/error.h"
#include "holder.h"
#include "rule.h"
#include "setting.h"
#include "wording.h"

enum {
    NOT_INITIALISED = 3,
    KERNEL_FIRST = 700,
    KERNEL_LAST = 721,
    MPS_MAX_CLIENTS = 808,
    MPS_MAX_CONNECTIONS = 809,
    CAPTURE_FIRST = 900,
    CAPTURE_INVALIDATED = 901,
    CAPTURE_LAST = 908,
};

/* Results that say what is wrong, and what helps. */
static const struct {
    int result;
    const char *meaning;
    const char *advice;
} causes[] = {
    {3, "CUDA is not initialised in this process",
     "Let the CUDA runtime start before the first allocation (cuInit, or any runtime call)."},
    {4, "CUDA has shut down already: the process is ending",
     "Free and allocate before main returns, not in destructors of static objects."},
    {35, "the driver is older than the CUDA runtime needs",
     "Update the driver, or use a build for an older CUDA."},
    {34, "the stub libcuda of the toolkit was loaded instead of the driver's",
     "Take the toolkit's lib64/stubs out of LD_LIBRARY_PATH."},
    {36, "the call needs a newer driver than the one that is installed",
     "Update the driver, or use a build for an older CUDA."},
    {46, "the device is busy or not available: exclusive mode, or another process owns it",
     "Look at the compute mode (nvidia-smi -q -d COMPUTE) and at who uses the device."},
    {100, "no device is visible",
     "Look at CUDA_VISIBLE_DEVICES and at whether the container was given a GPU."},
    {101, "there is no device with that number",
     "Look at CUDA_VISIBLE_DEVICES: devices are numbered from 0 among the visible ones."},
    {102, "the device has no licence", "Look at the vGPU licence of this machine."},
    {201, "no context is current on this thread, or it was destroyed",
     "Set the device on this thread (cudaSetDevice) before the call."},
    {214, "the device met a memory error that it could not correct",
     "Look at nvidia-smi -q -d ECC; the device may have to be reset or replaced."},
    {709, "the context was destroyed",
     "Do not use the device after cudaDeviceReset or cuCtxDestroy."},
    {800,
     "the driver permits no such call here: in a function that a stream calls on the host "
     "(cudaLaunchHostFunc, cudaStreamAddCallback) no CUDA call is permitted",
     "Let the host function wake a thread of the program, and allocate there or beforehand."},
    {802, "the system is not ready: the fabric manager is not running or not done",
     "Start nvidia-fabricmanager, or wait for it."},
    {803, "driver library and kernel module have different versions",
     "Reload the kernel module or reboot; in a container, use the host's libcuda."},
    {804, "forward compatibility is used on a device that does not support it",
     "Take the cuda-compat libraries out of the library path, or update the driver."},
    {805, "the MPS daemon does not answer", "Start nvidia-cuda-mps-control, or do without MPS."},
    {806, "the MPS server failed", "Restart nvidia-cuda-mps-control."},
    {807, "the MPS server is not ready", "Wait, or restart nvidia-cuda-mps-control."},
    {810, "the MPS server ended this client", "Look into the MPS server's log."},
};

static const char *meaning_of(int result)
{
    for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
        if (causes[i].result == result)
            return causes[i].meaning;
    return gos_cuda_error_text(result);
}

/* Codes that say that versions do not fit: there the files that were found say more. */
static bool is_about_versions(int result)
{
    return (result >= 34 && result <= 36) || result == 803 || result == 804;
}

static const char *advice_for(const struct gos_situation *s, int result)
{
    for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
        if (causes[i].result == result)
            return causes[i].advice;
    if (gos_cuda_error_is_sticky(result))
        return gos_setting_is_on(s->evidence, "CUDA_LAUNCH_BLOCKING")
                   ? "Find the kernel: run under compute-sanitizer."
                   : "Find the kernel: run with CUDA_LAUNCH_BLOCKING=1, or under "
                     "compute-sanitizer.";
    return "Look up the error code; memory is not the reason.";
}

static const char *code_line(const struct gos_situation *s)
{
    return gos_wording(s->evidence, "%s returned %d (%s).", s->request->api, s->request->result,
                       gos_cuda_error_name(s->request->result));
}

bool gos_rule_forked(const struct gos_situation *s, struct gos_verdict *verdict)
{
    const struct gos_evidence *evidence = s->evidence;
    if (evidence->initialised_pid == 0 || evidence->pid == evidence->initialised_pid)
        return false;
    verdict->code = GOS_VERDICT_FORKED;
    verdict->confidence =
        s->request->result == NOT_INITIALISED ? GOS_CONFIDENCE_PROVEN : GOS_CONFIDENCE_LIKELY;
    verdict->summary = gos_wording(
        s->evidence,
        "Process %d initialised CUDA and then forked; CUDA cannot be used in its child %d.",
        evidence->initialised_pid, evidence->pid);
    gos_verdict_say(verdict, code_line(s));
    if (evidence->initialised_by)
        gos_verdict_say(verdict, gos_wording(s->evidence, "The parent's cuInit came from %s.",
                                             evidence->initialised_by));
    if (s->requester[0])
        gos_verdict_say(verdict,
                        gos_wording(s->evidence, "The child's call came from %s.", s->requester));
    gos_verdict_advise(verdict, "Start workers with spawn or forkserver instead of fork "
                                "(multiprocessing.set_start_method(\"spawn\")).");
    gos_verdict_advise(verdict, "Or touch CUDA for the first time only after the fork.");
    return true;
}

static bool is_of_capture(int result)
{
    return result >= CAPTURE_FIRST && result <= CAPTURE_LAST;
}

static const char *time_of_day(struct gos_evidence *evidence, uint64_t wall_ns)
{
    char words[16] = "";
    struct gos_text text = gos_text_on(words, sizeof words);
    gos_text_time_of_day(&text, wall_ns);
    return gos_wording(evidence, "%s", words);
}

static void say_what_captures(const struct gos_situation *s, struct gos_verdict *verdict)
{
    const struct gos_capture_origin *origin = &s->evidence->captured;
    const char *which = s->request->capture == GOS_CAPTURE_THIS_STREAM
                            ? "The stream of this call"
                            : "Another stream of this process";
    if (s->request->capture == GOS_CAPTURE_NONE)
        gos_verdict_say(verdict, "The beginning of a capture was not seen here.");
    else if (!origin->began_wall_ns)
        gos_verdict_say(verdict, gos_wording(s->evidence, "%s was being captured.", which));
    else
        gos_verdict_say(
            verdict,
            gos_wording(s->evidence, "%s (0x%llx) was being captured; %s began it at %s.", which,
                        (unsigned long long)origin->stream,
                        origin->tid == s->request->tid ? "the same thread" : "another thread",
                        time_of_day(s->evidence, origin->began_wall_ns)));
}

/* The call that lost the capture for this one: the newest since it began that was refused so. */
static const struct gos_event *what_invalidated(const struct gos_evidence *evidence)
{
    for (size_t i = evidence->event_count; i-- > 0;) {
        const struct gos_event *event = &evidence->events[i];
        if (event->wall_ns < evidence->captured.began_wall_ns)
            return NULL;
        if (is_of_capture(event->result) && event->result != CAPTURE_INVALIDATED)
            return event;
    }
    return NULL;
}

static void say_what_invalidated(const struct gos_situation *s, struct gos_verdict *verdict)
{
    const struct gos_event *event = what_invalidated(s->evidence);
    if (event)
        gos_verdict_say(
            verdict,
            gos_wording(
                s->evidence, "It had been invalidated by %s of %s, which returned %d at %s.",
                event->what, event->tid == s->request->tid ? "the same thread" : "another thread",
                event->result, time_of_day(s->evidence, event->wall_ns)));
    else
        gos_verdict_say(verdict, "It had been invalidated before, by a call that was not seen here "
                                 "(a synchronization, a query, or a call that was not watched).");
}

static void advise_capture(const struct gos_situation *s, struct gos_verdict *verdict)
{
    gos_verdict_advise(verdict, "Allocate before the capture begins: run the same work once as "
                                "warm-up, with the same shapes.");
    if (strcmp(s->requester, "torch") == 0)
        gos_verdict_advise(verdict, "Capture with torch.cuda.graph(), which gives torch a pool of "
                                    "its own for the graph.");
    else
        gos_verdict_advise(verdict, "Or allocate in the order of the captured stream "
                                    "(cudaMallocAsync): that becomes a part of the graph.");
    if (s->request->capture != GOS_CAPTURE_THIS_STREAM ||
        s->evidence->captured.tid != s->request->tid)
        gos_verdict_advise(verdict, "Or capture in thread-local or relaxed mode when other threads "
                                    "allocate.");
}

bool gos_rule_in_capture(const struct gos_situation *s, struct gos_verdict *verdict)
{
    int result = s->request->result;
    if (!is_of_capture(result))
        return false;
    const char *line = gos_holder_line_words(s->evidence, s->evidence->captured.site, 1);
    verdict->code = GOS_VERDICT_IN_CAPTURE;
    verdict->confidence = GOS_CONFIDENCE_PROVEN;
    verdict->summary = gos_wording(s->evidence, "%s returned %d: %s%s%s.", s->request->api, result,
                                   gos_cuda_error_text(result),
                                   line[0] ? "; the capture was begun at " : "", line);
    say_what_captures(s, verdict);
    if (result == CAPTURE_INVALIDATED)
        say_what_invalidated(s, verdict);
    else if (result == CAPTURE_FIRST)
        gos_verdict_say(verdict, "The driver has invalidated the capture: it will end with error "
                                 "901, without a graph.");
    gos_verdict_say(verdict, "Memory is not the reason.");
    advise_capture(s, verdict);
    return true;
}

bool gos_rule_mps_limit(const struct gos_situation *s, struct gos_verdict *verdict)
{
    int result = s->request->result;
    if (result != MPS_MAX_CLIENTS && result != MPS_MAX_CONNECTIONS)
        return false;
    verdict->code = GOS_VERDICT_POLICY_LIMIT;
    verdict->confidence = GOS_CONFIDENCE_PROVEN;
    verdict->summary = gos_wording(s->evidence, "The MPS server has as many %s as it takes (%s).",
                                   result == MPS_MAX_CLIENTS ? "clients" : "connections",
                                   gos_cuda_error_name(result));
    gos_verdict_advise(verdict, "End other MPS clients of this device, or use fewer workers.");
    return true;
}

static void say_mismatches(const struct gos_situation *s, struct gos_verdict *verdict)
{
    for (size_t i = 0; i < s->diagnosis->mismatch_count; i++) {
        const struct gos_mismatch *mismatch = &s->diagnosis->mismatches[i];
        gos_verdict_say(verdict, gos_wording(s->evidence, "Does not fit: %s.", mismatch->line));
        gos_verdict_advise(verdict, mismatch->advice);
    }
}

static void say_loaded(const struct gos_situation *s, struct gos_verdict *verdict)
{
    for (size_t i = 0; i < s->evidence->version_count; i++) {
        const struct gos_version *version = &s->evidence->versions[i];
        if (strstr(version->what, "driver") || strstr(version->what, "libcuda") ||
            strstr(version->what, "kernel"))
            gos_verdict_say(verdict, gos_wording(s->evidence, "Loaded: %s %s %s", version->what,
                                                 version->version, version->path));
    }
}

/* A kernel's error comes with whatever call is made after it. */
static bool is_of_kernel(int result)
{
    return result >= KERNEL_FIRST && result <= KERNEL_LAST && gos_cuda_error_is_sticky(result);
}

static void say_sticky(const struct gos_situation *s, struct gos_verdict *verdict)
{
    int first = s->evidence->first_sticky_error;
    gos_verdict_say(verdict, "The context is lost: each call returns this from now on, until the "
                             "process ends.");
    if (is_of_kernel(s->request->result))
        gos_verdict_say(verdict, "A kernel that was launched before is the reason; this call was "
                                 "only the next one that was told.");
    if (first && first != s->request->result)
        gos_verdict_say(verdict, gos_wording(s->evidence, "The first error was %d (%s).", first,
                                             gos_cuda_error_name(first)));
}

bool gos_rule_driver_or_context(const struct gos_situation *s, struct gos_verdict *verdict)
{
    int result = s->request->result;
    if (result == 0 || s->out_of_memory)
        return false;
    verdict->code = GOS_VERDICT_DRIVER_OR_CONTEXT;
    verdict->confidence = GOS_CONFIDENCE_PROVEN;
    verdict->summary =
        gos_wording(s->evidence, "Not memory: %s. %s", meaning_of(result), code_line(s));
    if (gos_cuda_error_is_sticky(result))
        say_sticky(s, verdict);
    say_mismatches(s, verdict);
    say_loaded(s, verdict);
    if (!is_about_versions(result) || s->diagnosis->driver_mismatch_count == 0)
        gos_verdict_advise(verdict, advice_for(s, result));
    return true;
}

/*
 * Memory is there, nothing was allocated yet, and versions do not fit: then the
 * context is suspected before anything else, though code 2 does not prove it.
 */
bool gos_rule_first_allocation(const struct gos_situation *s, struct gos_verdict *verdict)
{
    bool is_first = s->evidence->allocated_count == 0;
    bool short_of_device = s->on_device && s->missing_bytes > 0;
    if (!s->out_of_memory || !is_first || short_of_device || s->on_host ||
        s->diagnosis->driver_mismatch_count == 0)
        return false;
    verdict->code = GOS_VERDICT_DRIVER_OR_CONTEXT;
    verdict->confidence = GOS_CONFIDENCE_LIKELY;
    verdict->summary =
        gos_wording(s->evidence,
                    "The first allocation of the process failed while the device has room, and "
                    "%s.",
                    s->diagnosis->mismatches[0].line);
    gos_verdict_say(verdict, code_line(s));
    say_mismatches(s, verdict);
    say_loaded(s, verdict);
    return true;
}
