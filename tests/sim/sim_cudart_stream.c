/* Streams, events, launches, capture and graphs of the runtime. */

#include "sim_cudart.h"

#define driver sim_rt_driver

/* Any address is a kernel; the driver knows it by that. */
static CUfunction function_of(const void *kernel)
{
    return (CUfunction)(uintptr_t)kernel;
}

static CUresult launch(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                       cudaStream_t stream, int twin)
{
    return driver.cuLaunchKernel[twin](function_of(kernel), grid.x, grid.y, grid.z, block.x,
                                       block.y, block.z, (unsigned)shared, stream, arguments, NULL);
}

static CUresult is_capturing(cudaStream_t stream, enum cudaStreamCaptureStatus *out, int twin)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult result = driver.cuStreamIsCapturing[twin](stream, &status);
    *out = (enum cudaStreamCaptureStatus)status;
    return result;
}

static CUresult exchange(enum cudaStreamCaptureMode *mode)
{
    CUstreamCaptureMode other = (CUstreamCaptureMode)*mode;
    CUresult result = driver.cuThreadExchangeStreamCaptureMode(&other);
    *mode = (enum cudaStreamCaptureMode)other;
    return result;
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return SIM_RUNTIME(driver.cuStreamCreateWithPriority(stream, CU_STREAM_DEFAULT, 0));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
    return SIM_RUNTIME(driver.cuStreamCreateWithPriority(stream, flags, 0));
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority)
{
    return SIM_RUNTIME(driver.cuStreamCreateWithPriority(stream, flags, priority));
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    return SIM_RUNTIME(driver.cuStreamDestroy(stream));
}

SIM_RUNTIME_TWO(cudaStreamSynchronize, ptsz, (cudaStream_t stream),
                driver.cuStreamSynchronize[TWIN](stream))
SIM_RUNTIME_TWO(cudaStreamQuery, ptsz, (cudaStream_t stream), driver.cuStreamQuery[TWIN](stream))
SIM_RUNTIME_TWO(cudaStreamWaitEvent, ptsz,
                (cudaStream_t stream, cudaEvent_t event, unsigned int flags),
                driver.cuStreamWaitEvent[TWIN](stream, event, flags))
SIM_RUNTIME_TWO(cudaLaunchHostFunc, ptsz,
                (cudaStream_t stream, cudaHostFn_t function, void *user_data),
                driver.cuLaunchHostFunc[TWIN](stream, function, user_data))
SIM_RUNTIME_TWO(cudaLaunchKernel, ptsz,
                (const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                 cudaStream_t stream),
                launch(kernel, grid, block, arguments, shared, stream, TWIN))
SIM_RUNTIME_TWO(cudaEventRecord, ptsz, (cudaEvent_t event, cudaStream_t stream),
                driver.cuEventRecord[TWIN](event, stream))
SIM_RUNTIME_TWO(cudaStreamBeginCapture, ptsz,
                (cudaStream_t stream, enum cudaStreamCaptureMode mode),
                driver.cuStreamBeginCapture[TWIN](stream, (CUstreamCaptureMode)mode))
SIM_RUNTIME_TWO(cudaStreamEndCapture, ptsz, (cudaStream_t stream, cudaGraph_t *graph),
                driver.cuStreamEndCapture[TWIN](stream, graph))
SIM_RUNTIME_TWO(cudaStreamIsCapturing, ptsz,
                (cudaStream_t stream, enum cudaStreamCaptureStatus *status),
                is_capturing(stream, status, TWIN))
SIM_RUNTIME_TWO(cudaGraphLaunch, ptsz, (cudaGraphExec_t exec, cudaStream_t stream),
                driver.cuGraphLaunch[TWIN](exec, stream))

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    return SIM_RUNTIME(exchange(mode));
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return SIM_RUNTIME(driver.cuEventCreate(event, 0));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    return SIM_RUNTIME(driver.cuEventCreate(event, flags));
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    return SIM_RUNTIME(driver.cuEventDestroy(event));
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    return SIM_RUNTIME(driver.cuEventQuery(event));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    return SIM_RUNTIME(driver.cuEventSynchronize(event));
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
    return SIM_RUNTIME(driver.cuEventElapsedTime(milliseconds, start, end));
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    return SIM_RUNTIME(driver.cuGraphInstantiateWithFlags(exec, graph, flags));
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    return SIM_RUNTIME(driver.cuGraphExecDestroy(exec));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    return SIM_RUNTIME(driver.cuGraphDestroy(graph));
}
