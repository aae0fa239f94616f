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

void gos_context_destroyed(uint64_t context)
{
    gos_pending_context_destroyed(context);
    gos_handle_map_remove(&contexts, context);
}

void gos_context_reset_after_fork(void)
{
    gos_handle_map_reset_after_fork(&contexts);
}
