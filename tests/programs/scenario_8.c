/*
 * An earlier error that is not about memory, then a size that is none:
 * typically a length computed from an uninitialised result.  On the simulated
 * GPU the launch is made to fail (GPUSIM_FAIL); on a real one the module,
 * made for an architecture that does not exist, already fails to load.
 */
#include "host.h"

static const char ptx[] = ".version 6.0\n.target sm_199\n.address_size 64\n"
                          ".visible .entry nothing() { ret; }\n";

static CUresult fail_first(void)
{
    CUmodule module;
    CUfunction function;

    CUresult result = driver.module_load_data(&module, ptx);
    if (result == CUDA_SUCCESS)
        result = driver.module_get_function(&function, module, "nothing");
    if (result == CUDA_SUCCESS)
        result = driver.launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    return result;
}

int main(void)
{
    CUdeviceptr refused = 0;

    open_device();
    CUresult earlier = fail_first();
    outcome("earlier error", earlier);
    if (earlier == CUDA_SUCCESS || earlier == CUDA_ERROR_OUT_OF_MEMORY)
        return 1;
    expect("absurd size", driver.mem_alloc(&refused, (size_t)0xFFFFFFFFFFFFF000u),
           CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
    return 0;
}
