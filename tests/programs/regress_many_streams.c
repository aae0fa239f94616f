/* More streams than a small number can count, one after the other; then a context that ends. */
#define HOST_FUNCTIONS(F)                                                                          \
    F(context_create, cuCtxCreate)                                                                 \
    F(context_destroy, cuCtxDestroy)

#include "own.h"

#define STREAMS 70000

/* Of the header's newest ABI, which has more parameters in some. */
#if CUDA_VERSION >= 13000
#define CREATE(context) driver.context_create(context, NULL, 0, 0)
#else
#define CREATE(context) driver.context_create(context, 0, 0)
#endif

int main(void)
{
    CUdeviceptr memory = 0;
    CUcontext context = NULL, first = NULL;
    CUstream stream = NULL;

    open_device();
    MUST(driver.context_get(&first));
    for (unsigned i = 0; i < STREAMS; i++) {
        MUST(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
        MUST(driver.mem_alloc_async(&memory, 4096, stream));
        MUST(driver.mem_free_async(memory, stream));
        MUST(driver.stream_destroy(stream));
    }
    MUST(CREATE(&context));
    MUST(driver.mem_alloc(&memory, 64 * MIB));
    tell_books("context", 0, 64 * MIB);
    MUST(driver.context_destroy(context));
    MUST(driver.context_set(first));
    tell_books("ended", 0, 0);
    outcome("ended", CUDA_SUCCESS);
    return 0;
}
