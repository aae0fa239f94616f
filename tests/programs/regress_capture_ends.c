/*
 * Captures that are not what they look like:
 *   regress_capture_ends stream   a stream is destroyed while it is captured; then memory that
 *                                 was freed in stream order is needed
 *   regress_capture_ends thread   one thread captures its own default stream, while another
 *                                 allocates on its own
 */
#define HOST_FUNCTIONS(F)                                                                          \
    F(capture, cuStreamBeginCapture)                                                               \
    F(capture_end, cuStreamEndCapture)

#include <pthread.h>
#include <string.h>

#include "host.h"

static void destroy_captured(void)
{
    CUstream stream;

    MUST(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
    MUST(driver.capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(driver.stream_destroy(stream));
}

static void need_what_was_freed(void)
{
    CUdeviceptr freed;
    CUdeviceptr memory;
    CUstream stream;
    size_t bytes = free_bytes() / 2;

    destroy_captured();
    MUST(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
    MUST(driver.mem_alloc_async(&freed, bytes, stream));
    MUST(driver.mem_free_async(freed, stream));
    expect("asked", driver.mem_alloc(&memory, bytes + bytes / 2), CUDA_SUCCESS,
           CUDA_ERROR_OUT_OF_MEMORY);
}

static CUcontext context;

static void *allocate(void *unused)
{
    CUdeviceptr memory;

    MUST(driver.context_set(context));
    MUST(driver.mem_alloc_async(&memory, 8 * MIB, CU_STREAM_PER_THREAD));
    tell_live();
    MUST(driver.mem_free_async(memory, CU_STREAM_PER_THREAD));
    return unused;
}

static void allocate_beside_capture(void)
{
    CUgraph graph;
    CUdeviceptr node;
    pthread_t thread;

    MUST(driver.capture(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    MUST(driver.mem_alloc_async(&node, MIB, CU_STREAM_PER_THREAD));
    MUST(driver.mem_free_async(node, CU_STREAM_PER_THREAD));
    if (pthread_create(&thread, NULL, allocate, NULL) != 0)
        exit(1);
    pthread_join(thread, NULL);
    outcome("end of capture", driver.capture_end(CU_STREAM_PER_THREAD, &graph));
}

int main(int argc, char **argv)
{
    open_device();
    MUST(driver.context_get(&context));
    if (argc > 1 && strcmp(argv[1], "stream") == 0)
        need_what_was_freed();
    else
        allocate_beside_capture();
    return 0;
}
