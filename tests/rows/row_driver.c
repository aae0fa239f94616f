/*
 * A libcuda.so.1 that does nothing but log: one function for each row of
 * entrypoints.def, which counts its calls, keeps its arguments and answers as
 * the script says.  Besides them, the few functions with which the library
 * asks where memory is.
 */
#include <string.h>

#include <cuda.h>

#include "rows.h"

enum row {
#define DRIVER(symbol, base, version, suffix, role) ROW_##symbol,
#include "../../src/cuda/entrypoints.def"
    ROW_COUNT
};

#define EXPORT __attribute__((visibility("default")))

EXPORT struct row_script row_script = {.row = -1};
EXPORT struct row_call row_calls[ROW_COUNT];
EXPORT int row_primary_active; /* whether the primary context lives on */

/* --- the resolver ------------------------------------------------------------------------------
 */

/* The header declares functions of these names; ours have names of their own in C. */
#define WORD_PARAMETER(n) uint64_t w##n,
#define WORD_ARGUMENT(n) w##n,
#define DRIVER(symbol, base, version, suffix, role)                                                \
    EXPORT int log_##symbol(WORDS(WORD_PARAMETER) uint64_t w15) __asm__(#symbol);
#include "../../src/cuda/entrypoints.def"

static const struct {
    const char *base;
    int version;
    bool per_thread;
    void *function;
} functions[] = {
#define DRIVER(symbol, base, version, suffix, role)                                                \
    {#base, version, sizeof(#suffix) > 1, (void *)log_##symbol},
#include "../../src/cuda/entrypoints.def"
};

/* The newest ABI that is not newer than asked for; per thread where there is such a one. */
static void *resolve(const char *base, int version, bool per_thread)
{
    int best = -1;

    for (int i = 0; i < ROW_COUNT; i++)
        if (strcmp(functions[i].base, base) == 0 && functions[i].version <= version &&
            functions[i].per_thread <= per_thread &&
            (best < 0 || functions[i].version > functions[best].version ||
             functions[i].per_thread > functions[best].per_thread))
            best = i;
    return best < 0 ? NULL : functions[best].function;
}

static int look_up(const uint64_t *words)
{
    void *found = resolve((const char *)words[0], (int)words[2],
                          words[3] & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);

    *(void **)words[1] = found;
    return found != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* --- one function for each row ------------------------------------------------------------------
 */

static int answer(int row, const uint64_t *words)
{
    row_call_note(&row_calls[row], &row_script, words, row == row_script.row);
    if (row_script.result != CUDA_SUCCESS)
        return row_script.result;
    if (row == ROW_cuGetProcAddress || row == ROW_cuGetProcAddress_v2)
        return look_up(words);
    for (int i = 0; row == row_script.row && i < WRITE_MAX; i++)
        if (row_script.writes[i].to != NULL)
            *row_script.writes[i].to = row_script.writes[i].value;
    return CUDA_SUCCESS;
}

#define DRIVER(symbol, base, version, suffix, role)                                                \
    int log_##symbol(WORDS(WORD_PARAMETER) uint64_t w15)                                           \
    {                                                                                              \
        return answer(ROW_##symbol, (uint64_t[SLOT_COUNT]){WORDS(WORD_ARGUMENT) w15});             \
    }
#include "../../src/cuda/entrypoints.def"

/* --- where memory is: one device, one context ----------------------------------------------------
 */

EXPORT CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = (CUcontext)(uintptr_t)ROW_CONTEXT;
    return CUDA_SUCCESS;
}

#undef cuCtxGetDevice
EXPORT CUresult cuCtxGetDevice(CUdevice *device)
{
    *device = 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int *count)
{
    *count = 1;
    return CUDA_SUCCESS;
}

/* Every stream is being captured, into the one graph, for who asks. */
#undef cuStreamGetCaptureInfo
EXPORT CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status,
                                          cuuint64_t *id, CUgraph *graph,
                                          const CUgraphNode **dependencies, size_t *count)
{
    (void)stream;
    (void)dependencies;
    (void)count;
    *status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    *id = 1;
    *graph = (CUgraph)(uintptr_t)ROW_GRAPH;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
    (void)device;
    *flags = 0;
    *active = row_primary_active;
    return CUDA_SUCCESS;
}

#undef cuMemGetAddressRange
EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
    *base = address;
    *bytes = ROW_IMPORTED_BYTES;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                       CUmemGenericAllocationHandle handle)
{
    (void)handle;
    memset(prop, 0, sizeof *prop);
    prop->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return CUDA_SUCCESS;
}
