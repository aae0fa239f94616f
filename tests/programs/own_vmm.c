/*
 * A segment that grows and shrinks: physical memory is there until it is both
 * released and unmapped, and counts once however often it is mapped.
 */
#include "own.h"

#define PARTS 4

static size_t part_bytes;
static CUdeviceptr base;
static CUmemGenericAllocationHandle handles[PARTS];

static void reserve(void)
{
    CUmemAllocationProp prop = pinned_on(0);

    MUST(driver.granularity(&part_bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    MUST(driver.mem_reserve(&base, 2 * PARTS * part_bytes, 0, 0, 0));
}

static CUdeviceptr place(int i)
{
    return base + (size_t)i * part_bytes;
}

static void grow(void)
{
    CUmemAllocationProp prop = pinned_on(0);
    CUmemAccessDesc access = {.location = on_device(0),
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

    for (int i = 0; i < PARTS; i++) {
        MUST(driver.mem_create(&handles[i], part_bytes, &prop, 0));
        MUST(driver.mem_map(place(i), part_bytes, 0, handles[i], 0));
    }
    outcome("access", driver.mem_set_access(base, PARTS * part_bytes, &access, 1));
}

int main(void)
{
    open_device();
    reserve();
    tell_books("reserved", 0, 0);
    grow();
    tell_books("mapped", 0, PARTS * part_bytes);
    MUST(driver.mem_map(place(PARTS), part_bytes, 0, handles[0], 0));
    tell_books("mappedtwice", 0, PARTS * part_bytes);
    for (int i = 0; i < PARTS; i++)
        MUST(driver.mem_release(handles[i]));
    tell_books("released", 0, PARTS * part_bytes);
    MUST(driver.mem_unmap(place(0), part_bytes));
    tell_books("stillmapped", 0, PARTS * part_bytes);
    MUST(driver.mem_unmap(place(PARTS), part_bytes));
    tell_books("unmapped", 0, (PARTS - 1) * part_bytes);
    MUST(driver.mem_unmap(place(1), (PARTS - 1) * part_bytes));
    tell_books("shrunk", 0, 0);
    outcome("unreserve", driver.mem_unreserve(base, 2 * PARTS * part_bytes));
    return 0;
}
