/*
 * Idle memory would serve the request, and a stream is being captured: the
 * asking thread is in relaxed mode, so what it calls is not forbidden, yet
 * the capture is somebody's work and must end well.
 */
#define HOST_FUNCTIONS(F)                                                                          \
    F(capture_begin, cuStreamBeginCapture)                                                         \
    F(capture_end, cuStreamEndCapture)                                                             \
    F(graph_instantiate, cuGraphInstantiate)                                                       \
    F(graph_launch, cuGraphLaunch)

#include <unistd.h>

#include "host.h"

static CUdeviceptr idle;
static int calls, ran;

static int give_back(void *arg, int device, uint64_t wanted_bytes)
{
    (void)arg, (void)device, (void)wanted_bytes;
    calls++;
    return driver.mem_free(idle) == CUDA_SUCCESS ? 0 : 1;
}

static void work(void *unused)
{
    (void)unused;
    ran++;
}

static void late_work(void *unused)
{
    (void)unused;
    usleep(200000);
}

/* A third of the device is freed in stream order, behind work; a third is the program's cache. */
static void fill(size_t at_start, CUstream stream)
{
    CUdeviceptr ordered;
    CUmemoryPool pool;
    cuuint64_t keep_all = UINT64_MAX;

    MUST(driver.pool_default(&pool, 0));
    MUST(driver.pool_set(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep_all));
    MUST(driver.mem_alloc_async(&ordered, scaled(at_start, 5120), stream));
    MUST(driver.stream_synchronize(stream));
    MUST(driver.launch_host_func(stream, late_work, NULL));
    MUST(driver.mem_free_async(ordered, stream));
    MUST(driver.mem_alloc(&idle, scaled(at_start, 10240)));
    if (gpuoomshim_register_flush)
        MUST((CUresult)gpuoomshim_register_flush("keeper", give_back, NULL));
}

int main(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUstream captured, busy;
    CUgraphExec exec = NULL;
    CUgraph graph = NULL;
    CUdeviceptr refused = 0;

    open_device();
    size_t at_start = free_bytes();
    MUST(driver.stream_create(&captured, CU_STREAM_NON_BLOCKING));
    MUST(driver.stream_create(&busy, CU_STREAM_NON_BLOCKING));
    fill(at_start, busy);
    MUST(driver.capture_mode(&mode));
    MUST(driver.capture_begin(captured, CU_STREAM_CAPTURE_MODE_GLOBAL));
    MUST(driver.launch_host_func(captured, work, NULL));
    expect("allocation during a capture", driver.mem_alloc(&refused, scaled(at_start, 4096)),
           CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
    outcome("end of capture", driver.capture_end(captured, &graph));
    outcome("instantiate", driver.graph_instantiate(&exec, graph, 0));
    outcome("launch", driver.graph_launch(exec, captured));
    outcome("synchronize", driver.stream_synchronize(captured));
    printf("outcome: captured work ran %d\n", ran);
    fprintf(stderr, "shim: calls=%d\n", calls);
    MUST(driver.stream_synchronize(busy));
    return 0;
}
