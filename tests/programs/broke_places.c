/*
 * Physical memory where there is no current context, or no device at all: in a
 * thread without one, on the host, on a NUMA node, on a device that is not.
 */
#include "host.h"
#include "host_newer.h"

static void create(const char *what, CUmemLocationType type, int id)
{
    CUmemGenericAllocationHandle handle = 0;
    CUmemAllocationProp prop = {0};

    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = type;
    prop.location.id = id;
    CUresult result = driver.mem_create(&handle, 2 * MIB, &prop, 0);
    outcome(what, result);
    tell_live();
    if (result == CUDA_SUCCESS)
        MUST(driver.mem_release(handle));
    tell_live();
}

int main(void)
{
    open_device();
    MUST(driver.context_set(NULL));
    create("device 0", CU_MEM_LOCATION_TYPE_DEVICE, 0);
    create("host", CU_MEM_LOCATION_TYPE_HOST, 0);
    create("host with a wild number", CU_MEM_LOCATION_TYPE_HOST, 0x7fffffff);
    create("NUMA node 0", CU_MEM_LOCATION_TYPE_HOST_NUMA, 0);
    create("device 77", CU_MEM_LOCATION_TYPE_DEVICE, 77);
    create("device -1", CU_MEM_LOCATION_TYPE_DEVICE, -1);
    return 0;
}
