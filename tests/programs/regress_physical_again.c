/* Physical memory is refused, something else is freed, and the same request succeeds. */
#include "host.h"

static void use(CUmemGenericAllocationHandle handle, size_t bytes)
{
    CUdeviceptr at;

    MUST(driver.mem_reserve(&at, bytes, 0, 0, 0));
    MUST(driver.mem_map(at, bytes, 0, handle, 0));
    MUST(driver.mem_unmap(at, bytes));
    MUST(driver.mem_unreserve(at, bytes));
}

int main(void)
{
    CUmemAllocationProp where = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr live;

    open_device();
    size_t at_start = free_bytes();
    size_t asked = scaled(at_start, 2048);
    MUST(driver.mem_alloc(&live, scaled(at_start, 15000)));
    outcome("first", driver.mem_create(&handle, asked, &where, 0));
    MUST(driver.mem_free(live));
    outcome("second", driver.mem_create(&handle, asked, &where, 0));
    use(handle, asked);
    MUST(driver.mem_release(handle));
    return 0;
}
