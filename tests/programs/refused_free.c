/* Frees that the driver refuses leave what is alive alive, and a good free follows. */
#include "host.h"

int main(void)
{
    CUdeviceptr device;
    CUstream stream;

    open_device();
    MUST(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
    MUST(driver.mem_alloc(&device, MIB));
    outcome("free of an address inside", driver.mem_free(device + 256));
    outcome("free of nothing", driver.mem_free(0));
    outcome("free of a wild address", driver.mem_free(0x1234500));
    tell_live();
    MUST(driver.mem_free_async(device, stream));
    MUST(driver.stream_synchronize(stream));
    outcome("ordered free of ordinary memory", CUDA_SUCCESS);
    MUST(driver.mem_alloc_async(&device, MIB, stream));
    MUST(driver.stream_synchronize(stream));
    MUST(driver.mem_free(device));
    outcome("ordinary free of ordered memory", CUDA_SUCCESS);
    MUST(driver.stream_destroy(stream));
    tell_live();
    return 0;
}
