#include "held.h"

#include <stdatomic.h>

#include "registry.h"

static _Atomic uint64_t held_bytes[GOS_DEVICE_MAX];

void gos_held_set(uint32_t device, uint64_t bytes)
{
    if (device < GOS_DEVICE_MAX)
        atomic_store(&held_bytes[device], bytes);
}

uint64_t gos_held_bytes(uint32_t device)
{
    return device < GOS_DEVICE_MAX ? atomic_load(&held_bytes[device]) : 0;
}
