#include "handle_map.h"

#include "../base/hot.h"
#include "../base/loss.h"

GOS_READ_MOSTLY _Atomic uint64_t gos_generation;

void gos_handle_invalidate(void)
{
    atomic_fetch_add_explicit(&gos_generation, 1, memory_order_relaxed);
}

/* Maps are small and the wanted handle is among the first: a scan beats a hash. */
static struct gos_handle_slot *slot_of(struct gos_handle_map *map, uint64_t handle)
{
    uint32_t used = atomic_load_explicit(&map->used, memory_order_acquire);

    for (uint32_t i = 0; i < used; i++) {
        if (atomic_load_explicit(&map->slots[i].handle, memory_order_acquire) == handle)
            return &map->slots[i];
    }
    return NULL;
}

bool gos_handle_map_get(struct gos_handle_map *map, uint64_t handle, uint64_t *value)
{
    struct gos_handle_slot *slot = handle ? slot_of(map, handle) : NULL;

    if (!slot)
        return false;
    *value = atomic_load_explicit(&slot->value, memory_order_relaxed);
    return true;
}

static struct gos_handle_slot *free_slot(struct gos_handle_map *map)
{
    uint32_t used = atomic_load_explicit(&map->used, memory_order_relaxed);
    struct gos_handle_slot *slot = slot_of(map, 0);

    if (slot || used == map->capacity)
        return slot;
    atomic_store_explicit(&map->used, used + 1, memory_order_release);
    return &map->slots[used];
}

bool gos_handle_map_put(struct gos_handle_map *map, uint64_t handle, uint64_t value)
{
    struct gos_handle_slot *slot;

    if (!handle)
        return false;
    gos_lock_acquire(&map->lock);
    slot = slot_of(map, handle);
    if (!slot)
        slot = free_slot(map);
    if (slot) {
        atomic_store_explicit(&slot->value, value, memory_order_relaxed);
        atomic_store_explicit(&slot->handle, handle, memory_order_release);
    }
    gos_lock_release(&map->lock);
    if (!slot)
        gos_loss_count(GOS_LOSS_TABLE);
    return slot != NULL;
}

void gos_handle_map_remove(struct gos_handle_map *map, uint64_t handle)
{
    struct gos_handle_slot *slot;

    gos_lock_acquire(&map->lock);
    slot = handle ? slot_of(map, handle) : NULL;
    if (slot)
        atomic_store_explicit(&slot->handle, 0, memory_order_release);
    gos_lock_release(&map->lock);
    gos_handle_invalidate();
}

void gos_handle_map_walk(struct gos_handle_map *map,
                         bool (*visit)(uint64_t handle, uint64_t value, void *arg), void *arg)
{
    uint32_t used = atomic_load_explicit(&map->used, memory_order_acquire);

    for (uint32_t i = 0; i < used; i++) {
        uint64_t handle = atomic_load_explicit(&map->slots[i].handle, memory_order_acquire);
        uint64_t value = atomic_load_explicit(&map->slots[i].value, memory_order_relaxed);

        if (handle && !visit(handle, value, arg))
            return;
    }
}

void gos_handle_map_reset_after_fork(struct gos_handle_map *map)
{
    gos_lock_reset(&map->lock);
    for (uint32_t i = 0; i < map->capacity; i++)
        atomic_store_explicit(&map->slots[i].handle, 0, memory_order_relaxed);
    atomic_store_explicit(&map->used, 0, memory_order_relaxed);
}
