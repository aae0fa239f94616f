/*
 * Memory pools, and with them the other driver objects that stream-ordered
 * memory belongs to: streams with pending frees, contexts, captures.
 *
 * Hook context: yes; looking up is lock-free.  Handles are kept as numbers;
 * nothing here calls the driver.
 */
#ifndef GOS_TRACK_POOL_H
#define GOS_TRACK_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture.h"
#include "context.h"
#include "pending.h"

#define GOS_POOL_MAX 128

struct gos_pool_info {
    uint64_t pool;
    uint32_t device; /* ordinal, or GOS_DEVICE_HOST */
    bool is_default; /* of its device */
    bool is_managed; /* of managed memory; then the device is the preferred one, if any */
    bool imported;
    /*
     * Something was freed by cuMemFree, which the driver's count of what is in
     * use does not notice [H200]: from then on it says too much.
     */
    bool used_sticks;
    uint32_t site; /* where it was created, 0 for default pools */
};

/*
 * Seen (created, default or current, imported).  Again is harmless: what is
 * known stays, what is new is added.  False when the table is full.
 */
bool gos_pool_seen(const struct gos_pool_info *info);
void gos_pool_used_sticks(uint64_t pool);
bool gos_pool_find(uint64_t pool, struct gos_pool_info *info);
void gos_pool_destroyed(uint64_t pool);
/* Pools of device memory; those of host and managed memory are left out. */
size_t gos_pool_list(struct gos_pool_info *pools, size_t max);

/* In a forked child: pools, pending frees, contexts, captures and graphs are forgotten. */
void gos_pool_reset_after_fork(void);

#endif
