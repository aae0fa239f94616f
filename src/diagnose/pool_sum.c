#include "pool_sum.h"

#include "saturate.h"

/* A count that sticks is not believed over our books; nor is one that is more than there is. */
static bool used_sticks(const struct gos_pool_evidence *pool)
{
    return pool->used_sticks || pool->used_bytes > pool->reserved_bytes;
}

uint64_t gos_pool_used_bytes(const struct gos_pool_evidence *pool)
{
    return used_sticks(pool) ? gos_lesser(pool->live_bytes, pool->reserved_bytes)
                             : pool->used_bytes;
}

/* What the pools of a device say, before it is set against our books. */
struct raw_sum {
    uint64_t reserved;
    uint64_t used;
    uint64_t imported_live; /* on our books, but not on this process' account */
    uint64_t silent_live;   /* on our books, in pools that told nothing */
    uint64_t unpinned;
    uint64_t unused;   /* of that, in pools in which nothing is in use */
    uint64_t unbooked; /* in use, but not on our books: pending, or somebody else's */
    uint64_t freed;    /* in stream order, on any pool of the device */
    bool silent;
    bool sticks; /* what one of them says is in use had to be taken from our books */
    bool any;
};

static void add_known(struct raw_sum *raw, const struct gos_pool_evidence *pool)
{
    uint64_t reserved = pool->reserved_bytes;
    uint64_t used = gos_pool_used_bytes(pool);
    raw->any = true;
    raw->sticks = raw->sticks || used_sticks(pool);
    raw->used = gos_plus(raw->used, used);
    raw->reserved = gos_plus(raw->reserved, reserved);
    /* More in use than was freed: somebody else's allocation, which we do not see, pins it. */
    if (pool->live_bytes == 0 && used <= raw->freed)
        raw->unpinned = gos_plus(raw->unpinned, reserved);
    if (pool->live_bytes == 0 && used == 0)
        raw->unused = gos_plus(raw->unused, reserved);
    raw->unbooked = gos_plus(raw->unbooked, gos_beyond(used, pool->live_bytes));
}

static void add_pool(struct raw_sum *raw, const struct gos_pool_evidence *pool)
{
    if (pool->imported) {
        raw->imported_live = gos_plus(raw->imported_live, pool->live_bytes);
    } else if (pool->attributes_known) {
        add_known(raw, pool);
    } else {
        raw->silent = true;
        raw->silent_live = gos_plus(raw->silent_live, pool->live_bytes);
    }
}

uint64_t gos_pool_freed_bytes(const struct gos_evidence *evidence, uint32_t device)
{
    uint64_t freed = 0;
    for (size_t i = 0; i < evidence->stream_count; i++)
        if (evidence->streams[i].device == device)
            freed = gos_plus(freed, evidence->streams[i].freed_bytes);
    return freed;
}

void gos_pool_sum_make(const struct gos_evidence *evidence,
                       const struct gos_device_evidence *device, struct gos_pool_sum *sum)
{
    uint32_t ordinal = (uint32_t)device->ordinal;
    uint64_t freed = gos_pool_freed_bytes(evidence, ordinal);
    struct raw_sum raw = {.freed = freed};
    for (size_t i = 0; i < evidence->pool_count; i++)
        if (evidence->pools[i].device == ordinal)
            add_pool(&raw, &evidence->pools[i]);

    uint64_t books = gos_beyond(device->live[GOS_KIND_POOL].live_bytes,
                                gos_plus(raw.imported_live, raw.silent_live));
    uint64_t used_but_freed = gos_lesser(gos_beyond(raw.used, books), freed);
    uint64_t used = raw.used - used_but_freed;
    uint64_t unused = gos_beyond(raw.reserved, used);

    *sum = (struct gos_pool_sum){.any = raw.any};
    /* Books above what the pools admit to: a pool is missing from the list. */
    sum->complete = !raw.silent && books <= raw.used;
    sum->live_bytes = gos_plus(gos_greater(used, books), raw.silent_live);
    sum->pending_bytes = gos_lesser(freed, unused);
    sum->idle_bytes = unused - sum->pending_bytes;
    sum->unpinned_bytes = gos_lesser(raw.unpinned, unused);
    /*
     * Which of the pools it is in cannot be told, so that all of it has to be what was freed.  Our
     * books do not know who else uses a pool, so that alone they prove nothing.
     */
    if (!raw.sticks)
        sum->surely_unpinned_bytes =
            raw.unbooked == freed ? sum->unpinned_bytes : gos_lesser(raw.unused, unused);
    sum->unplaced_bytes = sum->complete ? 0 : freed - sum->pending_bytes;
    sum->reserved_bytes = gos_plus(sum->live_bytes, unused);
}

/* A stream-ordered request that names no pool is served by the device's default pool. */
static bool serves(const struct gos_pool_evidence *pool, const struct gos_request *request)
{
    return request->pool ? pool->pool == request->pool : pool->is_default;
}

uint64_t gos_pool_unused_own(const struct gos_evidence *evidence, uint32_t device)
{
    const struct gos_request *request = &evidence->request;
    if (request->kind != GOS_KIND_POOL)
        return 0;
    for (size_t i = 0; i < evidence->pool_count; i++) {
        const struct gos_pool_evidence *pool = &evidence->pools[i];
        if (pool->device == device && serves(pool, request))
            return pool->attributes_known
                       ? gos_beyond(pool->reserved_bytes,
                                    gos_lesser(gos_pool_used_bytes(pool), pool->live_bytes))
                       : 0;
    }
    return 0;
}
