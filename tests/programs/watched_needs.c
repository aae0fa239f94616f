/*
 * Calls that are no allocations, and take memory all the same; which of them
 * runs out of it is the test's choice (GPUSIM_FAIL).
 *   watched_needs [HELD]   with so many MiB of the device in use
 */
#define HOST_FUNCTIONS(F)                                                                          \
    F(set_limit, cuCtxSetLimit)                                                                    \
    F(event_create, cuEventCreate)

#include "host.h"

static void launch(void)
{
    static int code;
    CUmodule module = NULL;
    CUfunction function = NULL;

    outcome("module", driver.module_load_data(&module, &code));
    outcome("function", driver.module_get_function(&function, module, "kernel"));
    for (int i = 0; i < 2; i++)
        outcome("launch", driver.launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
}

int main(int count, char **words)
{
    CUdeviceptr held;
    CUstream stream = NULL;
    CUevent event = NULL;
    CUcontext context = NULL;

    open_device();
    if (count > 1)
        MUST(driver.mem_alloc(&held, strtoul(words[1], NULL, 10) * MIB));
    outcome("heap", driver.set_limit(CU_LIMIT_MALLOC_HEAP_SIZE, 4096 * MIB));
    outcome("stacks", driver.set_limit(CU_LIMIT_STACK_SIZE, 65536));
    launch();
    outcome("stream", driver.stream_create(&stream, 0));
    outcome("event", driver.event_create(&event, 0));
    outcome("context", driver.primary_retain(&context, 0));
    return 0;
}
