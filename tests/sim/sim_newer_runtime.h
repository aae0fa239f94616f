/* What newer headers of the CUDA runtime declare, for the older ones: see sim_newer.h. */
#ifndef SIM_NEWER_RUNTIME_H
#define SIM_NEWER_RUNTIME_H

#include <cuda_runtime_api.h>

#if CUDART_VERSION < 12050
typedef cudaError_t sim_entry_point_by_version(const char *symbol, void **out, unsigned int version,
                                               unsigned long long flags,
                                               enum cudaDriverEntryPointQueryResult *status);

#pragma GCC visibility push(default)
extern sim_entry_point_by_version cudaGetDriverEntryPointByVersion;
extern sim_entry_point_by_version cudaGetDriverEntryPointByVersion_ptsz;
#pragma GCC visibility pop
#endif

#endif
