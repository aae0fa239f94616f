#include "pool_state.h"

#include "../cuda/driver.h"
#include "../track/pool.h"

static bool attribute(uint64_t pool, CUmemPool_attribute which, uint64_t *value)
{
    cuuint64_t answer = 0;

    if (gos_driver.cuMemPoolGetAttribute == NULL ||
        gos_driver.cuMemPoolGetAttribute((CUmemoryPool)(uintptr_t)pool, which, &answer) !=
            CUDA_SUCCESS)
        return false;
    *value = answer;
    return true;
}

static void ask_driver(struct gos_pool_evidence *pool)
{
    pool->attributes_known =
        attribute(pool->pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &pool->reserved_bytes) &&
        attribute(pool->pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &pool->used_bytes) &&
        attribute(pool->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &pool->threshold_bytes);
}

static struct gos_pool_evidence describe(const struct gos_snapshot *snapshot,
                                         const struct gos_pool_info *info)
{
    return (struct gos_pool_evidence){
        .pool = info->pool,
        .device = info->device,
        .is_default = info->is_default,
        .imported = info->imported,
        .used_sticks = info->used_sticks,
        .live_bytes = gos_snapshot_pool_bytes(snapshot, info->pool),
    };
}

static void add_pools(struct gos_evidence *evidence, const struct gos_snapshot *snapshot,
                      const struct gos_pool_info *infos, size_t count, bool ask)
{
    bool silent = false;

    for (size_t i = 0; i < count; i++) {
        struct gos_pool_evidence *pool = &evidence->pools[i];

        *pool = describe(snapshot, &infos[i]);
        if (ask)
            ask_driver(pool);
        silent = silent || !pool->attributes_known;
    }
    if (silent)
        gos_evidence_incomplete(evidence, "reserved and used bytes of some memory pools");
}

void gos_pool_state_observe(struct gos_evidence *evidence, const struct gos_snapshot *snapshot,
                            bool ask)
{
    struct gos_pool_info infos[GOS_POOL_MAX];
    size_t count = gos_pool_list(infos, GOS_POOL_MAX);

    if (count == 0)
        return;
    evidence->pools = gos_scratch_alloc(&evidence->scratch, count * sizeof(*evidence->pools));
    if (evidence->pools == NULL) {
        gos_evidence_incomplete(evidence, "memory pools (no memory for the list)");
        return;
    }
    evidence->pool_count = count;
    add_pools(evidence, snapshot, infos, count, ask);
}
