/*
 * Physical memory is refused, something else is freed, and the same request succeeds.
 *   regress_physical_again otherwise    nothing is freed, and less of another kind is taken
 */
#include "host.h"

static void use(CUmemGenericAllocationHandle handle, size_t bytes)
{
    CUdeviceptr at;

    MUST(driver.mem_reserve(&at, bytes, 0, 0, 0));
    MUST(driver.mem_map(at, bytes, 0, handle, 0));
    MUST(driver.mem_unmap(at, bytes));
    MUST(driver.mem_unreserve(at, bytes));
}

static int take_less(size_t bytes)
{
    CUdeviceptr less;

    outcome("otherwise", driver.mem_alloc(&less, bytes));
    MUST(driver.mem_free(less));
    return 0;
}

int main(int count, char **words)
{
    (void)words;
    CUmemAllocationProp where = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr live;

    open_device();
    size_t at_start = free_bytes();
    size_t asked = scaled(at_start, 2048);
    MUST(driver.mem_alloc(&live, scaled(at_start, 14600)));
    outcome("first", driver.mem_create(&handle, asked, &where, 0));
    if (count > 1)
        return take_less(scaled(at_start, 1100));
    MUST(driver.mem_free(live));
    outcome("second", driver.mem_create(&handle, asked, &where, 0));
    use(handle, asked);
    MUST(driver.mem_release(handle));
    return 0;
}
