/* Two devices: the second one is full, the first one nearly empty. */
#include "host.h"

int main(void)
{
    CUdeviceptr here, there, refused = 0;
    CUcontext context;

    open_device();
    MUST(driver.mem_alloc(&here, 64 * MIB));
    MUST(driver.primary_retain(&context, 1));
    MUST(driver.context_set(context));
    size_t room = free_bytes();
    MUST(driver.mem_alloc(&there, scaled(room, 12288)));
    expect("allocation on the full device", driver.mem_alloc(&refused, scaled(room, 8192)),
           CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
    return 0;
}
