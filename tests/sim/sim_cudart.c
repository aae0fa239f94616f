/* Finding the driver, devices, and the last error. */

#include "sim_cudart.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define RUNTIME_VERSION 13000

struct sim_rt_driver sim_rt_driver;

static pthread_once_t load_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cudaError_t load_result = cudaErrorInsufficientDriver;
static CUcontext contexts[SIM_RT_DEVICES_MAX];
static _Atomic unsigned resets; /* contexts from before the last reset are stale */

static _Thread_local int device;
static _Thread_local unsigned resets_seen;
static _Thread_local cudaError_t last_error;
static _Thread_local cudaError_t refusal;

static void *ask(const char *base, int version, cuuint64_t flags)
{
    void *function = NULL;
    CUdriverProcAddressQueryResult status;
    sim_rt_driver.resolve(base, &function, version, flags, &status);
    return function;
}

static void ask_all(void)
{
    void *function;
    /* The real runtime's first questions, strange as they are. */
    sim_rt_driver.resolve("", &function, 0, CU_GET_PROC_ADDRESS_DEFAULT, NULL);
    ask("cuGetProcAddress", 11030, CU_GET_PROC_ADDRESS_DEFAULT);
    ask("cuGetProcAddress", 12000, CU_GET_PROC_ADDRESS_DEFAULT);
#define RT_CALL(base, version)                                                                     \
    function = ask(#base, version, CU_GET_PROC_ADDRESS_DEFAULT);                                   \
    memcpy(&sim_rt_driver.base, &function, sizeof(function));
#define RT_TWIN(base, version, twin_version)                                                       \
    function = ask(#base, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM);                             \
    memcpy(&sim_rt_driver.base[0], &function, sizeof(function));                                   \
    function = ask(#base, twin_version, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);            \
    memcpy(&sim_rt_driver.base[1], &function, sizeof(function));
#include "sim_cudart.def"
#undef RT_CALL
#undef RT_TWIN
}

static cudaError_t start_driver(void)
{
    int version = 0;
    if (sim_rt_driver.cuDriverGetVersion == NULL || sim_rt_driver.cuInit == NULL)
        return cudaErrorInsufficientDriver;
    sim_rt_driver.cuDriverGetVersion(&version);
    if (version < RUNTIME_VERSION)
        return cudaErrorInsufficientDriver;
    return (cudaError_t)sim_rt_driver.cuInit(0);
}

static void load(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    void *resolve = library != NULL ? dlsym(library, "cuGetProcAddress_v2") : NULL;
    if (resolve == NULL)
        return;
    memcpy(&sim_rt_driver.resolve, &resolve, sizeof(resolve));
    ask_all();
    load_result = start_driver();
}

static cudaError_t use_device(int wanted)
{
    CUcontext context = NULL;
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    if (contexts[wanted] == NULL)
        result = sim_rt_driver.cuDevicePrimaryCtxRetain(&contexts[wanted], wanted);
    context = contexts[wanted];
    pthread_mutex_unlock(&lock);
    if (result == CUDA_SUCCESS)
        result = sim_rt_driver.cuCtxSetCurrent(context);
    resets_seen = atomic_load(&resets);
    return (cudaError_t)result;
}

/* A context that the program made current by itself is used as it is. */
static bool has_context(void)
{
    CUcontext current = NULL;
    sim_rt_driver.cuCtxGetCurrent(&current);
    return current != NULL && resets_seen == atomic_load_explicit(&resets, memory_order_relaxed);
}

bool sim_rt_enter(void)
{
    pthread_once(&load_once, load);
    refusal = load_result;
    if (refusal == cudaSuccess && !has_context())
        refusal = use_device(device);
    return refusal == cudaSuccess;
}

cudaError_t sim_rt_refusal(void)
{
    return refusal;
}

/* "Not ready" is an answer, not an error to be remembered [H200]. */
cudaError_t sim_rt_leave(cudaError_t result)
{
    if (result != cudaSuccess && result != cudaErrorNotReady)
        last_error = result;
    return result;
}

cudaError_t sim_rt_take_error(bool keep)
{
    cudaError_t error = last_error;
    if (!keep)
        last_error = cudaSuccess;
    return error;
}

/* For calls that must not create a context. */
static cudaError_t load_only(void)
{
    pthread_once(&load_once, load);
    return load_result;
}

static cudaError_t check_ordinal(int ordinal)
{
    int count = 0;
    cudaError_t result = load_only();
    if (result == cudaSuccess)
        result = (cudaError_t)sim_rt_driver.cuDeviceGetCount(&count);
    if (result == cudaSuccess && (ordinal < 0 || ordinal >= count))
        result = cudaErrorInvalidDevice;
    return result;
}

static cudaError_t set_device(int ordinal)
{
    cudaError_t result = check_ordinal(ordinal);
    if (result != cudaSuccess)
        return result;
    device = ordinal;
    return use_device(ordinal);
}

static cudaError_t reset_device(void)
{
    CUresult result = sim_rt_driver.cuDevicePrimaryCtxReset(device);
    pthread_mutex_lock(&lock);
    contexts[device] = NULL;
    pthread_mutex_unlock(&lock);
    atomic_fetch_add(&resets, 1);
    sim_rt_driver.cuCtxSetCurrent(NULL);
    return (cudaError_t)result;
}

static int attribute(CUdevice_attribute name, int ordinal)
{
    int value = 0;
    sim_rt_driver.cuDeviceGetAttribute(&value, name, ordinal);
    return value;
}

static cudaError_t describe(struct cudaDeviceProp *properties, int ordinal)
{
    CUuuid uuid;
    cudaError_t result = check_ordinal(ordinal);
    if (result != cudaSuccess)
        return result;
    memset(properties, 0, sizeof(*properties));
    sim_rt_driver.cuDeviceGetName(properties->name, sizeof(properties->name), ordinal);
    sim_rt_driver.cuDeviceGetUuid(&uuid, ordinal);
    memcpy(&properties->uuid, &uuid, sizeof(uuid));
    sim_rt_driver.cuDeviceTotalMem(&properties->totalGlobalMem, ordinal);
    properties->major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, ordinal);
    properties->minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, ordinal);
    properties->warpSize = attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE, ordinal);
    properties->multiProcessorCount = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, ordinal);
    properties->memoryPoolsSupported = 1;
    properties->managedMemory = 1;
    properties->unifiedAddressing = 1;
    return cudaSuccess;
}

