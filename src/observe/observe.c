#include "observe.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "../base/loss.h"
#include "../base/module.h"
#include "../base/options.h"
#include "../base/os.h"
#include "../base/thread.h"
#include "../cuda/error.h"
#include "../cuda/relaxed.h"
#include "../track/pool.h"
#include "../track/python_frames.h"
#include "../track/site.h"
#include "../track/unwind.h"
#include "collector.h"
#include "command_line.h"
#include "contexts.h"
#include "device_state.h"
#include "environment.h"
#include "growth.h"
#include "helper_thread.h"
#include "host.h"
#include "not_seen.h"
#include "pool_state.h"
#include "processes.h"
#include "python_api.h"
#include "snapshot.h"
#include "streams.h"
#include "versions.h"

/* What the parts hand to each other. */
struct gathering {
    struct gos_snapshot snapshot;
    struct gos_contexts contexts;
    struct gos_device_ids ids;
    struct gos_relaxed relaxed;
    bool ask_driver;
};

static _Atomic int initialised_pid; /* 0: CUDA was not used yet */
static const char *_Atomic initialised_by;

/* The name outlives a fork; the stack that it is taken from does not. */
static const char *library_that_calls(void)
{
    const struct gos_site *site = gos_site_get(gos_unwind_site());
    const struct gos_module *module = gos_module_at(gos_site_requester_module(site));

    return module ? module->name : NULL;
}

void gos_observe_at_first_use(void)
{
    int none = 0;

    if (!atomic_compare_exchange_strong(&initialised_pid, &none, gos_os.pid()))
        return;
    atomic_store(&initialised_by, library_that_calls());
    gos_environment_remember();
}

static void observe_self(struct gos_evidence *evidence)
{
    evidence->pid = gos_os.pid();
    evidence->initialised_pid = atomic_load(&initialised_pid);
    evidence->initialised_by = atomic_load(&initialised_by);
    evidence->injecting = gos_options.inject.rule != GOS_INJECT_NONE;
    evidence->rank = -1;
    evidence->world = -1;
    evidence->start_wall_ns = gos_registry_start_wall_ns();
    evidence->wall_ns = gos_os.wall_ns();
    evidence->unwinder = gos_unwind_name();
    evidence->python = gos_python_version();
    evidence->host.address_limit_bytes = UINT64_MAX;
    evidence->host.locked_limit_bytes = UINT64_MAX;
    evidence->host.cgroup_limit_bytes = UINT64_MAX;
    evidence->host.overcommit_mode = -1;
    gos_host_name(&evidence->host);
}

/* Once a context is lost every later call fails alike, so the oldest such event tells which. */
static void find_sticky_error(struct gos_evidence *evidence)
{
    for (size_t i = 0; i < evidence->event_count; i++)
        if (gos_cuda_error_is_sticky(evidence->events[i].result)) {
            evidence->first_sticky_error = evidence->events[i].result;
            return;
        }
}

static void observe_events(struct gos_evidence *evidence)
{
    evidence->events =
        gos_scratch_alloc(&evidence->scratch, GOS_EVENT_RING * sizeof(*evidence->events));
    if (evidence->events == NULL) {
        gos_evidence_incomplete(evidence, "recent events (no memory for the list)");
        return;
    }
    evidence->event_count =
        gos_event_copy(evidence->events, GOS_EVENT_RING, &evidence->events_lost);
    find_sticky_error(evidence);
}

static bool is_forked(void)
{
    int initialised = atomic_load(&initialised_pid);

    return initialised != 0 && initialised != gos_os.pid();
}

bool gos_observe_forbids_driver(int result)
{
    return result == CUDA_ERROR_NOT_PERMITTED || is_forked();
}

static bool may_ask_driver(struct gos_evidence *evidence)
{
    if (gos_observe_forbids_driver(evidence->request.result)) {
        gos_evidence_incomplete(
            evidence, is_forked() ? "GPUs (this process was forked after CUDA was initialised in "
                                    "its parent)"
                                  : "GPUs (the driver permits no call here, so it was not asked)");
        return false;
    }
    if (gos_driver_is_held()) {
        gos_evidence_incomplete(evidence, "GPUs (the driver is busy with memory that somebody who "
                                          "was asked gives back)");
        return false;
    }
    gos_driver_bind();
    if (gos_driver.cuDeviceGetCount == NULL) {
        gos_evidence_incomplete(evidence, "GPUs (no CUDA driver is loaded)");
        return false;
    }
    return true;
}

