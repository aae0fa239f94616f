/* An allocation below what looks like an interpreter, three times, and one that fails. */
#include "host.h"

int main(int argc, char **argv)
{
    CUdeviceptr address;

    if (argc < 2 || !dlopen(argv[1], RTLD_NOW))
        return 1;
    open_device();
    for (int i = 0; i < 3; i++)
        MUST(driver.mem_alloc(&address, MIB));
    expect("too much", driver.mem_alloc(&address, MIB << 20), CUDA_ERROR_OUT_OF_MEMORY,
           CUDA_ERROR_OUT_OF_MEMORY);
    return 0;
}
