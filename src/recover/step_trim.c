#include "step_trim.h"

#include <stddef.h>

#include "../cuda/driver.h"
#include "../diagnose/pool_sum.h"
#include "../track/pool.h"

static bool concerns(const struct gos_diagnosis *diagnosis, const struct gos_pool_evidence *pool)
{
    return (int)pool->device == diagnosis->device && pool->attributes_known &&
           pool->reserved_bytes > gos_pool_used_bytes(pool);
}

static bool graph_memory_is_idle(const struct gos_diagnosis *diagnosis)
{
    const struct gos_device_evidence *device = &diagnosis->evidence->devices[diagnosis->device];

    return device->graph_reserved_bytes > device->graph_used_bytes;
}

bool gos_step_trim_may_help(const struct gos_ladder *ladder, const char **why_not)
{
    const struct gos_diagnosis *diagnosis = ladder->diagnosis;
    const struct gos_evidence *evidence = diagnosis->evidence;

    for (size_t i = 0; i < evidence->pool_count; i++)
        if (concerns(diagnosis, &evidence->pools[i]))
            return true;
    if (graph_memory_is_idle(diagnosis))
        return true;
    *why_not = "no pool holds idle memory";
    return false;
}

static void note(struct gos_step_record *record, CUresult result)
{
    if (result == CUDA_SUCCESS)
        return;
    record->result = "error";
    record->reason = "a pool could not be trimmed";
    record->cuda_result = (int)result;
}

bool gos_step_trim_run(struct gos_ladder *ladder, struct gos_step_record *record)
{
    const struct gos_diagnosis *diagnosis = ladder->diagnosis;
    const struct gos_evidence *evidence = diagnosis->evidence;
    bool trimmed = false;

    record->result = "no help";
    for (size_t i = 0; i < evidence->pool_count && gos_driver.cuMemPoolTrimTo; i++) {
        if (!concerns(diagnosis, &evidence->pools[i]))
            continue;
        struct gos_pool_info info;
        CUmemoryPool pool = (CUmemoryPool)(uintptr_t)evidence->pools[i].pool;
        if (!gos_pool_find(evidence->pools[i].pool, &info))
            continue; /* destroyed meanwhile */
        CUresult result = gos_driver.cuMemPoolTrimTo(pool, 0);
        trimmed |= result == CUDA_SUCCESS;
        note(record, result);
    }
    if (graph_memory_is_idle(diagnosis) && gos_driver.cuDeviceGraphMemTrim) {
        CUresult result = gos_driver.cuDeviceGraphMemTrim((CUdevice)diagnosis->device);
        trimmed |= result == CUDA_SUCCESS;
        note(record, result);
    }
    record->is_whole = trimmed && record->cuda_result == CUDA_SUCCESS;
    return trimmed;
}
