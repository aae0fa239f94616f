#include "framework.h"

#include <string.h>

#include "holder.h"
#include "saturate.h"

uint64_t gos_framework_idle_bytes(const struct gos_framework_evidence *framework)
{
    return framework->in_driver_pools
               ? 0
               : gos_beyond(framework->reserved_bytes, framework->used_bytes);
}

uint64_t gos_framework_givable_bytes(const struct gos_framework_evidence *framework)
{
    uint64_t idle = gos_framework_idle_bytes(framework);
    if (framework->releasable_known)
        return gos_lesser(framework->releasable_bytes, idle);
    return gos_beyond(idle, framework->inactive_split_bytes);
}

/* More in use than the books show as held: somebody else's stack is on some of its segments. */
uint64_t gos_framework_opaque_bytes(const struct gos_evidence *evidence, const char *name,
                                    int device, uint64_t held_bytes)
{
    const struct gos_device_evidence *on = device >= 0 ? &evidence->devices[device] : NULL;
    bool is_told = on && on->torch_used_known && strcmp(name, "torch") == 0;
    return is_told && on->torch_used_bytes <= held_bytes ? held_bytes - on->torch_used_bytes
                                                         : held_bytes;
}

bool gos_framework_serves(const struct gos_framework_evidence *framework,
                          const struct gos_evidence *evidence)
{
    const struct gos_request *request = &evidence->request;
    return request->api && request->bytes_known && request->bytes > 0 &&
           strcmp(framework->name, gos_holder_of_request(request)) == 0;
}

/* --- ledger --- */

static uint64_t move(struct gos_ledger *ledger, enum gos_ledger_line from, uint64_t bytes)
{
    uint64_t moved = gos_lesser(bytes, (uint64_t)ledger->lines[from].bytes);
    ledger->lines[from].bytes -= (int64_t)moved;
    ledger->lines[GOS_LEDGER_FRAMEWORK_IDLE].bytes += (int64_t)moved;
    return moved;
}

/* Segments are device memory, expandable ones physical memory; both may exist side by side. */
static bool split_one(const struct gos_framework_evidence *framework, struct gos_ledger *ledger)
{
    bool physical = framework->expandable == GOS_SETTING_ON;
    enum gos_ledger_line first = physical ? GOS_LEDGER_LIVE_PHYSICAL : GOS_LEDGER_LIVE_DEVICE;
    enum gos_ledger_line second = physical ? GOS_LEDGER_LIVE_DEVICE : GOS_LEDGER_LIVE_PHYSICAL;
    uint64_t idle = gos_framework_idle_bytes(framework);
    idle -= move(ledger, first, idle);
    idle -= move(ledger, second, idle);
    return idle == 0;
}

void gos_framework_split(const struct gos_evidence *evidence, uint32_t device,
                         struct gos_ledger *ledger)
{
    enum gos_source source = GOS_SOURCE_MEASURED;
    for (size_t i = 0; i < evidence->framework_count; i++) {
        const struct gos_framework_evidence *framework = &evidence->frameworks[i];
        if (framework->device != device)
            continue;
        if (!split_one(framework, ledger))
            source = GOS_SOURCE_UNKNOWN;
        else if (framework->is_late && source == GOS_SOURCE_MEASURED)
            source = GOS_SOURCE_DERIVED;
    }
    ledger->lines[GOS_LEDGER_FRAMEWORK_IDLE].source = source;
}

/* --- fragmentation --- */

static uint64_t useful_bytes(const struct gos_evidence *evidence,
                             const struct gos_framework_evidence *framework)
{
    return gos_framework_serves(framework, evidence) ? framework->fitting_bytes
                                                     : gos_framework_givable_bytes(framework);
}

void gos_framework_fragmentation(const struct gos_evidence *evidence, uint32_t device,
                                 struct gos_fragmentation *fragmentation)
{
    uint64_t idle = 0;
    uint64_t useful = 0;
    for (size_t i = 0; i < evidence->framework_count; i++) {
        const struct gos_framework_evidence *framework = &evidence->frameworks[i];
        if (framework->device != device || !framework->map_known)
            continue;
        idle = gos_plus(idle, gos_framework_idle_bytes(framework));
        useful = gos_plus(useful, useful_bytes(evidence, framework));
    }
    fragmentation->framework_idle_bytes = idle;
    fragmentation->framework_stuck_bytes = gos_beyond(idle, useful);
    fragmentation->framework_permille = gos_permille(fragmentation->framework_stuck_bytes, idle);
}
