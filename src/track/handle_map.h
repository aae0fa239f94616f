/*
 * A small table from driver handles to numbers, read without a lock.  Handles
 * are 64-bit numbers other than 0.
 *
 * A reader that races with the removal of the very handle it asks for gets
 * either answer: its host is using an object that it is destroying.
 *
 * Hook context: yes.  Writers take the map's lock.
 */
#ifndef GOS_TRACK_HANDLE_MAP_H
#define GOS_TRACK_HANDLE_MAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/lock.h"

struct gos_handle_slot {
    _Atomic uint64_t handle; /* 0: free */
    _Atomic uint64_t value;
};

struct gos_handle_map {
    struct gos_lock lock;
    uint32_t capacity;
    _Atomic uint32_t used; /* slots from here on were never used */
    struct gos_handle_slot *slots;
};
#define GOS_HANDLE_MAP_INIT(storage)                                                               \
    {                                                                                              \
        GOS_LOCK_INIT(GOS_RANK_POOL), sizeof(storage) / sizeof((storage)[0]), 0, (storage)         \
    }

bool gos_handle_map_get(struct gos_handle_map *map, uint64_t handle, uint64_t *value);
/* Add or overwrite; false when the map is full (counted as lost) or the handle is 0. */
bool gos_handle_map_put(struct gos_handle_map *map, uint64_t handle, uint64_t value);
/* Harmless for an unknown handle; counts the generation up either way. */
void gos_handle_map_remove(struct gos_handle_map *map, uint64_t handle);
/* Visit the pairs in the order of their slots until visit returns false.  Lock-free. */
void gos_handle_map_walk(struct gos_handle_map *map,
                         bool (*visit)(uint64_t handle, uint64_t value, void *arg), void *arg);
void gos_handle_map_reset_after_fork(struct gos_handle_map *map);

/* Counts up whenever a handle became invalid; thread-local caches compare it. */
void gos_handle_invalidate(void);
extern _Atomic uint64_t gos_generation;
static inline uint64_t gos_handle_generation(void)
{
    return atomic_load_explicit(&gos_generation, memory_order_relaxed);
}

#endif
