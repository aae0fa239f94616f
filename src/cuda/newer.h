/*
 * What newer CUDA headers declare and the older ones do not: so every build has
 * every row of entrypoints.def, whatever headers it found, for a driver may be
 * newer than they are.  Structures are as large as they are and name what is
 * read here; what is only passed on has no members.
 *
 * Include this after <cuda.h> and <cudaTypedefs.h> of 12.0 or newer; from C++, as C.
 */
#ifndef GOS_CUDA_NEWER_H
#define GOS_CUDA_NEWER_H

#include <cuda.h>
#include <cudaTypedefs.h>

/* Declares a function and the type of its pointer. */
#define NEWER(symbol, version, parameters)                                                         \
    typedef CUresult(CUDAAPI *PFN_##symbol##_v##version) parameters;                               \
    CUresult CUDAAPI symbol parameters;

/* The same where the ABI has an ending of its own. */
#define NEWER_ABI(symbol, type, parameters)                                                        \
    typedef CUresult(CUDAAPI *PFN_##type) parameters;                                              \
    CUresult CUDAAPI symbol parameters;

#if CUDA_VERSION < 12010
typedef struct CUmulticastObjectProp_st {
    unsigned int numDevices;
    size_t size;
    unsigned long long handleTypes;
    unsigned long long flags;
} CUmulticastObjectProp;

NEWER(cuMulticastCreate, 12010, (CUmemGenericAllocationHandle *, const CUmulticastObjectProp *))
NEWER(cuMulticastAddDevice, 12010, (CUmemGenericAllocationHandle, CUdevice))
NEWER(cuMulticastBindMem, 12010,
      (CUmemGenericAllocationHandle, size_t, CUmemGenericAllocationHandle, size_t, size_t,
       unsigned long long))
NEWER(cuMulticastBindAddr, 12010,
      (CUmemGenericAllocationHandle, size_t, CUdeviceptr, size_t, unsigned long long))
#endif

#if CUDA_VERSION < 12020
typedef struct CUgraphNodeParams_st {
    CUgraphNodeType type;
    int reserved0[3];
    union {
        CUDA_MEM_ALLOC_NODE_PARAMS alloc;
        struct {
            CUdeviceptr dptr;
        } free;
        long long reserved1[29];
    };
    long long reserved2;
} CUgraphNodeParams;

NEWER(cuGraphAddNode, 12020,
      (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUgraphNodeParams *))
NEWER(cuGraphNodeSetParams, 12020, (CUgraphNode, CUgraphNodeParams *))
NEWER(cuGraphExecNodeSetParams, 12020, (CUgraphExec, CUgraphNode, CUgraphNodeParams *))
#endif

#if CUDA_VERSION < 12030
typedef struct CUgraphEdgeData_st CUgraphEdgeData;
typedef cuuint64_t CUgraphConditionalHandle;

NEWER_ABI(cuGraphAddNode_v2, cuGraphAddNode_v12030,
          (CUgraphNode *, CUgraph, const CUgraphNode *, const CUgraphEdgeData *, size_t,
           CUgraphNodeParams *))
NEWER(cuGraphConditionalHandleCreate, 12030,
      (CUgraphConditionalHandle *, CUgraph, CUcontext, unsigned int, unsigned int))
NEWER(cuStreamBeginCaptureToGraph, 12030,
      (CUstream, CUgraph, const CUgraphNode *, const CUgraphEdgeData *, size_t,
       CUstreamCaptureMode))
NEWER_ABI(cuStreamBeginCaptureToGraph_ptsz, cuStreamBeginCaptureToGraph_v12030_ptsz,
          (CUstream, CUgraph, const CUgraphNode *, const CUgraphEdgeData *, size_t,
           CUstreamCaptureMode))
#endif

#if CUDA_VERSION < 12040
typedef struct CUgreenCtx_st *CUgreenCtx;
typedef struct CUdevResourceDesc_st *CUdevResourceDesc;

NEWER(cuGreenCtxCreate, 12040, (CUgreenCtx *, CUdevResourceDesc, CUdevice, unsigned int))
NEWER(cuGreenCtxDestroy, 12040, (CUgreenCtx))
NEWER(cuCtxFromGreenCtx, 12040, (CUcontext *, CUgreenCtx))
NEWER(cuModuleEnumerateFunctions, 12040, (CUfunction *, unsigned int, CUmodule))
NEWER(cuLibraryEnumerateKernels, 12040, (CUkernel *, unsigned int, CUlibrary))
NEWER(cuKernelGetParamInfo, 12040, (CUkernel, size_t, size_t *, size_t *))
NEWER(cuFuncGetParamInfo, 12040, (CUfunction, size_t, size_t *, size_t *))
NEWER(cuFuncLoad, 12040, (CUfunction))

typedef enum CUfunctionLoadingState_enum {
    CU_FUNCTION_LOADING_STATE_UNLOADED = 0,
    CU_FUNCTION_LOADING_STATE_LOADED = 1
} CUfunctionLoadingState;
NEWER(cuFuncIsLoaded, 12040, (CUfunctionLoadingState *, CUfunction))
#endif

#if CUDA_VERSION < 12050
typedef struct CUctxCreateParams_st CUctxCreateParams;

NEWER_ABI(cuCtxCreate_v4, cuCtxCreate_v12050,
          (CUcontext *, CUctxCreateParams *, unsigned int, CUdevice))
NEWER(cuGreenCtxStreamCreate, 12050, (CUstream *, CUgreenCtx, unsigned int, int))
#endif

#if CUDA_VERSION < 13000
NEWER(cuMemGetMemPool, 13000, (CUmemoryPool *, CUmemLocation *, CUmemAllocationType))
NEWER(cuMemGetDefaultMemPool, 13000, (CUmemoryPool *, CUmemLocation *, CUmemAllocationType))
NEWER(cuMemSetMemPool, 13000, (CUmemLocation *, CUmemAllocationType, CUmemoryPool))
#endif

#if CUDA_VERSION < 13010
typedef struct CUstreamCigCaptureParams_st CUstreamCigCaptureParams;

NEWER(cuStreamBeginCaptureToCig, 13010, (CUstream, CUstreamCigCaptureParams *))
NEWER_ABI(cuStreamBeginCaptureToCig_ptsz, cuStreamBeginCaptureToCig_v13010_ptsz,
          (CUstream, CUstreamCigCaptureParams *))
NEWER(cuStreamEndCaptureToCig, 13010, (CUstream))
NEWER_ABI(cuStreamEndCaptureToCig_ptsz, cuStreamEndCaptureToCig_v13010_ptsz, (CUstream))
NEWER_ABI(cuMulticastBindMem_v2, cuMulticastBindMem_v13010,
          (CUmemGenericAllocationHandle, CUdevice, size_t, CUmemGenericAllocationHandle, size_t,
           size_t, unsigned long long))
NEWER_ABI(cuMulticastBindAddr_v2, cuMulticastBindAddr_v13010,
          (CUmemGenericAllocationHandle, CUdevice, size_t, CUdeviceptr, size_t, unsigned long long))
#endif

#if CUDA_VERSION < 13020
NEWER(cuKernelGetParamCount, 13020, (CUkernel, size_t *))
NEWER(cuFuncGetParamCount, 13020, (CUfunction, size_t *))
#endif

#if CUDA_VERSION < 13030
typedef cuuint32_t CUlogicalEndpointId;
typedef unsigned int CUlogicalEndpointIpcHandleType; /* an enum */
typedef struct CUlogicalEndpointProp_struct CUlogicalEndpointProp;
typedef CUresult(CUDA_CB *CUgraphRecaptureCallback)(void *, CUgraphNode, const CUgraphNodeParams *,
                                                    const CUgraphNodeParams *,
                                                    unsigned int /* an enum */);

NEWER(cuLogicalEndpointCreate, 13030, (CUlogicalEndpointId, const CUlogicalEndpointProp *))
NEWER(cuLogicalEndpointAddDevice, 13030, (CUlogicalEndpointId, CUdevice))
NEWER(cuLogicalEndpointBindMem, 13030,
      (CUlogicalEndpointId, CUdevice, cuuint64_t, CUmemGenericAllocationHandle, cuuint64_t,
       cuuint64_t, unsigned long long))
NEWER(cuLogicalEndpointBindAddr, 13030,
      (CUlogicalEndpointId, CUdevice, cuuint64_t, void *, cuuint64_t, unsigned long long))
NEWER(cuLogicalEndpointExport, 13030, (void *, CUlogicalEndpointId, CUlogicalEndpointIpcHandleType))
NEWER(cuLogicalEndpointImport, 13030,
      (CUlogicalEndpointId, const void *, CUlogicalEndpointIpcHandleType))
NEWER(cuStreamBeginRecaptureToGraph, 13030,
      (CUstream, CUstreamCaptureMode, CUgraph, CUgraphRecaptureCallback, void *))
NEWER_ABI(cuStreamBeginRecaptureToGraph_ptsz, cuStreamBeginRecaptureToGraph_v13030_ptsz,
          (CUstream, CUstreamCaptureMode, CUgraph, CUgraphRecaptureCallback, void *))
#endif

#if CUDA_VERSION < 13040
NEWER_ABI(cuGraphAddNode_v3, cuGraphAddNode_v13040,
          (CUgraphNode *, CUgraph, const CUgraphNode *, const CUgraphEdgeData *, size_t,
           CUgraphNodeParams *))
NEWER_ABI(cuGraphNodeSetParams_v2, cuGraphNodeSetParams_v13040, (CUgraphNode, CUgraphNodeParams *))
#endif

#undef NEWER
#undef NEWER_ABI

#endif
