/*
 * One thread fails again and again, each time for a little more, while another
 * frees in a stream and captures it, in global mode, over and over.  Each capture
 * that is lost was ended by somebody who asked about the stream.
 */
#define HOST_FUNCTIONS(F)                                                                          \
    F(capture, cuStreamBeginCapture)                                                               \
    F(capture_end, cuStreamEndCapture)                                                             \
    F(exchange_mode, cuThreadExchangeStreamCaptureMode)                                            \
    F(graph_destroy, cuGraphDestroy)

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "host.h"

#define ATTEMPTS 60

static CUcontext context;
static size_t at_start;
static _Atomic bool is_over;

/* What this thread asks for ends no capture of the other. */
static void relax(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

    MUST(driver.exchange_mode(&mode));
}

static void free_in(CUstream stream)
{
    CUdeviceptr memory;

    if (driver.mem_alloc_async(&memory, scaled(at_start, 4096), stream) == CUDA_SUCCESS)
        MUST(driver.mem_free_async(memory, stream));
}

static CUresult capture_one(CUstream stream)
{
    CUgraph graph = NULL;

    MUST(driver.capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CUresult result = driver.capture_end(stream, &graph);
    if (graph)
        MUST(driver.graph_destroy(graph));
    return result;
}

static void *capture(void *unused)
{
    CUresult result = CUDA_SUCCESS;
    CUstream stream;

    MUST(driver.context_set(context));
    relax();
    MUST(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
    while (result == CUDA_SUCCESS && !atomic_load(&is_over)) {
        free_in(stream);
        result = capture_one(stream);
        usleep(2000);
    }
    outcome("end of capture", result);
    return unused;
}

int main(void)
{
    CUdeviceptr memory, live;
    pthread_t thread;

    open_device();
    relax();
    at_start = free_bytes();
    MUST(driver.context_get(&context));
    MUST(driver.mem_alloc(&live, scaled(at_start, 8192)));
    if (pthread_create(&thread, NULL, capture, NULL) != 0)
        return 1;
    for (unsigned i = 0; i < ATTEMPTS; i++)
        if (driver.mem_alloc(&memory, scaled(at_start, 7600 + i)) == CUDA_SUCCESS)
            MUST(driver.mem_free(memory));
    atomic_store(&is_over, true);
    pthread_join(thread, NULL);
    return 0;
}
