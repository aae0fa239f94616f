/*
 * Code: modules, libraries, kernels, functions.  With lazy loading each look
 * at a kernel may load it.  On error 2 nothing was loaded, so the call may be
 * repeated after recovery.
 */
#include "watched.h"

/*
 * Some values of the compiler's options are answers, too: the size of a log's
 * buffer becomes the length of the log.  So that each attempt is the same call,
 * they are put back before the next; only those, for the others may be constants.
 */
#define OPTION_MAX 64 /* cuda.h has fewer */

struct values {
    void **at;
    unsigned int count;
    void *given[OPTION_MAX];
};

static void keep(struct values *values, void **at, unsigned int count)
{
    values->at = at;
    values->count = !at ? 0 : count < OPTION_MAX ? count : OPTION_MAX;
    for (unsigned int i = 0; i < values->count; i++)
        values->given[i] = at[i];
}

static void put_back(const struct values *values)
{
    for (unsigned int i = 0; i < values->count; i++)
        if (values->at[i] != values->given[i])
            values->at[i] = values->given[i];
}

#define WATCHED_OPTIONS(at, count, symbol, parameters, arguments)                                  \
    WATCHED_WITH(NULL, symbol, parameters, arguments, struct values values;                        \
                 keep(&values, at, count), put_back(&values), (void)0)

WATCHED(cuModuleLoad, (CUmodule * module, const char *fname), (module, fname))

WATCHED(cuModuleLoadData, (CUmodule * module, const void *image), (module, image))

WATCHED_OPTIONS(optionValues, numOptions, cuModuleLoadDataEx,
                (CUmodule * module, const void *image, unsigned int numOptions,
                 CUjit_option *options, void **optionValues),
                (module, image, numOptions, options, optionValues))

WATCHED(cuModuleLoadFatBinary, (CUmodule * module, const void *fatCubin), (module, fatCubin))

WATCHED(cuModuleGetFunction, (CUfunction * hfunc, CUmodule hmod, const char *name),
        (hfunc, hmod, name))

WATCHED(cuModuleGetGlobal,
        (CUdeviceptr_v1 * dptr, unsigned int *bytes, CUmodule hmod, const char *name),
        (dptr, bytes, hmod, name))

WATCHED(cuModuleGetGlobal_v2, (CUdeviceptr * dptr, size_t *bytes, CUmodule hmod, const char *name),
        (dptr, bytes, hmod, name))

WATCHED(cuModuleGetTexRef, (CUtexref * pTexRef, CUmodule hmod, const char *name),
        (pTexRef, hmod, name))

WATCHED(cuModuleGetSurfRef, (CUsurfref * pSurfRef, CUmodule hmod, const char *name),
        (pSurfRef, hmod, name))

WATCHED(cuModuleEnumerateFunctions,
        (CUfunction * functions, unsigned int numFunctions, CUmodule mod),
        (functions, numFunctions, mod))

WATCHED_OPTIONS(jitOptionsValues, numJitOptions, cuLibraryLoadData,
                (CUlibrary * library, const void *code, CUjit_option *jitOptions,
                 void **jitOptionsValues, unsigned int numJitOptions,
                 CUlibraryOption *libraryOptions, void **libraryOptionValues,
                 unsigned int numLibraryOptions),
                (library, code, jitOptions, jitOptionsValues, numJitOptions, libraryOptions,
                 libraryOptionValues, numLibraryOptions))

WATCHED_OPTIONS(jitOptionsValues, numJitOptions, cuLibraryLoadFromFile,
                (CUlibrary * library, const char *fileName, CUjit_option *jitOptions,
                 void **jitOptionsValues, unsigned int numJitOptions,
                 CUlibraryOption *libraryOptions, void **libraryOptionValues,
                 unsigned int numLibraryOptions),
                (library, fileName, jitOptions, jitOptionsValues, numJitOptions, libraryOptions,
                 libraryOptionValues, numLibraryOptions))

WATCHED(cuLibraryGetKernel, (CUkernel * pKernel, CUlibrary library, const char *name),
        (pKernel, library, name))

WATCHED(cuLibraryGetModule, (CUmodule * pMod, CUlibrary library), (pMod, library))

WATCHED(cuLibraryGetGlobal,
        (CUdeviceptr * dptr, size_t *bytes, CUlibrary library, const char *name),
        (dptr, bytes, library, name))

