#include "context.h"

#include "handle_map.h"
#include "pending.h"

static struct gos_handle_slot slots[GOS_CONTEXT_MAX];
static struct gos_handle_map contexts = GOS_HANDLE_MAP_INIT(slots);

bool gos_context_device(uint64_t context, uint32_t *device)
{
    uint64_t value;

    if (!gos_handle_map_get(&contexts, context, &value))
        return false;
    *device = (uint32_t)value;
    return true;
}

void gos_context_seen(uint64_t context, uint32_t device)
{
    gos_handle_map_put(&contexts, context, device);
}

struct wanted {
    uint32_t device;
    bool found;
};

static bool is_on(uint64_t context, uint64_t device, void *arg)
{
    struct wanted *wanted = arg;

    (void)context;
    wanted->found = device == wanted->device;
    return !wanted->found;
}

bool gos_context_any_on(uint32_t device)
{
    struct wanted wanted = {device, false};

    gos_handle_map_walk(&contexts, is_on, &wanted);
    return wanted.found;
}

void gos_context_destroyed(uint64_t context)
{
    gos_pending_context_destroyed(context);
    gos_handle_map_remove(&contexts, context);
}

void gos_context_reset_after_fork(void)
{
    gos_handle_map_reset_after_fork(&contexts);
}
