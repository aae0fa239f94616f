#include "driver.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/module.h"

struct gos_driver gos_driver;

static _Atomic bool bound;

/*
 * Two threads may bind at the same time: both store the same address, and a
 * symbol that is missing leaves what a test put there.
 */
#define BIND(member, symbol, type)                                                                 \
    address = gos_module_symbol(libcuda, #symbol);                                                 \
    if (address != 0)                                                                              \
        __atomic_store_n(&gos_driver.member, (type)address, __ATOMIC_RELAXED);

static void bind_members(const struct gos_module *libcuda)
{
    uintptr_t address;

    GOS_DRIVER_CALLS(BIND)
}

bool gos_driver_bind(void)
{
    const struct gos_module *libcuda;

    if (atomic_load_explicit(&bound, memory_order_acquire))
        return true;
    libcuda = gos_module_named("libcuda.so");
    if (libcuda == NULL)
        return false;
    bind_members(libcuda);
    atomic_store_explicit(&bound, true, memory_order_release);
    return true;
}

#define FORGET(member, symbol, type) __atomic_store_n(&gos_driver.member, NULL, __ATOMIC_RELAXED);

void gos_driver_replaced(void)
{
    if (!atomic_exchange(&bound, false))
        return;
    GOS_DRIVER_CALLS(FORGET)
    gos_driver_bind();
}

_Atomic bool gos_driver_held;

uint64_t gos_driver_free_bytes(void)
{
    size_t available = 0;
    size_t total = 0;

    if (gos_driver_is_held() || !gos_driver.cuMemGetInfo ||
        gos_driver.cuMemGetInfo(&available, &total) != CUDA_SUCCESS)
        return 0;
    return available;
}
