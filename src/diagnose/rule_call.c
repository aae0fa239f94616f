/* Failures that the result code or the process itself explains. */
#include <string.h>

#include "../cuda/error.h"
#include "rule.h"
#include "setting.h"
#include "wording.h"

enum {
    NOT_INITIALISED = 3,
    MPS_MAX_CLIENTS = 808,
    MPS_MAX_CONNECTIONS = 809,
    CAPTURE_FIRST = 900,
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
    if (gos_cuda_error_is_sticky(result))
        return "an earlier kernel broke the context; every call now returns this";
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

bool gos_rule_in_capture(const struct gos_situation *s, struct gos_verdict *verdict)
{
    if (s->request->result < CAPTURE_FIRST || s->request->result > CAPTURE_LAST)
        return false;
    verdict->code = GOS_VERDICT_IN_CAPTURE;
    verdict->confidence = GOS_CONFIDENCE_PROVEN;
    verdict->summary =
        gos_wording(s->evidence, "%s is not allowed while a graph is being captured (%s).",
                    s->request->api, gos_cuda_error_name(s->request->result));
    if (s->request->capture == GOS_CAPTURE_THIS_STREAM)
        gos_verdict_say(verdict, "The stream of this call was capturing.");
    if (s->request->capture == GOS_CAPTURE_ELSEWHERE)
        gos_verdict_say(verdict, "Another stream of this process was capturing.");
    gos_verdict_say(verdict, "The driver has invalidated the capture; memory is not the reason.");
    gos_verdict_advise(verdict, "Allocate before the capture begins: run the same work once as "
                                "warm-up.");
    gos_verdict_advise(verdict,
                       "Or capture in thread-local or relaxed mode when other threads allocate.");
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

bool gos_rule_driver_or_context(const struct gos_situation *s, struct gos_verdict *verdict)
{
    int result = s->request->result;
    if (result == 0 || s->out_of_memory)
        return false;
    verdict->code = GOS_VERDICT_DRIVER_OR_CONTEXT;
    verdict->confidence = GOS_CONFIDENCE_PROVEN;
    verdict->summary =
        gos_wording(s->evidence, "Not memory: %s. %s", meaning_of(result), code_line(s));
    int sticky = s->evidence->first_sticky_error;
    if (sticky && sticky != result)
        gos_verdict_say(verdict, gos_wording(s->evidence, "The first error was %d (%s).", sticky,
                                             gos_cuda_error_name(sticky)));
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
