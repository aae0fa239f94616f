/* Versions of the driver and of loaded libraries that matter, and where they came from. */
#ifndef GOS_OBSERVE_VERSIONS_H
#define GOS_OBSERVE_VERSIONS_H

#include <stddef.h>

#include "evidence.h"

#define GOS_VERSIONS_MAX 64

/* What rows are called that are not libraries' names. */
#define GOS_VERSION_DRIVER "driver"                /* as NVML calls it, else by libcuda's file */
#define GOS_VERSION_KERNEL_MODULE "kernel module"  /* as the kernel says */
#define GOS_VERSION_TORCH_CUDA "torch is for CUDA" /* the release that torch was built for */

void gos_versions_observe(struct gos_evidence *evidence);

/*
 * What stands after ".so." in the name of the file, or of a file that it is a
 * link to, whichever is longer: "13.0.96".  Length, 0 if there is none.
 */
size_t gos_versions_of_file(const char *path, char *version, size_t bytes);

#endif
