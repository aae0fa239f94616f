/*
 * 512 MiB where 64 are free, served by a fallback, whose free comes at a bad moment:
 *   regress_fallback_frees without         without a context, then with one in stream order
 *   regress_fallback_frees without_async   in stream order without a context, then with one
 *   regress_fallback_frees joined          in a stream that has joined another's capture
 *   regress_fallback_frees elsewhere       in a stream of another context, which ends next
 *   regress_fallback_frees late            its stream gets there; the next free has no context
 */
#define HOST_FUNCTIONS(F)                                                                          \
    F(event_create, cuEventCreate)                                                                 \
    F(event_record, cuEventRecord)                                                                 \
    F(wait_event, cuStreamWaitEvent)                                                               \
    F(capture, cuStreamBeginCapture)                                                               \
    F(capture_end, cuStreamEndCapture)

#include <string.h>
#include <unistd.h>

#include "host.h"

static CUcontext context;
static CUdeviceptr memory;
static CUstream stream;

static void without(void)
{
    MUST(driver.context_set(NULL));
    outcome("free", driver.mem_free(memory));
    MUST(driver.context_set(context));
    outcome("free in order", driver.mem_free_async(memory, stream));
}

static void without_async(void)
{
    MUST(driver.context_set(NULL));
    outcome("free in order", driver.mem_free_async(memory, stream));
    MUST(driver.context_set(context));
    outcome("free", driver.mem_free(memory));
}

static void follow(CUstream after, CUstream before)
{
    CUevent event;

    MUST(driver.event_create(&event, CU_EVENT_DISABLE_TIMING));
    MUST(driver.event_record(event, before));
    MUST(driver.wait_event(after, event, 0));
}

static void joined(void)
{
    CUstream other;
    CUgraph graph;

    MUST(driver.stream_create(&other, CU_STREAM_NON_BLOCKING));
    MUST(driver.capture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    follow(other, stream);
    printf("outcome: refused while captured: %d\n",
           driver.mem_free_async(memory, other) != CUDA_SUCCESS);
    follow(stream, other);
    outcome("end of capture", driver.capture_end(stream, &graph));
    outcome("free", driver.mem_free(memory));
}

static void work(void *unused)
{
    (void)unused;
    usleep(100000);
}

static void elsewhere(void)
{
    CUcontext other;
    CUstream its;
    CUdevice device;

    MUST(driver.device_get(&device, 1));
    MUST(driver.primary_retain(&other, device));
    MUST(driver.context_set(other));
    MUST(driver.stream_create(&its, CU_STREAM_NON_BLOCKING));
    MUST(driver.launch_host_func(its, work, NULL));
    outcome("free in order", driver.mem_free_async(memory, its));
    MUST(driver.primary_reset(device));
    MUST(driver.context_set(context));
}

static void late(void)
{
    MUST(driver.launch_host_func(stream, work, NULL));
    outcome("free in order", driver.mem_free_async(memory, stream));
    MUST(driver.stream_synchronize(stream));
    MUST(driver.context_set(NULL));
    driver.mem_free(0);
    MUST(driver.context_set(context));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } moments[] = {{"without", without},
                   {"without_async", without_async},
                   {"joined", joined},
                   {"elsewhere", elsewhere},
                   {"late", late}};
    CUdeviceptr rest;
    CUdeviceptr last;

    open_device();
    MUST(driver.context_get(&context));
    MUST(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
    MUST(driver.mem_alloc(&rest, free_bytes() - 64 * MIB));
    expect("asked", driver.mem_alloc(&memory, 512 * MIB), CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY);
    for (size_t i = 0; memory && argc > 1 && i < sizeof moments / sizeof moments[0]; i++)
        if (strcmp(argv[1], moments[i].name) == 0)
            moments[i].run();
    MUST(driver.mem_free(rest));
    MUST(driver.mem_alloc(&last, 2 * MIB));
    MUST(driver.mem_free(last));
    return 0;
}