static void observe_cheap(struct gos_evidence *evidence, struct gathering *gathering)
{
    observe_self(evidence);
    gos_snapshot_take(&gathering->snapshot, evidence);
    observe_events(evidence);
    evidence->captured = gos_capture_find(evidence->request.stream);
    gathering->ask_driver = may_ask_driver(evidence);
    if (!gathering->ask_driver)
        return;
    /* A pool's attributes and a stream's query also end a capture. */
    gos_relaxed_begin(&gathering->relaxed);
    gos_contexts_collect(&gathering->contexts, &gathering->snapshot);
    evidence->contexts = gathering->contexts.count;
    gos_device_state_driver(evidence, &gathering->contexts, &gathering->ids);
}

static void say_what_was_lost(struct gos_evidence *evidence)
{
    for (int loss = 0; loss < GOS_LOSS_COUNT; loss++)
        if (gos_loss_get((enum gos_loss)loss) > 0)
            gos_evidence_incomplete_format(evidence, "bookkeeping lost %llu times: %s",
                                           (unsigned long long)gos_loss_get((enum gos_loss)loss),
                                           gos_loss_name((enum gos_loss)loss));
    if (gos_fuse_tripped())
        gos_evidence_incomplete_format(evidence, "everything since tracking was given up: %s",
                                       gos_fuse_reason());
    if (gos_python_unsupported() != NULL)
        gos_evidence_incomplete_format(evidence, "Python frames (%s)", gos_python_unsupported());
}

/* Driver context: the thread's capture mode is relaxed if it can be. */
static void observe_moment(struct gos_evidence *evidence, struct gathering *gathering)
{
    bool harmless = gathering->ask_driver && (gathering->relaxed.is_on || gos_capture_count() == 0);

    if (harmless)
        gos_device_state_graphs(evidence);
    gos_growth_observe(evidence);
    gos_pool_state_observe(evidence, &gathering->snapshot, harmless);
    gos_streams_observe(evidence, harmless);
}

static void observe_lasting(struct gos_evidence *evidence)
{
    gos_host_observe(evidence);
    gos_environment_observe(evidence);
    gos_versions_observe(evidence);
    gos_command_line_observe(evidence);
    gos_not_seen_devices(evidence);
    say_what_was_lost(evidence);
}

/* Zeros of an NVML that was not asked are no answer of it. */
static void mark_nvml_unasked(struct gos_evidence *evidence)
{
    for (uint32_t ordinal = 0; ordinal < evidence->device_count; ordinal++) {
        evidence->devices[ordinal].nvml_status = -EAGAIN;
        evidence->devices[ordinal].processes_status = -EAGAIN;
    }
}

void gos_observe_lasting(struct gos_evidence *evidence)
{
    gos_thread.depth++;
    mark_nvml_unasked(evidence);
    gos_evidence_incomplete(evidence, "driver reserve and other processes (NVML was not asked when "
                                      "this failed, because the caller was expected to ask again)");
    gos_evidence_incomplete(evidence, "host, versions and environment at the moment of the failure "
                                      "(they are as they were when the process ended)");
    observe_lasting(evidence);
    gos_thread.depth--;
}

int gos_observe(struct gos_evidence *evidence, const struct gos_request *request, unsigned parts)
{
    uint64_t start_ns = gos_os.monotonic_ns();
    struct gathering gathering;

    memset(&gathering, 0, sizeof(gathering));
    gos_thread.depth++;
    if (request != NULL)
        evidence->request = *request;
    observe_cheap(evidence, &gathering);
    /* The driver and NVML first: of all that is seen, free memory changes fastest. */
    if (parts == GOS_OBSERVE_ALL && gathering.ask_driver)
        gos_device_state_nvml(evidence, &gathering.ids);
    if ((parts & GOS_OBSERVE_MOMENT) == GOS_OBSERVE_MOMENT)
        observe_moment(evidence, &gathering);
    if (parts == GOS_OBSERVE_ALL) {
        gos_processes_observe(evidence, &gathering.ids);
        observe_lasting(evidence);
    }
    gos_relaxed_end(&gathering.relaxed);
    evidence->metadata_bytes = gos_memory_mapped_bytes();
    evidence->collected_in_ns = gos_os.monotonic_ns() - start_ns;
    gos_thread.depth--;
    return evidence->uses == NULL ? -ENOMEM : 0;
}

void gos_observe_release(struct gos_evidence *evidence)
{
    gos_scratch_release(&evidence->scratch);
    memset(evidence, 0, sizeof(*evidence));
}

void gos_observe_reset_after_fork(void)
{
    gos_helper_reset_after_fork();
    gos_collector_reset_after_fork(); /* asks the interpreter */
    gos_python_api_reset_after_fork();
}
