/*
 * Virtual memory management: physical handles, reservations of address space,
 * and mappings between them.
 *
 * Physical memory goes back to the device when its handle has been released as
 * often as it was obtained *and* the last mapping is gone [H200].  Two mappings
 * of one handle do not share their contents here.
 *
 * Runs without a current context, as on a real driver.
 */

#include <stdlib.h>
#include <string.h>

#include "sim_books.h"
#include "sim_call.h"
#include "sim_capacity.h"
#include "sim_context.h"
#include "sim_range.h"

struct physical {
    uint64_t bytes;
    unsigned references, mappings;
    CUmemAllocationProp properties;
};

/* A reservation's range owns the list of what is mapped in it. */
struct mapping {
    struct mapping *next;
    uint64_t base, bytes;
    CUmemGenericAllocationHandle handle;
};

static struct physical **physicals; /* by handle - 1; handles are never used twice */
static size_t physical_count, physical_capacity;

static struct physical *find_physical(CUmemGenericAllocationHandle handle)
{
    return handle >= 1 && handle <= physical_count ? physicals[handle - 1] : NULL;
}

static bool is_on_device(const CUmemAllocationProp *properties)
{
    return properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
}

static bool has_room(void)
{
    if (physical_count < physical_capacity)
        return true;
    size_t capacity = physical_capacity != 0 ? physical_capacity * 2 : 64;
    struct physical **grown = realloc(physicals, capacity * sizeof(struct physical *));
    if (grown == NULL)
        return false;
    physicals = grown;
    physical_capacity = capacity;
    return true;
}

