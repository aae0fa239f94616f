#include "fallbacks.h"

static void add(struct gos_evidence *evidence, uint32_t device, enum gos_fallback way)
{
    struct gos_total total = gos_fallback_total(device, way);

    if (total.live_count > 0 && evidence->fallback_count < GOS_FALLBACK_ROWS)
        evidence->fallbacks[evidence->fallback_count++] =
            (struct gos_fallback_evidence){.way = way, .device = device, .total = total};
}

void gos_fallbacks_observe(struct gos_evidence *evidence)
{
    evidence->fallback_count = 0;
    if (atomic_load(&gos_fallback_count) == 0)
        return;
    for (uint32_t device = 0; device < GOS_DEVICE_MAX; device++)
        for (unsigned way = 0; way < GOS_FALLBACK_COUNT; way++)
            add(evidence, device, (enum gos_fallback)way);
}
