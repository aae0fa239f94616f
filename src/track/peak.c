#include "peak.h"

#include "shard.h"

static struct {
    _Alignas(GOS_CACHE_LINE) _Atomic int64_t now_bytes;
    _Atomic int64_t peak_bytes;
} devices[GOS_DEVICE_TABLES];

static void raise_to(_Atomic int64_t *peak, int64_t now)
{
    int64_t highest = atomic_load_explicit(peak, memory_order_relaxed);

    while (now > highest && !atomic_compare_exchange_weak_explicit(
                                peak, &highest, now, memory_order_relaxed, memory_order_relaxed))
        ;
}

/* Half of what may be held back stays, so that a block that comes and goes tells nothing. */
void gos_peak_tell(uint32_t device, int64_t *held_back)
{
    int64_t bytes = *held_back - GOS_PEAK_HELD_BYTES / 2;
    int64_t before =
        atomic_fetch_add_explicit(&devices[device].now_bytes, bytes, memory_order_relaxed);

    raise_to(&devices[device].peak_bytes, before + bytes);
    *held_back = GOS_PEAK_HELD_BYTES / 2;
}

static uint64_t live_now(uint32_t device)
{
    uint64_t bytes = 0;

    for (int kind = 0; kind < GOS_KIND_COUNT; kind++) {
        if (gos_peak_counts((enum gos_kind)kind))
            bytes += gos_registry_total(device, (enum gos_kind)kind).live_bytes;
    }
    return bytes;
}

/* What is live now is known exactly, and often is the peak. */
uint64_t gos_registry_peak_bytes(uint32_t device)
{
    if (device >= GOS_DEVICE_TABLES)
        return 0;
    raise_to(&devices[device].peak_bytes, (int64_t)live_now(device));
    return (uint64_t)atomic_load_explicit(&devices[device].peak_bytes, memory_order_relaxed);
}

void gos_peak_reset_after_fork(void)
{
    for (int i = 0; i < GOS_DEVICE_TABLES; i++) {
        atomic_store_explicit(&devices[i].now_bytes, 0, memory_order_relaxed);
        atomic_store_explicit(&devices[i].peak_bytes, 0, memory_order_relaxed);
    }
}
