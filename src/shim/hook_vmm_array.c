/*
 * Physical memory mapped into arrays.  The driver maps and unmaps in stream
 * order; here it counts from the call on.
 */
#include <errno.h>

#include "../track/vmm.h"
#include "watched.h"

static uint64_t array_of(const CUarrayMapInfo *info)
{
    return info->resourceType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY
               ? (uint64_t)(uintptr_t)info->resource.mipmap
               : (uint64_t)(uintptr_t)info->resource.array;
}

/* A dimension that the array does not have. */
static uint64_t at_least_one(unsigned int extent)
{
    return extent ? extent : 1;
}

static struct gos_vmm_part part_of(const CUarrayMapInfo *info)
{
    struct gos_vmm_part part = {.array = array_of(info),
                                .is_tail = info->subresourceType ==
                                           CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL};

    if (part.is_tail) {
        part.layer = info->subresource.miptail.layer;
        part.start[0] = info->subresource.miptail.offset;
        part.extent[0] = info->subresource.miptail.size;
        part.extent[1] = part.extent[2] = 1;
        return part;
    }
    part.level = info->subresource.sparseLevel.level;
    part.layer = info->subresource.sparseLevel.layer;
    part.start[0] = info->subresource.sparseLevel.offsetX;
    part.start[1] = info->subresource.sparseLevel.offsetY;
    part.start[2] = info->subresource.sparseLevel.offsetZ;
    part.extent[0] = at_least_one(info->subresource.sparseLevel.extentWidth);
    part.extent[1] = at_least_one(info->subresource.sparseLevel.extentHeight);
    part.extent[2] = at_least_one(info->subresource.sparseLevel.extentDepth);
    return part;
}

static void note(const CUarrayMapInfo *info)
{
    struct gos_vmm_part part = part_of(info);

    if (info->memOperationType == CU_MEM_OPERATION_TYPE_UNMAP)
        gos_vmm_array_unmapped(&part);
    else if (info->memOperationType == CU_MEM_OPERATION_TYPE_MAP &&
             info->memHandleType == CU_MEM_HANDLE_TYPE_GENERIC)
        gos_vmm_array_mapped(&part, info->memHandle.memHandle);
}

static void note_all(const CUarrayMapInfo *infos, unsigned int count)
{
    int saved = errno;

    if (!infos || !gos_call_tracks())
        return;
    gos_thread.depth++;
    for (unsigned int i = 0; i < count; i++)
        note(&infos[i]);
    gos_thread.depth--;
    errno = saved;
}

WATCHED_THEN(hStream, cuMemMapArrayAsync,
             (CUarrayMapInfo * mapInfoList, unsigned int count, CUstream hStream),
             (mapInfoList, count, hStream), note_all(mapInfoList, count))

WATCHED_THEN(hStream, cuMemMapArrayAsync_ptsz,
             (CUarrayMapInfo * mapInfoList, unsigned int count, CUstream hStream),
             (mapInfoList, count, hStream), note_all(mapInfoList, count))
