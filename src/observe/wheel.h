/*
 * Versions of Python packages: a library in a wheel is often called
 * libcudart.so.12 and nothing more, but beside it lies a folder
 * nvidia_cuda_runtime_cu12-12.8.90.dist-info.
 */
#ifndef GOS_OBSERVE_WHEEL_H
#define GOS_OBSERVE_WHEEL_H

#include <stddef.h>

/*
 * The version of the package in the site-packages (or dist-packages) that the
 * path lies in.  Its name is the stem, or the stem with a CUDA version behind
 * it: "cupy" and "cupy_cuda12x", "nvidia_nccl_cu12", not "torchvision" for "torch".
 * Length of the version in the buffer, 0 if there is none.  Hook context: yes.
 */
size_t gos_wheel_version(const char *library_path, const char *stem, char *version, size_t bytes);

#endif
