/* Linked with -lcuda: caught by exported names. */
#include "diff_driver.h"

struct diff_driver cu;

/* Names that cuda.h's macros hide from programs. */
CUresult diff_context_create_v2(CUcontext *, unsigned, CUdevice) __asm__("cuCtxCreate_v2");
CUresult diff_alloc_async_ptsz(CUdeviceptr *, size_t, CUstream) __asm__("cuMemAllocAsync_ptsz");
CUresult diff_free_async_ptsz(CUdeviceptr, CUstream) __asm__("cuMemFreeAsync_ptsz");

bool diff_load(void)
{
#define FROM_LINK(member, function) cu.member = &function;
    DIFF_DRIVER(FROM_LINK)
#undef FROM_LINK
    cu.context_create = diff_context_create_v2;
    cu.alloc_async_per_thread = diff_alloc_async_ptsz;
    cu.free_async_per_thread = diff_free_async_ptsz;
    return true;
}
