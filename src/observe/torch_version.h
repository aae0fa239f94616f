/*
 * The CUDA release that torch was built for, from its files: never by asking
 * Python.
 */
#ifndef GOS_OBSERVE_TORCH_VERSION_H
#define GOS_OBSERVE_TORCH_VERSION_H

#include <stddef.h>

/*
 * "13.0": from the package's version where it says so ("2.11.0+cu130"), else
 * from the line `cuda = '13.0'` of torch/version.py, whose folder the library's
 * path (…/torch/lib/libtorch_cuda.so) gives.  Length, 0 if neither tells.
 * Hook context: yes.
 */
size_t gos_torch_version_cuda(const char *package_version, const char *library_path, char *version,
                              size_t bytes);

#endif
