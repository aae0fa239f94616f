#include "watched_need.h"

#include <stddef.h>

#include "../cuda/driver.h"
#include "../track/capture.h"

static uint64_t attribute(CUdevice_attribute name, CUdevice device)
{
    int value = 0;

    if (!gos_driver.cuDeviceGetAttribute ||
        gos_driver.cuDeviceGetAttribute(&value, name, device) != CUDA_SUCCESS || value < 0)
        return 0;
    return (uint64_t)value;
}

/* So many threads have a stack and local memory of their own, whatever is launched. */
static uint64_t resident_threads(int ordinal)
{
    CUdevice device;

    if (ordinal < 0 || !gos_driver.cuDeviceGet ||
        gos_driver.cuDeviceGet(&device, ordinal) != CUDA_SUCCESS)
        return 0;
    return attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device) *
           attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device);
}

static struct gos_need for_threads(const char *what, uint64_t bytes, int device)
{
    uint64_t count = resident_threads(device);

    return (struct gos_need){.what = what, .bytes = count ? bytes : 0, .count = count};
}

static struct gos_need of_limit(CUlimit limit, size_t value, int device)
{
    switch (limit) {
    case CU_LIMIT_MALLOC_HEAP_SIZE:
        return (struct gos_need){.what = "the heap of kernels (CU_LIMIT_MALLOC_HEAP_SIZE)",
                                 .bytes = value};
    case CU_LIMIT_PRINTF_FIFO_SIZE:
        return (struct gos_need){.what = "the buffer of printf in kernels "
                                         "(CU_LIMIT_PRINTF_FIFO_SIZE)",
                                 .bytes = value};
    case CU_LIMIT_STACK_SIZE:
        return for_threads("stacks of kernels (CU_LIMIT_STACK_SIZE)", value, device);
    default:
        return (struct gos_need){.what = NULL};
    }
}

/* A kernel that is not loaded yet would be by the question, and a capture could be lost by that. */
static bool is_loaded(CUfunction function)
{
    CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_UNLOADED;

    return gos_capture_count() == 0 && !gos_driver_is_held() && gos_driver.cuFuncIsLoaded &&
           gos_driver.cuFuncIsLoaded(&state, function) == CUDA_SUCCESS &&
           state == CU_FUNCTION_LOADING_STATE_LOADED;
}

static struct gos_need of_launch(CUfunction function, int device)
{
    int local = 0;

    if (!is_loaded(function) || !gos_driver.cuFuncGetAttribute ||
        gos_driver.cuFuncGetAttribute(&local, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function) !=
            CUDA_SUCCESS ||
        local <= 0)
        return (struct gos_need){.what = NULL};
    return for_threads("local memory of the kernel", (uint64_t)local, device);
}

struct gos_need gos_need_of(const struct gos_watched *watched, int device)
{
    if (watched->sets_limit)
        return of_limit(watched->limit, watched->value, device);
    if (watched->function)
        return of_launch(watched->function, device);
    return (struct gos_need){.what = NULL};
}
