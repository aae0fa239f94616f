/*
 * Modules, libraries, kernels and launches.
 *
 * Kernels do nothing, any handle but NULL is one.  What is simulated is their
 * price: with lazy loading, the default, the first launch of a function (or
 * cuKernelGetFunction) takes GPUSIM_MODULE from the device and fails with 2
 * when that is not there; with CUDA_MODULE_LOADING=EAGER the load of the module
 * does [H200].
 */

#include <stdlib.h>
#include <string.h>

#include "sim_call.h"
#include "sim_capacity.h"
#include "sim_context.h"
#include "sim_graph.h"
#include "sim_stream.h"

#define BUCKETS 256u

/* A kernel handle is a function handle: the driver takes one for the other in launches. */
struct CUfunc_st {
    struct CUfunc_st *next; /* in its bucket */
    const void *handle;
    CUmodule module; /* NULL: a handle that nobody loaded */
    char *name;
    bool is_loaded;
    int device;
};

struct CUmod_st {
    uint64_t taken_bytes; /* at load, when loading eagerly */
    int device;
    bool is_library;
};

static CUfunction buckets[BUCKETS];

static CUfunction *bucket_of(const void *handle)
{
    return &buckets[((uintptr_t)handle >> 4) % BUCKETS];
}

static CUfunction find_function(const void *handle)
{
    for (CUfunction function = *bucket_of(handle); function != NULL; function = function->next)
        if (function->handle == handle)
            return function;
    return NULL;
}

/* `handle` NULL: the record is its own handle. */
static CUfunction add_function(const void *handle, CUmodule module, const char *name)
{
    CUfunction function = calloc(1, sizeof(*function));
    if (function == NULL)
        return NULL;
    function->handle = handle != NULL ? handle : function;
    function->module = module;
    function->name = strdup(name);
    CUfunction *bucket = bucket_of(function->handle);
    function->next = *bucket;
    *bucket = function;
    return function;
}

static CUfunction find_named(CUmodule module, const char *name)
{
    for (unsigned i = 0; i < BUCKETS; i++)
        for (CUfunction function = buckets[i]; function != NULL; function = function->next)
            if (function->module == module && function->name != NULL &&
                strcmp(function->name, name) == 0)
                return function;
    return NULL;
}

