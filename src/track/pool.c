#include "pool.h"

#include "graph_memory.h"
#include "handle_map.h"
#include "registry.h"
#include "stream_use.h"

static struct gos_handle_slot slots[GOS_POOL_MAX];
static struct gos_handle_map pools = GOS_HANDLE_MAP_INIT(slots);

/* All of a pool's facts in one number, so that a lock-free reader sees them together. */
enum {
    SITE_SHIFT = 32,
    DEFAULT_BIT = 1 << 8,
    IMPORTED_BIT = 1 << 9,
    MANAGED_BIT = 1 << 10,
    STICKS_BIT = 1 << 11,
    DEVICE_MASK = 0xff
};

static uint64_t pack(const struct gos_pool_info *info)
{
    return (uint64_t)info->site << SITE_SHIFT | (info->is_default ? DEFAULT_BIT : 0u) |
           (info->imported ? IMPORTED_BIT : 0u) | (info->is_managed ? MANAGED_BIT : 0u) |
           (info->used_sticks ? STICKS_BIT : 0u) | (info->device & DEVICE_MASK);
}

static struct gos_pool_info unpack(uint64_t pool, uint64_t value)
{
    return (struct gos_pool_info){
        .pool = pool,
        .device = (uint32_t)value & DEVICE_MASK,
        .is_default = value & DEFAULT_BIT,
        .imported = value & IMPORTED_BIT,
        .is_managed = value & MANAGED_BIT,
        .used_sticks = value & STICKS_BIT,
        .site = (uint32_t)(value >> SITE_SHIFT),
    };
}

static struct gos_pool_info merge(struct gos_pool_info known, const struct gos_pool_info *seen)
{
    known.is_default |= seen->is_default;
    known.imported |= seen->imported;
    known.is_managed |= seen->is_managed;
    known.used_sticks |= seen->used_sticks;
    if (!known.site)
        known.site = seen->site;
    return known;
}

bool gos_pool_seen(const struct gos_pool_info *info)
{
    struct gos_pool_info known;
    uint64_t value = pack(info);

    if (gos_pool_find(info->pool, &known)) {
        uint64_t before = pack(&known);

        known = merge(known, info);
        value = pack(&known);
        if (value == before)
            return true;
    }
    return gos_handle_map_put(&pools, info->pool, value);
}

void gos_pool_used_sticks(uint64_t pool)
{
    struct gos_pool_info info;

    if (!gos_pool_find(pool, &info) || info.used_sticks)
        return;
    info.used_sticks = true;
    gos_pool_seen(&info);
}

bool gos_pool_find(uint64_t pool, struct gos_pool_info *info)
{
    uint64_t value;

    if (!gos_handle_map_get(&pools, pool, &value))
        return false;
    *info = unpack(pool, value);
    return true;
}

void gos_pool_destroyed(uint64_t pool)
{
    gos_handle_map_remove(&pools, pool);
}

struct list {
    struct gos_pool_info *pools;
    size_t count;
    size_t max;
};

static bool append(uint64_t pool, uint64_t value, void *arg)
{
    struct list *list = arg;

    if ((value & DEVICE_MASK) >= GOS_DEVICE_MAX || (value & MANAGED_BIT))
        return true;
    if (list->count == list->max)
        return false;
    list->pools[list->count++] = unpack(pool, value);
    return true;
}

size_t gos_pool_list(struct gos_pool_info *infos, size_t max)
{
    struct list list = {infos, 0, max};

    gos_handle_map_walk(&pools, append, &list);
    return list.count;
}

void gos_pool_reset_after_fork(void)
{
    gos_handle_map_reset_after_fork(&pools);
    gos_context_reset_after_fork();
    gos_pending_reset_after_fork();
    gos_stream_use_reset_after_fork();
    gos_capture_reset_after_fork();
    gos_graph_reset_after_fork();
    gos_handle_invalidate();
}
