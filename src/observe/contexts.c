#include "contexts.h"

#include "../track/pool.h"

/* Streams with pending frees that are looked at for contexts; the rest repeat them. */
#define PENDING_LOOK 64

static bool is_known(const struct gos_contexts *contexts, uint64_t context)
{
    for (size_t i = 0; i < contexts->count; i++)
        if (contexts->contexts[i] == context)
            return true;
    return false;
}

static void add(struct gos_contexts *contexts, uint64_t context, uint32_t device)
{
    if (context == 0 || device >= GOS_DEVICE_MAX || contexts->count == GOS_CONTEXTS_MAX ||
        is_known(contexts, context))
        return;
    contexts->contexts[contexts->count] = context;
    contexts->devices[contexts->count++] = device;
}

static void add_current(struct gos_contexts *contexts)
{
    CUcontext current = NULL;
    CUdevice device = -1;

    if (gos_driver.cuCtxGetCurrent == NULL || gos_driver.cuCtxGetDevice == NULL)
        return;
    if (gos_driver.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current == NULL)
        return;
    if (gos_driver.cuCtxGetDevice(&device) == CUDA_SUCCESS && device >= 0)
        add(contexts, (uint64_t)(uintptr_t)current, (uint32_t)device);
}

/* Track forgets a context when it is destroyed, so that a stale handle is not used. */
static void add_tracked(uint64_t context, void *arg)
{
    uint32_t device;

    if (gos_context_device(context, &device))
        add(arg, context, device);
}

static void add_pending(struct gos_contexts *contexts)
{
    struct gos_pending pending[PENDING_LOOK];
    size_t count = gos_pending_list(pending, PENDING_LOOK);

    for (size_t i = 0; i < count; i++)
        add_tracked(pending[i].context, contexts);
}

void gos_contexts_collect(struct gos_contexts *contexts, const struct gos_snapshot *snapshot)
{
    contexts->count = 0;
    add_current(contexts);
    gos_snapshot_contexts(snapshot, add_tracked, contexts);
    add_pending(contexts);
}

uint64_t gos_contexts_of(const struct gos_contexts *contexts, uint32_t device)
{
    for (size_t i = 0; i < contexts->count; i++)
        if (contexts->devices[i] == device)
            return contexts->contexts[i];
    return 0;
}

uint32_t gos_contexts_count(const struct gos_contexts *contexts, uint32_t device)
{
    uint32_t count = 0;

    for (size_t i = 0; i < contexts->count; i++)
        count += contexts->devices[i] == device;
    return count;
}

static bool can_visit(void)
{
    return gos_driver.cuCtxGetCurrent != NULL && gos_driver.cuCtxSetCurrent != NULL &&
           gos_driver.cuCtxPushCurrent != NULL && gos_driver.cuCtxPopCurrent != NULL;
}

bool gos_contexts_enter(struct gos_contexts_visit *visit, uint64_t context)
{
    CUcontext wanted = (CUcontext)(uintptr_t)context;

    *visit = (struct gos_contexts_visit){NULL, false};
    if (context == 0 || !can_visit() || gos_driver.cuCtxGetCurrent(&visit->before) != CUDA_SUCCESS)
        return false;
    if (visit->before == wanted)
        return true;
    visit->pushed = gos_driver.cuCtxPushCurrent(wanted) == CUDA_SUCCESS;
    return visit->pushed;
}

/*
 * A pop that fails (the context died while we were in it) must not leave the
 * host in a context that it did not choose.
 */
void gos_contexts_leave(const struct gos_contexts_visit *visit)
{
    CUcontext popped, current = NULL;

    if (!visit->pushed)
        return;
    gos_driver.cuCtxPopCurrent(&popped);
    if (gos_driver.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current != visit->before)
        gos_driver.cuCtxSetCurrent(visit->before);
}