static CUresult load_function(CUfunction function)
{
    if (function->is_loaded)
        return CUDA_SUCCESS;
    uint64_t bytes =
        function->module != NULL && sim_settings.eager_loading ? 0 : sim_settings.module_bytes;
    if (!sim_device_take(sim_device_current(), bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    function->device = sim_device_current();
    function->is_loaded = true;
    return CUDA_SUCCESS;
}

static CUresult prepare(CUfunction handle)
{
    CUfunction function = find_function(handle);
    if (handle == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (function == NULL)
        function = add_function(handle, NULL, "");
    return function != NULL ? load_function(function) : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult launch(CUfunction function, CUstream stream)
{
    if (stream == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = prepare(function);
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->capture != NULL)
        return sim_capture_work(stream, CU_GRAPH_NODE_TYPE_KERNEL);
    sim_stream_mark(stream);
    return CUDA_SUCCESS;
}

static CUresult launch_configured(const CUlaunchConfig *config, CUfunction function,
                                  bool per_thread)
{
    if (config == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    return launch(function, sim_stream_find(config->hStream, per_thread));
}

static CUresult load(CUmodule *out, const void *image, bool is_library)
{
    if (out == NULL || image == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUmodule module = calloc(1, sizeof(*module));
    if (module == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    module->is_library = is_library;
    module->device = sim_context_current() != NULL ? sim_device_current() : 0;
    module->taken_bytes = sim_settings.eager_loading ? sim_settings.module_bytes : 0;
    if (!sim_device_take(module->device, module->taken_bytes)) {
        free(module);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = module;
    return CUDA_SUCCESS;
}

static CUresult load_library(CUlibrary *out, const void *code)
{
    CUmodule module = NULL;
    CUresult result = load(&module, code, true);
    if (result == CUDA_SUCCESS)
        *out = (CUlibrary)(void *)module;
    return result;
}

static void unload_function(CUfunction function)
{
    if (function->is_loaded && !sim_settings.eager_loading)
        sim_capacity_give(function->device, sim_settings.module_bytes);
    free(function->name);
    free(function);
}

static void unload_functions(CUmodule module)
{
    for (unsigned i = 0; i < BUCKETS; i++) {
        CUfunction *link = &buckets[i];
        while (*link != NULL) {
            CUfunction function = *link;
            if (function->module != module) {
                link = &function->next;
                continue;
            }
            *link = function->next;
            unload_function(function);
        }
    }
}

static CUresult unload(CUmodule module)
{
    if (module == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    unload_functions(module);
    sim_capacity_give(module->device, module->taken_bytes);
    free(module);
    return CUDA_SUCCESS;
}

static CUresult get_function(CUfunction *out, CUmodule module, const char *name)
{
    if (out == NULL || module == NULL || name == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUfunction function = find_named(module, name);
    *out = function != NULL ? function : add_function(NULL, module, name);
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUmodule module_of(CUlibrary library)
{
    return (CUmodule)(void *)library;
}

static CUresult get_kernel(CUkernel *out, CUlibrary library, const char *name)
{
    CUfunction function = NULL;
    CUresult result = get_function(&function, module_of(library), name);
    if (result == CUDA_SUCCESS)
        *out = (CUkernel)(void *)function;
    return result;
}

static CUresult get_kernel_function(CUfunction *out, CUkernel kernel)
{
    CUfunction function = (CUfunction)(void *)kernel;
    CUresult result = prepare(function);
    if (result == CUDA_SUCCESS)
        *out = function;
    return result;
}

static CUresult get_library_module(CUmodule *out, CUlibrary library)
{
    *out = module_of(library);
    return library != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult get_module(CUmodule *out, CUfunction handle)
{
    const struct CUfunc_st *function = find_function(handle);
    if (function == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    *out = function->module;
    return CUDA_SUCCESS;
}

static CUresult get_library(CUlibrary *out, CUkernel kernel)
{
    CUmodule module = NULL;
    CUresult result = get_module(&module, (CUfunction)(void *)kernel);
    *out = (CUlibrary)(void *)module;
    return result;
}

static CUresult get_name(const char **name, CUkernel kernel)
{
    const struct CUfunc_st *function = find_function(kernel);
    if (function == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    *name = function->name;
    return CUDA_SUCCESS;
}

static CUresult is_loaded(CUfunctionLoadingState *state, CUfunction handle)
{
    const struct CUfunc_st *function = find_function(handle);
    *state = function != NULL && function->is_loaded ? CU_FUNCTION_LOADING_STATE_LOADED
                                                     : CU_FUNCTION_LOADING_STATE_UNLOADED;
    return CUDA_SUCCESS;
}

static CUresult set_number(int *out, int value)
{
    *out = value;
    return CUDA_SUCCESS;
}

static CUresult get_mode(CUmoduleLoadingMode *mode)
{
    *mode = sim_settings.eager_loading ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

#define GRID                                                                                       \
    unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,           \
        unsigned int block_y, unsigned int block_z, unsigned int shared_bytes
#define GRID_IS_UNUSED                                                                             \
    (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y, (void)block_z,         \
        (void)shared_bytes

CUresult cuLaunchKernel(CUfunction function, GRID, CUstream stream, void **parameters, void **extra)
{
    GRID_IS_UNUSED, (void)parameters, (void)extra;
    if (sim_settings.zero_cost)
        return CUDA_SUCCESS;
    return SIM_CALL(cuLaunchKernel, SIM_CONTEXT, launch(function, sim_stream_find(stream, false)));
}

CUresult cuLaunchKernel_ptsz(CUfunction function, GRID, CUstream stream, void **parameters,
                             void **extra)
{
    GRID_IS_UNUSED, (void)parameters, (void)extra;
    if (sim_settings.zero_cost)
        return CUDA_SUCCESS;
    return SIM_CALL(cuLaunchKernel_ptsz, SIM_CONTEXT,
                    launch(function, sim_stream_find(stream, true)));
}

SIM_TWO_CALLS(cuLaunchKernelEx, ptsz,
              (const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra),
              SIM_CONTEXT,
              ((void)parameters, (void)extra, launch_configured(config, function, per_thread)))
SIM_TWO_CALLS(cuLaunchCooperativeKernel, ptsz,
              (CUfunction function, GRID, CUstream stream, void **parameters), SIM_CONTEXT,
              (GRID_IS_UNUSED, (void)parameters,
               launch(function, sim_stream_find(stream, per_thread))))

CUresult cuModuleLoad(CUmodule *module, const char *path)
{
    return SIM_CALL(cuModuleLoad, SIM_CONTEXT, load(module, path, false));
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    return SIM_CALL(cuModuleLoadData, SIM_CONTEXT, load(module, image, false));
}

/*
 * The size of the buffer for the compiler's log becomes the log's length, also
 * where the call fails (cuda.h: "OUT: Amount of log buffer filled").
 */
static CUresult log_load(CUresult result, const CUjit_option *options, void **values,
                         unsigned int count)
{
    static const char text[] = "loaded";
    char *log = NULL;

    for (unsigned int i = 0; values != NULL && i < count; i++)
        if (options[i] == CU_JIT_INFO_LOG_BUFFER)
            log = values[i];
    for (unsigned int i = 0; values != NULL && i < count; i++) {
        if (options[i] != CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES)
            continue;
        bool fits = log != NULL && result == CUDA_SUCCESS && (uintptr_t)values[i] >= sizeof(text);
        if (fits)
            memcpy(log, text, sizeof(text));
        values[i] = (void *)(uintptr_t)(fits ? sizeof(text) : 0);
    }
    return result;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count,
                            CUjit_option *options, void **values)
{
    CUresult result = SIM_CALL(cuModuleLoadDataEx, SIM_CONTEXT, load(module, image, false));
    return log_load(result, options, values, count);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    return SIM_CALL(cuModuleLoadFatBinary, SIM_CONTEXT, load(module, image, false));
}

CUresult cuModuleUnload(CUmodule module)
{
    return SIM_CALL(cuModuleUnload, SIM_CONTEXT, unload(module));
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    return SIM_CALL(cuModuleGetFunction, SIM_CONTEXT, get_function(function, module, name));
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    return SIM_CALL(cuModuleGetLoadingMode, SIM_STARTED, get_mode(mode));
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jit_options,
                           void **jit_values, unsigned int jit_count, CUlibraryOption *options,
                           void **values, unsigned int count)
{
    (void)options, (void)values, (void)count;
    CUresult result = SIM_CALL(cuLibraryLoadData, SIM_READY, load_library(library, code));
    return log_load(result, jit_options, jit_values, jit_count);
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *jit_options,
                               void **jit_values, unsigned int jit_count, CUlibraryOption *options,
                               void **values, unsigned int count)
{
    (void)options, (void)values, (void)count;
    CUresult result = SIM_CALL(cuLibraryLoadFromFile, SIM_READY, load_library(library, path));
    return log_load(result, jit_options, jit_values, jit_count);
}

CUresult cuLibraryUnload(CUlibrary library)
{
    return SIM_CALL(cuLibraryUnload, SIM_READY, unload(module_of(library)));
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    return SIM_CALL(cuLibraryGetKernel, SIM_READY, get_kernel(kernel, library, name));
}

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
    return SIM_CALL(cuLibraryGetModule, SIM_CONTEXT, get_library_module(module, library));
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    return SIM_CALL(cuKernelGetFunction, SIM_CONTEXT, get_kernel_function(function, kernel));
}

CUresult cuKernelGetLibrary(CUlibrary *library, CUkernel kernel)
{
    return SIM_CALL(cuKernelGetLibrary, SIM_READY, get_library(library, kernel));
}

CUresult cuKernelGetName(const char **name, CUkernel kernel)
{
    return SIM_CALL(cuKernelGetName, SIM_READY, get_name(name, kernel));
}

CUresult cuFuncGetModule(CUmodule *module, CUfunction function)
{
    return SIM_CALL(cuFuncGetModule, SIM_CONTEXT, get_module(module, function));
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
    return SIM_CALL(cuFuncIsLoaded, SIM_CONTEXT, is_loaded(state, function));
}

CUresult cuFuncLoad(CUfunction function)
{
    return SIM_CALL(cuFuncLoad, SIM_CONTEXT, prepare(function));
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute name, CUfunction function)
{
    bool is_local = name == CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES;
    (void)function;
    return SIM_CALL(cuFuncGetAttribute, SIM_CONTEXT,
                    set_number(value, is_local ? (int)sim_settings.local_bytes : 0));
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute name, int value)
{
    (void)function;
    (void)name;
    (void)value;
    return SIM_CALL(cuFuncSetAttribute, SIM_CONTEXT, CUDA_SUCCESS);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function,
                                                     int block_size, size_t shared_bytes)
{
    (void)function;
    (void)block_size;
    (void)shared_bytes;
    return SIM_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, SIM_CONTEXT,
                    set_number(blocks, 1));
}