static cudaError_t count_devices(int *count)
{
    cudaError_t result = load_only();
    return result == cudaSuccess ? (cudaError_t)sim_rt_driver.cuDeviceGetCount(count) : result;
}

static cudaError_t get_device(int *out)
{
    *out = device;
    return load_only();
}

static cudaError_t get_attribute(int *value, enum cudaDeviceAttr name, int ordinal)
{
    cudaError_t result = check_ordinal(ordinal);
    if (result == cudaSuccess)
        *value = attribute((CUdevice_attribute)name, ordinal);
    return result;
}

static cudaError_t get_driver_version(int *version)
{
    *version = 0;
    if (load_only() == cudaErrorInsufficientDriver && sim_rt_driver.cuDriverGetVersion == NULL)
        return cudaSuccess;
    return (cudaError_t)sim_rt_driver.cuDriverGetVersion(version);
}

static cudaError_t get_entry(const char *symbol, void **out, unsigned version,
                             unsigned long long flags, bool per_thread,
                             enum cudaDriverEntryPointQueryResult *status)
{
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    cudaError_t result = load_only();
    if (result != cudaSuccess)
        return result;
    if (flags == cudaEnableDefault && per_thread)
        flags = cudaEnablePerThreadDefaultStream;
    sim_rt_driver.resolve(symbol, out, (int)version, flags, &found);
    if (status != NULL)
        *status = (enum cudaDriverEntryPointQueryResult)found;
    return found == CU_GET_PROC_ADDRESS_SUCCESS || status != NULL ? cudaSuccess
                                                                  : cudaErrorSymbolNotFound;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    return sim_rt_leave(count_devices(count));
}

cudaError_t cudaGetDevice(int *out)
{
    return sim_rt_leave(get_device(out));
}

cudaError_t cudaSetDevice(int ordinal)
{
    return sim_rt_leave(set_device(ordinal));
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int ordinal)
{
    return sim_rt_leave(describe(properties, ordinal));
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr name, int ordinal)
{
    return sim_rt_leave(get_attribute(value, name, ordinal));
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int room, int ordinal)
{
    return SIM_RUNTIME(sim_rt_driver.cuDeviceGetPCIBusId(text, room, ordinal));
}

cudaError_t cudaDeviceReset(void)
{
    return SIM_RUNTIME(reset_device());
}

cudaError_t cudaDeviceSynchronize(void)
{
    return SIM_RUNTIME(sim_rt_driver.cuCtxSynchronize());
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = RUNTIME_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    return sim_rt_leave(get_driver_version(version));
}

cudaError_t cudaGetLastError(void)
{
    return sim_rt_take_error(false);
}

cudaError_t cudaPeekAtLastError(void)
{
    return sim_rt_take_error(true);
}

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **out, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *status)
{
    return sim_rt_leave(get_entry(symbol, out, RUNTIME_VERSION, flags, false, status));
}

cudaError_t cudaGetDriverEntryPoint_ptsz(const char *symbol, void **out, unsigned long long flags,
                                         enum cudaDriverEntryPointQueryResult *status)
{
    return sim_rt_leave(get_entry(symbol, out, RUNTIME_VERSION, flags, true, status));
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **out, unsigned int version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *status)
{
    return sim_rt_leave(get_entry(symbol, out, version, flags, false, status));
}

cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char *symbol, void **out,
                                                  unsigned int version, unsigned long long flags,
                                                  enum cudaDriverEntryPointQueryResult *status)
{
    return sim_rt_leave(get_entry(symbol, out, version, flags, true, status));
}
