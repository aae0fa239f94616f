/*
 * cuGetProcAddress in both ABIs: the driver answers, and a pointer that is the
 * real function of one of our rows becomes ours.  Name, version and flags need
 * no understanding: the pointer says which ABI was meant.
 */
#include "../cuda/entrypoint.h"
#include "state.h"
#include "wrapper.h"

void *gos_substitute(void *found)
{
    if (!found || !gos_shim_enabled() || !gos_entrypoint_bind())
        return found;
    int row = gos_entrypoint_of_pointer(found);
    return row >= 0 ? gos_wrapper(row) : found;
}

CUresult CUDAAPI cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
    CUresult result = GOS_REAL(cuGetProcAddress)(symbol, pfn, cudaVersion, flags);

    if (result == CUDA_SUCCESS && pfn)
        *pfn = gos_substitute(*pfn);
    return result;
}

CUresult CUDAAPI cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion,
                                     cuuint64_t flags, CUdriverProcAddressQueryResult *symbolStatus)
{
    CUresult result = GOS_REAL(cuGetProcAddress_v2)(symbol, pfn, cudaVersion, flags, symbolStatus);

    if (result == CUDA_SUCCESS && pfn)
        *pfn = gos_substitute(*pfn);
    return result;
}
