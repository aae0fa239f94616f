/* Physical memory, reservations, and mappings between them. */
#include <string.h>

#include "diff_world.h"

#define BLOCK_BYTES (2u << 20)

static struct diff_handle *handle_of(long long number)
{
    return &world.handles[diff_slot(number, DIFF_HANDLES)];
}

static struct diff_range *range_of(long long number)
{
    return &world.ranges[diff_slot(number, DIFF_RANGES)];
}

static bool is_alive(const struct diff_handle *handle)
{
    return handle->references + handle->mappings != 0;
}

static void create(const struct diff_step *step)
{
    struct diff_handle *slot = handle_of(step->a);
    struct diff_handle made = {
        .device = diff_device(step->b), .bytes = (uint64_t)step->c * BLOCK_BYTES, .references = 1};
    CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = made.device}};

    if (is_alive(slot))
        return;
    CUresult result = cu.mem_create(&made.handle, made.bytes, &prop, 0);
    diff_result(result);
    if (result == CUDA_SUCCESS)
        *slot = made;
}

static void release(const struct diff_step *step)
{
    struct diff_handle *handle = handle_of(step->a);

    if (handle->references == 0)
        return;
    CUresult result = cu.mem_release(handle->handle);
    diff_result(result);
    handle->references -= result == CUDA_SUCCESS;
}

static void reserve(const struct diff_step *step)
{
    struct diff_range *range = range_of(step->a);
    struct diff_range made = {.bytes = (uint64_t)step->b * BLOCK_BYTES, .handle = -1};

    if (range->address != 0)
        return;
    CUresult result = cu.mem_reserve(&made.address, made.bytes, 0, 0, 0);
    diff_result(result);
    if (result == CUDA_SUCCESS)
        *range = made;
}

/* One mapping per reservation, at its start; what does not fit is refused by the driver. */
static void map(const struct diff_step *step)
{
    struct diff_range *range = range_of(step->a);
    struct diff_handle *handle = handle_of(step->b);

    if (range->address == 0 || handle->references == 0 || handle->bytes > range->bytes)
        return;
    CUresult result = cu.mem_map(range->address, handle->bytes, 0, handle->handle, 0);
    diff_result(result);
    if (result != CUDA_SUCCESS)
        return;
    range->handle = diff_slot(step->b, DIFF_HANDLES);
    range->mapped_bytes = handle->bytes;
    handle->mappings++;
}

static void set_access(const struct diff_step *step)
{
    const struct diff_range *range = range_of(step->a);
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

    if (range->handle < 0 || range->mapped_bytes == 0)
        return;
    access.location.id = world.handles[range->handle].device;
    diff_result(cu.mem_access(range->address, range->mapped_bytes, &access, 1));
}

static void unmap_one(struct diff_range *range)
{
    CUresult result = cu.mem_unmap(range->address, range->mapped_bytes);

    diff_result(result);
    if (result != CUDA_SUCCESS)
        return;
    world.handles[range->handle].mappings--;
    range->mapped_bytes = 0;
    range->handle = -1;
}

static void unmap(const struct diff_step *step)
{
    struct diff_range *range = range_of(step->a);

    if (range->mapped_bytes != 0)
        unmap_one(range);
    else if (range->address != 0)
        diff_result(cu.mem_unmap(range->address, range->bytes));
}

/* With something mapped, the driver refuses. */
static void unreserve(const struct diff_step *step)
{
    struct diff_range *range = range_of(step->a);

    if (range->address == 0)
        return;
    CUresult result = cu.mem_unreserve(range->address, range->bytes);
    diff_result(result);
    if (result == CUDA_SUCCESS)
        memset(range, 0, sizeof(*range));
}

/* Another reference to what is mapped there. */
static void retain(const struct diff_step *step)
{
    const struct diff_range *range = range_of(step->a);
    CUmemGenericAllocationHandle again = 0;

    if (range->mapped_bytes == 0)
        return;
    CUresult result = cu.mem_retain(&again, (void *)(uintptr_t)range->address);
    diff_result(result);
    if (result != CUDA_SUCCESS)
        return;
    diff_say(" same %d", again == world.handles[range->handle].handle);
    world.handles[range->handle].references++;
}

void diff_clean_vmm(void)
{
    for (int i = 0; i < DIFF_RANGES; i++) {
        struct diff_step step = {.a = i};
        if (world.ranges[i].mapped_bytes != 0)
            unmap_one(&world.ranges[i]);
        unreserve(&step);
    }
    for (int i = 0; i < DIFF_HANDLES; i++) {
        struct diff_step step = {.a = i};
        for (unsigned left = world.handles[i].references; left > 0; left--)
            release(&step);
        memset(&world.handles[i], 0, sizeof(world.handles[i]));
    }
}

const struct diff_operation diff_vmm_operations[] = {
    {"vmm_create", create},
    {"vmm_release", release},
    {"vmm_reserve", reserve},
    {"vmm_map", map},
    {"vmm_access", set_access},
    {"vmm_unmap", unmap},
    {"vmm_unreserve", unreserve},
    {"vmm_retain", retain},
    {NULL, NULL},
};
