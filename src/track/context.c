#include "context.h"

#include "../base/hot.h"
#include "capture.h"
#include "handle_map.h"
#include "home.h"
#include "pending.h"

static struct gos_handle_slot slots[GOS_CONTEXT_MAX];
static struct gos_handle_map contexts = GOS_HANDLE_MAP_INIT(slots);

#define SEVERAL UINT64_MAX

static GOS_READ_MOSTLY _Atomic uint64_t first; /* 0: none yet */

bool gos_context_device(uint64_t context, uint32_t *device)
{
    uint64_t value;

    if (!gos_handle_map_get(&contexts, context, &value))
        return false;
    *device = (uint32_t)value;
    return true;
}

static void note_whether_only(uint64_t context)
{
    uint64_t known = 0;

    if (!atomic_compare_exchange_strong(&first, &known, context) && known != context)
        atomic_store(&first, SEVERAL);
}

uint64_t gos_context_only(void)
{
    uint64_t known = atomic_load_explicit(&first, memory_order_relaxed);

    return known != SEVERAL ? known : 0;
}

void gos_context_seen(uint64_t context, uint32_t device)
{
    note_whether_only(context);
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
    gos_capture_context_ended(context);
    gos_home_context_ended(context);
    gos_handle_map_remove(&contexts, context);
}

void gos_context_reset_after_fork(void)
{
    gos_handle_map_reset_after_fork(&contexts);
    atomic_store(&first, 0);
}
