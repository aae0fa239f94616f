/*
 * The reserve: memory of each device that is held back from its first use on
 * (GPUOOMSHIM_RESERVE), to be given up at a failure that it can serve.
 *
 * It is physical memory without an address (cuMemCreate): giving it back needs
 * no lock, no interpreter and no context, and unlike cuMemFree it waits for no
 * running kernel, since none can use it.  Whole 2 MiB blocks, so all of it is
 * free at once.
 *
 * A child after fork has none.  With the context that was current when it was
 * taken it goes, so that a host that ends its contexts leaves nothing behind.
 *
 * Hook context, with gos_thread.depth raised by the caller.
 */
#ifndef GOS_RECOVER_RESERVE_H
#define GOS_RECOVER_RESERVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Devices (bit i: ordinal i) that lack the reserve they should have. */
extern _Atomic uint64_t gos_reserve_lacking;

static inline bool gos_reserve_is_lacking(uint32_t device)
{
    return atomic_load_explicit(&gos_reserve_lacking, memory_order_relaxed) >> device & 1;
}

/* The settings have been read. */
void gos_reserve_start(void);

/*
 * The host has just got memory on the device, whose context is current: take
 * the reserve, if this is a moment for it.  The first time it is taken if it
 * fits (else one line on stderr); after it was given up only a second later,
 * and with as much again left free (at least 256 MiB), so that the host does
 * not fail for it.  Never while anything is captured.
 */
void gos_reserve_take(uint32_t device, uint64_t context);

/* Give it up.  Returns CUDA_SUCCESS (0), or what the driver said; *bytes: what it was. */
int gos_reserve_give_up(uint32_t device, uint64_t *bytes);

void gos_reserve_context_ended(uint64_t context);
void gos_reserve_reset_after_fork(void);

#endif
