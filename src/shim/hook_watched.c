/*
 * What else takes device memory without being an allocation: streams, events
 * and other objects; access, which needs page tables; limits; exports.
 */
#include "watched.h"

WATCHED(cuStreamCreate, (CUstream * phStream, unsigned int Flags), (phStream, Flags))

WATCHED(cuStreamCreateWithPriority, (CUstream * phStream, unsigned int flags, int priority),
        (phStream, flags, priority))

WATCHED(cuGreenCtxStreamCreate,
        (CUstream * phStream, CUgreenCtx greenCtx, unsigned int flags, int priority),
        (phStream, greenCtx, flags, priority))

WATCHED(cuEventCreate, (CUevent * phEvent, unsigned int Flags), (phEvent, Flags))

WATCHED(cuIpcGetEventHandle, (CUipcEventHandle * pHandle, CUevent event), (pHandle, event))

WATCHED(cuIpcOpenEventHandle, (CUevent * phEvent, CUipcEventHandle handle), (phEvent, handle))

WATCHED(cuImportExternalSemaphore,
        (CUexternalSemaphore * extSem_out,
         const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *semHandleDesc),
        (extSem_out, semHandleDesc))

WATCHED(cuTexObjectCreate,
        (CUtexObject * pTexObject, const CUDA_RESOURCE_DESC *pResDesc,
         const CUDA_TEXTURE_DESC *pTexDesc, const CUDA_RESOURCE_VIEW_DESC *pResViewDesc),
        (pTexObject, pResDesc, pTexDesc, pResViewDesc))

WATCHED(cuSurfObjectCreate, (CUsurfObject * pSurfObject, const CUDA_RESOURCE_DESC *pResDesc),
        (pSurfObject, pResDesc))

WATCHED_ABOUT(gos_watched_limit(limit, value), NULL, cuCtxSetLimit, (CUlimit limit, size_t value),
              (limit, value), (void)0, (void)0, (void)0)

WATCHED(cuCtxEnablePeerAccess, (CUcontext peerContext, unsigned int Flags), (peerContext, Flags))

WATCHED(cuMemSetAccess, (CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count),
        (ptr, size, desc, count))

WATCHED(cuMemPoolSetAccess, (CUmemoryPool pool, const CUmemAccessDesc *map, size_t count),
        (pool, map, count))

WATCHED(cuIpcGetMemHandle, (CUipcMemHandle * pHandle, CUdeviceptr dptr), (pHandle, dptr))

WATCHED(cuMemExportToShareableHandle,
        (void *shareableHandle, CUmemGenericAllocationHandle handle,
         CUmemAllocationHandleType handleType, unsigned long long flags),
        (shareableHandle, handle, handleType, flags))

WATCHED(cuMemGetHandleForAddressRange,
        (void *handle, CUdeviceptr dptr, size_t size, CUmemRangeHandleType handleType,
         unsigned long long flags),
        (handle, dptr, size, handleType, flags))

WATCHED(cuMemPoolExportToShareableHandle,
        (void *handle_out, CUmemoryPool pool, CUmemAllocationHandleType handleType,
         unsigned long long flags),
        (handle_out, pool, handleType, flags))

WATCHED(cuMemPoolExportPointer, (CUmemPoolPtrExportData * shareData_out, CUdeviceptr ptr),
        (shareData_out, ptr))

WATCHED(cuMulticastAddDevice, (CUmemGenericAllocationHandle mcHandle, CUdevice dev),
        (mcHandle, dev))

WATCHED(cuMulticastBindMem,
        (CUmemGenericAllocationHandle mcHandle, size_t mcOffset,
         CUmemGenericAllocationHandle memHandle, size_t memOffset, size_t size,
         unsigned long long flags),
        (mcHandle, mcOffset, memHandle, memOffset, size, flags))

WATCHED(cuMulticastBindAddr,
        (CUmemGenericAllocationHandle mcHandle, size_t mcOffset, CUdeviceptr memptr, size_t size,
         unsigned long long flags),
        (mcHandle, mcOffset, memptr, size, flags))

WATCHED(cuMulticastBindMem_v2,
        (CUmemGenericAllocationHandle mcHandle, CUdevice dev, size_t mcOffset,
         CUmemGenericAllocationHandle memHandle, size_t memOffset, size_t size,
         unsigned long long flags),
        (mcHandle, dev, mcOffset, memHandle, memOffset, size, flags))

WATCHED(cuMulticastBindAddr_v2,
        (CUmemGenericAllocationHandle mcHandle, CUdevice dev, size_t mcOffset, CUdeviceptr memptr,
         size_t size, unsigned long long flags),
        (mcHandle, dev, mcOffset, memptr, size, flags))

WATCHED(cuLogicalEndpointCreate, (CUlogicalEndpointId leId, const CUlogicalEndpointProp *prop),
        (leId, prop))

WATCHED(cuLogicalEndpointAddDevice, (CUlogicalEndpointId leId, CUdevice dev), (leId, dev))

WATCHED(cuLogicalEndpointBindMem,
        (CUlogicalEndpointId leId, CUdevice dev, cuuint64_t offset,
         CUmemGenericAllocationHandle memHandle, cuuint64_t memOffset, cuuint64_t size,
         unsigned long long flags),
        (leId, dev, offset, memHandle, memOffset, size, flags))

WATCHED(cuLogicalEndpointBindAddr,
        (CUlogicalEndpointId leId, CUdevice dev, cuuint64_t offset, void *ptr, cuuint64_t size,
         unsigned long long flags),
        (leId, dev, offset, ptr, size, flags))

WATCHED(cuLogicalEndpointExport,
        (void *handle, CUlogicalEndpointId leId, CUlogicalEndpointIpcHandleType handleType),
        (handle, leId, handleType))

WATCHED(cuLogicalEndpointImport,
        (CUlogicalEndpointId leId, const void *handle, CUlogicalEndpointIpcHandleType handleType),
        (leId, handle, handleType))
