/*
 * What newer CUDA headers declare, for the older ones.  The simulated driver is
 * the same whatever headers it is built with, as a real one is, so that a hook
 * built with old headers meets names that it does not know.
 *
 * Include this after <cuda.h>.  A section goes when no older header is left.
 */
#ifndef SIM_NEWER_H
#define SIM_NEWER_H

#include <cuda.h>
#include <cudaTypedefs.h>

#if CUDA_VERSION < 12000
#error "the simulated GPU needs CUDA headers 12.0 or newer"
#endif

/* Declares a function by its type; the driver exports it. */
#define SIM_NEWER(symbol, type)                                                                    \
    extern __attribute__((visibility("default"))) __typeof__(*(type)NULL) symbol;

#if CUDA_VERSION < 12020
#define CU_MEM_LOCATION_TYPE_HOST_NUMA ((CUmemLocationType)3)

typedef CUresult (*PFN_cuMemPrefetchAsync_v12020)(CUdeviceptr, size_t, CUmemLocation, unsigned int,
                                                  CUstream);
typedef PFN_cuMemPrefetchAsync_v12020 PFN_cuMemPrefetchAsync_v12020_ptsz;

SIM_NEWER(cuMemPrefetchAsync_v2, PFN_cuMemPrefetchAsync_v12020)
SIM_NEWER(cuMemPrefetchAsync_v2_ptsz, PFN_cuMemPrefetchAsync_v12020_ptsz)
#endif

#if CUDA_VERSION < 12030
typedef struct CUgraphEdgeData_st {
    unsigned char from_port, to_port, type, reserved[5];
} CUgraphEdgeData;

typedef CUresult (*PFN_cuKernelGetName_v12030)(const char **, CUkernel);
typedef CUresult (*PFN_cuStreamBeginCaptureToGraph_v12030)(CUstream, CUgraph, const CUgraphNode *,
                                                           const CUgraphEdgeData *, size_t,
                                                           CUstreamCaptureMode);
typedef CUresult (*PFN_cuStreamGetCaptureInfo_v12030)(CUstream, CUstreamCaptureStatus *,
                                                      cuuint64_t *, CUgraph *, const CUgraphNode **,
                                                      const CUgraphEdgeData **, size_t *);
typedef PFN_cuStreamBeginCaptureToGraph_v12030 PFN_cuStreamBeginCaptureToGraph_v12030_ptsz;
typedef PFN_cuStreamGetCaptureInfo_v12030 PFN_cuStreamGetCaptureInfo_v12030_ptsz;

SIM_NEWER(cuKernelGetName, PFN_cuKernelGetName_v12030)
SIM_NEWER(cuStreamBeginCaptureToGraph, PFN_cuStreamBeginCaptureToGraph_v12030)
SIM_NEWER(cuStreamBeginCaptureToGraph_ptsz, PFN_cuStreamBeginCaptureToGraph_v12030_ptsz)
SIM_NEWER(cuStreamGetCaptureInfo_v3, PFN_cuStreamGetCaptureInfo_v12030)
SIM_NEWER(cuStreamGetCaptureInfo_v3_ptsz, PFN_cuStreamGetCaptureInfo_v12030_ptsz)
#endif

#if CUDA_VERSION < 12040
typedef struct CUgreenCtx_st *CUgreenCtx;
typedef enum CUfunctionLoadingState_enum {
    CU_FUNCTION_LOADING_STATE_UNLOADED = 0,
    CU_FUNCTION_LOADING_STATE_LOADED = 1,
} CUfunctionLoadingState;

typedef CUresult (*PFN_cuFuncIsLoaded_v12040)(CUfunctionLoadingState *, CUfunction);
typedef CUresult (*PFN_cuFuncLoad_v12040)(CUfunction);

SIM_NEWER(cuFuncIsLoaded, PFN_cuFuncIsLoaded_v12040)
SIM_NEWER(cuFuncLoad, PFN_cuFuncLoad_v12040)
#endif

#if CUDA_VERSION < 12050
/* Its members do not matter here. */
typedef struct CUctxCreateParams_st CUctxCreateParams;

typedef CUresult (*PFN_cuCtxCreate_v12050)(CUcontext *, CUctxCreateParams *, unsigned int,
                                           CUdevice);
typedef CUresult (*PFN_cuKernelGetLibrary_v12050)(CUlibrary *, CUkernel);
typedef CUresult (*PFN_cuStreamGetCtx_v12050)(CUstream, CUcontext *, CUgreenCtx *);
typedef PFN_cuStreamGetCtx_v12050 PFN_cuStreamGetCtx_v12050_ptsz;

SIM_NEWER(cuCtxCreate_v4, PFN_cuCtxCreate_v12050)
SIM_NEWER(cuKernelGetLibrary, PFN_cuKernelGetLibrary_v12050)
SIM_NEWER(cuStreamGetCtx_v2, PFN_cuStreamGetCtx_v12050)
SIM_NEWER(cuStreamGetCtx_v2_ptsz, PFN_cuStreamGetCtx_v12050_ptsz)
#endif

#if CUDA_VERSION < 12080
typedef CUresult (*PFN_cuEventElapsedTime_v12080)(float *, CUevent, CUevent);
typedef CUresult (*PFN_cuStreamGetDevice_v12080)(CUstream, CUdevice *);
typedef PFN_cuStreamGetDevice_v12080 PFN_cuStreamGetDevice_v12080_ptsz;

SIM_NEWER(cuEventElapsedTime_v2, PFN_cuEventElapsedTime_v12080)
SIM_NEWER(cuStreamGetDevice, PFN_cuStreamGetDevice_v12080)
SIM_NEWER(cuStreamGetDevice_ptsz, PFN_cuStreamGetDevice_v12080_ptsz)
#endif

#if CUDA_VERSION < 12090
typedef enum CUlogLevel_enum { CU_LOG_LEVEL_ERROR = 0, CU_LOG_LEVEL_WARNING = 1 } CUlogLevel;
typedef struct CUlogsCallbackEntry_st *CUlogsCallbackHandle;
typedef void (*CUlogsCallback)(void *, CUlogLevel, char *, size_t);

typedef CUresult (*PFN_cuLogsRegisterCallback_v12090)(CUlogsCallback, void *,
                                                      CUlogsCallbackHandle *);
typedef CUresult (*PFN_cuLogsUnregisterCallback_v12090)(CUlogsCallbackHandle);

SIM_NEWER(cuLogsRegisterCallback, PFN_cuLogsRegisterCallback_v12090)
SIM_NEWER(cuLogsUnregisterCallback, PFN_cuLogsUnregisterCallback_v12090)
#endif

#if CUDA_VERSION < 13000
typedef CUresult (*PFN_cuCtxGetDevice_v13000)(CUdevice *, CUcontext);
typedef CUresult (*PFN_cuCtxSynchronize_v13000)(CUcontext);

SIM_NEWER(cuCtxGetDevice_v2, PFN_cuCtxGetDevice_v13000)
SIM_NEWER(cuCtxSynchronize_v2, PFN_cuCtxSynchronize_v13000)
#endif

#endif