static CUresult check_properties(const CUmemAllocationProp *properties, uint64_t bytes)
{
    if (properties == NULL || bytes == 0 || bytes % SIM_BLOCK_BYTES != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (is_on_device(properties) && !sim_device_exists(properties->location.id))
        return CUDA_ERROR_INVALID_DEVICE;
    return CUDA_SUCCESS;
}

static CUresult create(CUmemGenericAllocationHandle *out, uint64_t bytes,
                       const CUmemAllocationProp *properties)
{
    CUresult result = check_properties(properties, bytes);
    if (result != CUDA_SUCCESS)
        return result;
    struct physical *physical = has_room() ? calloc(1, sizeof(*physical)) : NULL;
    if (physical == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (is_on_device(properties) && !sim_device_take(properties->location.id, bytes)) {
        free(physical);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *physical = (struct physical){.bytes = bytes, .references = 1, .properties = *properties};
    physicals[physical_count++] = physical;
    *out = physical_count;
    return CUDA_SUCCESS;
}

void sim_vmm_count(int device, uint64_t *bytes, uint64_t *count)
{
    for (size_t i = 0; i < physical_count; i++) {
        const struct physical *physical = physicals[i];
        if (physical == NULL || !is_on_device(&physical->properties) ||
            physical->properties.location.id != device)
            continue;
        *bytes += physical->bytes;
        *count += 1;
    }
}

static void drop_if_unused(CUmemGenericAllocationHandle handle)
{
    struct physical *physical = find_physical(handle);
    if (physical->references != 0 || physical->mappings != 0)
        return;
    if (is_on_device(&physical->properties))
        sim_capacity_give(physical->properties.location.id, physical->bytes);
    physicals[handle - 1] = NULL;
    free(physical);
}

static CUresult release(CUmemGenericAllocationHandle handle)
{
    struct physical *physical = find_physical(handle);
    if (physical == NULL || physical->references == 0)
        return CUDA_ERROR_INVALID_VALUE;
    physical->references--;
    drop_if_unused(handle);
    return CUDA_SUCCESS;
}

static struct sim_range *find_reservation(uint64_t base, uint64_t bytes)
{
    struct sim_range *range = sim_range_find(base);
    if (range == NULL || range->kind != SIM_RESERVED || bytes > range->bytes - (base - range->base))
        return NULL;
    return range;
}

static struct mapping *find_mapping(const struct sim_range *range, uint64_t base, uint64_t bytes)
{
    for (struct mapping *mapping = range->owner; mapping != NULL; mapping = mapping->next)
        if (mapping->base < base + bytes && base < mapping->base + mapping->bytes)
            return mapping;
    return NULL;
}

static CUresult map(uint64_t base, uint64_t bytes, uint64_t offset,
                    CUmemGenericAllocationHandle handle)
{
    struct sim_range *range = find_reservation(base, bytes);
    struct physical *physical = find_physical(handle);
    if (range == NULL || physical == NULL || bytes == 0 || bytes % SIM_BLOCK_BYTES != 0 ||
        offset != 0 || bytes > physical->bytes || find_mapping(range, base, bytes) != NULL)
        return CUDA_ERROR_INVALID_VALUE;
    struct mapping *mapping = calloc(1, sizeof(*mapping));
    if (mapping == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *mapping = (struct mapping){range->owner, base, bytes, handle};
    range->owner = mapping;
    physical->mappings++;
    return CUDA_SUCCESS;
}

static void remove_mapping(struct sim_range *range, struct mapping *mapping)
{
    struct mapping **link = (struct mapping **)&range->owner;
    while (*link != mapping)
        link = &(*link)->next;
    *link = mapping->next;
    sim_space_close(mapping->base, mapping->bytes);
    find_physical(mapping->handle)->mappings--;
    drop_if_unused(mapping->handle);
    free(mapping);
}

/* A range can be unmapped if it is made of whole mappings. */
static bool is_whole(const struct sim_range *range, uint64_t base, uint64_t bytes)
{
    uint64_t covered = 0;
    for (const struct mapping *mapping = range->owner; mapping != NULL; mapping = mapping->next)
        if (mapping->base >= base && mapping->base + mapping->bytes <= base + bytes)
            covered += mapping->bytes;
    return covered == bytes;
}

static CUresult unmap(uint64_t base, uint64_t bytes)
{
    struct sim_range *range = find_reservation(base, bytes);
    struct mapping *mapping;
    if (range == NULL || bytes == 0 || !is_whole(range, base, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    while ((mapping = find_mapping(range, base, bytes)) != NULL)
        remove_mapping(range, mapping);
    return CUDA_SUCCESS;
}

static CUresult reserve(CUdeviceptr *out, uint64_t bytes, uint64_t alignment,
                        unsigned long long flags)
{
    if (out == NULL || bytes == 0 || bytes % SIM_BLOCK_BYTES != 0 || flags != 0 ||
        (alignment & (alignment - 1)) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t base = sim_space_map(bytes, false);
    if (base == 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (sim_range_add(SIM_RESERVED, base, bytes, 0) == NULL) {
        sim_space_unmap(base, bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = base;
    return CUDA_SUCCESS;
}

static CUresult free_reservation(uint64_t base, uint64_t bytes)
{
    struct sim_range *range = sim_range_at(base);
    if (range == NULL || range->kind != SIM_RESERVED || range->bytes != bytes ||
        range->owner != NULL)
        return CUDA_ERROR_INVALID_VALUE;
    sim_range_remove(range);
    sim_space_unmap(base, bytes);
    return CUDA_SUCCESS;
}

static CUresult set_access(uint64_t base, uint64_t bytes, const CUmemAccessDesc *descriptions,
                           size_t count)
{
    const struct sim_range *range = find_reservation(base, bytes);
    if (range == NULL || descriptions == NULL || count == 0 || !is_whole(range, base, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    return sim_space_open(base, bytes) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult get_access(unsigned long long *flags, uint64_t address)
{
    const struct sim_range *range = sim_range_find(address);
    if (range == NULL || range->kind != SIM_RESERVED)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = find_mapping(range, address, 1) != NULL ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                                     : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

static CUresult retain(CUmemGenericAllocationHandle *out, void *address)
{
    const struct sim_range *range = find_reservation((uint64_t)(uintptr_t)address, 1);
    const struct mapping *mapping =
        range != NULL ? find_mapping(range, (uint64_t)(uintptr_t)address, 1) : NULL;
    if (mapping == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    find_physical(mapping->handle)->references++;
    *out = mapping->handle;
    return CUDA_SUCCESS;
}

static CUresult get_properties(CUmemAllocationProp *properties, CUmemGenericAllocationHandle handle)
{
    const struct physical *physical = find_physical(handle);
    if (physical == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *properties = physical->properties;
    return CUDA_SUCCESS;
}

static CUresult get_granularity(size_t *granularity)
{
    *granularity = (size_t)SIM_BLOCK_BYTES;
    return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *properties, unsigned long long flags)
{
    (void)flags;
    return SIM_CALL(cuMemCreate, SIM_READY, create(handle, bytes, properties));
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    return SIM_CALL(cuMemRelease, SIM_READY, release(handle));
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
    return SIM_CALL(cuMemRetainAllocationHandle, SIM_READY, retain(handle, address));
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    (void)flags;
    return SIM_CALL(cuMemMap, SIM_READY, map(address, bytes, offset, handle));
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
    return SIM_CALL(cuMemUnmap, SIM_READY, unmap(address, bytes));
}

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr hint,
                             unsigned long long flags)
{
    (void)hint;
    return SIM_CALL(cuMemAddressReserve, SIM_READY, reserve(address, bytes, alignment, flags));
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
    return SIM_CALL(cuMemAddressFree, SIM_READY, free_reservation(address, bytes));
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *descriptions,
                        size_t count)
{
    return SIM_CALL(cuMemSetAccess, SIM_READY, set_access(address, bytes, descriptions, count));
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
                        CUdeviceptr address)
{
    (void)location;
    return SIM_CALL(cuMemGetAccess, SIM_READY, get_access(flags, address));
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *properties,
                                       CUmemAllocationGranularity_flags option)
{
    (void)properties;
    (void)option;
    return SIM_CALL(cuMemGetAllocationGranularity, SIM_READY, get_granularity(granularity));
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *properties,
                                                CUmemGenericAllocationHandle handle)
{
    return SIM_CALL(cuMemGetAllocationPropertiesFromHandle, SIM_READY,
                    get_properties(properties, handle));
}

CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags)
{
    (void)shareable;
    (void)handle;
    (void)type;
    (void)flags;
    return SIM_CALL(cuMemExportToShareableHandle, SIM_READY, CUDA_ERROR_NOT_SUPPORTED);
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
                                        CUmemAllocationHandleType type)
{
    (void)handle;
    (void)shareable;
    (void)type;
    return SIM_CALL(cuMemImportFromShareableHandle, SIM_READY, CUDA_ERROR_NOT_SUPPORTED);
}