WATCHED(cuLibraryGetManaged,
        (CUdeviceptr * dptr, size_t *bytes, CUlibrary library, const char *name),
        (dptr, bytes, library, name))

WATCHED(cuLibraryGetUnifiedFunction, (void **fptr, CUlibrary library, const char *symbol),
        (fptr, library, symbol))

WATCHED(cuLibraryEnumerateKernels, (CUkernel * kernels, unsigned int numKernels, CUlibrary lib),
        (kernels, numKernels, lib))

WATCHED(cuKernelGetFunction, (CUfunction * pFunc, CUkernel kernel), (pFunc, kernel))

WATCHED(cuKernelGetAttribute, (int *pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev),
        (pi, attrib, kernel, dev))

WATCHED(cuKernelSetAttribute, (CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev),
        (attrib, val, kernel, dev))

WATCHED(cuKernelSetCacheConfig, (CUkernel kernel, CUfunc_cache config, CUdevice dev),
        (kernel, config, dev))

WATCHED(cuKernelGetParamInfo,
        (CUkernel kernel, size_t paramIndex, size_t *paramOffset, size_t *paramSize),
        (kernel, paramIndex, paramOffset, paramSize))

WATCHED(cuKernelGetParamCount, (CUkernel kernel, size_t *paramCount), (kernel, paramCount))

WATCHED(cuFuncGetAttribute, (int *pi, CUfunction_attribute attrib, CUfunction hfunc),
        (pi, attrib, hfunc))

WATCHED(cuFuncSetAttribute, (CUfunction hfunc, CUfunction_attribute attrib, int value),
        (hfunc, attrib, value))

WATCHED(cuFuncSetCacheConfig, (CUfunction hfunc, CUfunc_cache config), (hfunc, config))

WATCHED(cuFuncSetSharedMemConfig, (CUfunction hfunc, CUsharedconfig config), (hfunc, config))

WATCHED(cuFuncSetBlockShape, (CUfunction hfunc, int x, int y, int z), (hfunc, x, y, z))

WATCHED(cuFuncSetSharedSize, (CUfunction hfunc, unsigned int bytes), (hfunc, bytes))

WATCHED(cuFuncGetModule, (CUmodule * hmod, CUfunction hfunc), (hmod, hfunc))

WATCHED(cuFuncGetParamInfo,
        (CUfunction func, size_t paramIndex, size_t *paramOffset, size_t *paramSize),
        (func, paramIndex, paramOffset, paramSize))

WATCHED(cuFuncLoad, (CUfunction function), (function))

WATCHED(cuFuncGetParamCount, (CUfunction func, size_t *paramCount), (func, paramCount))

WATCHED(cuOccupancyMaxActiveBlocksPerMultiprocessor,
        (int *numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize),
        (numBlocks, func, blockSize, dynamicSMemSize))

WATCHED(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
        (int *numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize,
         unsigned int flags),
        (numBlocks, func, blockSize, dynamicSMemSize, flags))

WATCHED(cuOccupancyMaxPotentialBlockSize,
        (int *minGridSize, int *blockSize, CUfunction func,
         CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize, int blockSizeLimit),
        (minGridSize, blockSize, func, blockSizeToDynamicSMemSize, dynamicSMemSize, blockSizeLimit))

WATCHED(cuOccupancyMaxPotentialBlockSizeWithFlags,
        (int *minGridSize, int *blockSize, CUfunction func,
         CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize, int blockSizeLimit,
         unsigned int flags),
        (minGridSize, blockSize, func, blockSizeToDynamicSMemSize, dynamicSMemSize, blockSizeLimit,
         flags))

WATCHED(cuOccupancyAvailableDynamicSMemPerBlock,
        (size_t * dynamicSmemSize, CUfunction func, int numBlocks, int blockSize),
        (dynamicSmemSize, func, numBlocks, blockSize))

WATCHED(cuOccupancyMaxActiveClusters,
        (int *numClusters, CUfunction func, const CUlaunchConfig *config),
        (numClusters, func, config))

WATCHED(cuOccupancyMaxPotentialClusterSize,
        (int *clusterSize, CUfunction func, const CUlaunchConfig *config),
        (clusterSize, func, config))
