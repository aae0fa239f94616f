/*
 * Launches, of kernels and of graphs.  With lazy loading the first launch of a
 * kernel loads its module, and a graph takes its memory when it is launched.
 * On error 2 nothing was launched, so the call may be repeated after recovery.
 */
#include "graph_call.h"
#include "watched.h"

WATCHED_LAUNCH(f, hStream, cuLaunchKernel,
               (CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                unsigned int sharedMemBytes, CUstream hStream, void **kernelParams, void **extra),
               (f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes,
                hStream, kernelParams, extra))

WATCHED_LAUNCH(f, hStream, cuLaunchKernel_ptsz,
               (CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                unsigned int sharedMemBytes, CUstream hStream, void **kernelParams, void **extra),
               (f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes,
                hStream, kernelParams, extra))

WATCHED_LAUNCH(f, config ? config->hStream : NULL, cuLaunchKernelEx,
               (const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra),
               (config, f, kernelParams, extra))

WATCHED_LAUNCH(f, config ? config->hStream : NULL, cuLaunchKernelEx_ptsz,
               (const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra),
               (config, f, kernelParams, extra))

WATCHED_LAUNCH(f, hStream, cuLaunchCooperativeKernel,
               (CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                unsigned int sharedMemBytes, CUstream hStream, void **kernelParams),
               (f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes,
                hStream, kernelParams))

WATCHED_LAUNCH(f, hStream, cuLaunchCooperativeKernel_ptsz,
               (CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                unsigned int sharedMemBytes, CUstream hStream, void **kernelParams),
               (f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes,
                hStream, kernelParams))

WATCHED(cuLaunchCooperativeKernelMultiDevice,
        (CUDA_LAUNCH_PARAMS * launchParamsList, unsigned int numDevices, unsigned int flags),
        (launchParamsList, numDevices, flags))

WATCHED_LAUNCH(f, NULL, cuLaunch, (CUfunction f), (f))

WATCHED_LAUNCH(f, NULL, cuLaunchGrid, (CUfunction f, int grid_width, int grid_height),
               (f, grid_width, grid_height))

WATCHED_LAUNCH(f, hStream, cuLaunchGridAsync,
               (CUfunction f, int grid_width, int grid_height, CUstream hStream),
               (f, grid_width, grid_height, hStream))

WATCHED_THEN(NULL, cuGraphInstantiate,
             (CUgraphExec * phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode, char *logBuffer,
              size_t bufferSize),
             (phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize),
             gos_graph_note_instantiated(hGraph, phGraphExec))

WATCHED_THEN(NULL, cuGraphInstantiate_v2,
             (CUgraphExec * phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode, char *logBuffer,
              size_t bufferSize),
             (phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize),
             gos_graph_note_instantiated(hGraph, phGraphExec))

WATCHED_THEN(NULL, cuGraphInstantiateWithFlags,
             (CUgraphExec * phGraphExec, CUgraph hGraph, unsigned long long flags),
             (phGraphExec, hGraph, flags), gos_graph_note_instantiated(hGraph, phGraphExec))

WATCHED_THEN(NULL, cuGraphInstantiateWithParams,
             (CUgraphExec * phGraphExec, CUgraph hGraph,
              CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams),
             (phGraphExec, hGraph, instantiateParams),
             gos_graph_note_instantiated(hGraph, phGraphExec))

WATCHED_THEN(NULL, cuGraphInstantiateWithParams_ptsz,
             (CUgraphExec * phGraphExec, CUgraph hGraph,
              CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams),
             (phGraphExec, hGraph, instantiateParams),
             gos_graph_note_instantiated(hGraph, phGraphExec))

WATCHED(cuGraphExecUpdate,
        (CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode *hErrorNode_out,
         CUgraphExecUpdateResult *updateResult_out),
        (hGraphExec, hGraph, hErrorNode_out, updateResult_out))

WATCHED(cuGraphExecUpdate_v2,
        (CUgraphExec hGraphExec, CUgraph hGraph, CUgraphExecUpdateResultInfo *resultInfo),
        (hGraphExec, hGraph, resultInfo))

WATCHED(cuGraphConditionalHandleCreate,
        (CUgraphConditionalHandle * pHandle_out, CUgraph hGraph, CUcontext ctx,
         unsigned int defaultLaunchValue, unsigned int flags),
        (pHandle_out, hGraph, ctx, defaultLaunchValue, flags))

WATCHED_ON(hStream, cuGraphUpload, (CUgraphExec hGraph, CUstream hStream), (hGraph, hStream))

WATCHED_ON(hStream, cuGraphUpload_ptsz, (CUgraphExec hGraphExec, CUstream hStream),
           (hGraphExec, hStream))

WATCHED_THEN(hStream, cuGraphLaunch, (CUgraphExec hGraph, CUstream hStream), (hGraph, hStream),
             gos_graph_note_launched(hGraph, hStream, false))

WATCHED_THEN(hStream, cuGraphLaunch_ptsz, (CUgraphExec hGraphExec, CUstream hStream),
             (hGraphExec, hStream), gos_graph_note_launched(hGraphExec, hStream, true))
