/*
 * The version of NVIDIA's kernel module, by the kernel itself: the one number
 * that no library path can falsify.
 */
#ifndef GOS_OBSERVE_KERNEL_MODULE_H
#define GOS_OBSERVE_KERNEL_MODULE_H

#include <stddef.h>

#define GOS_KERNEL_MODULE_FILE "/proc/driver/nvidia/version"

/* "580.159.03"; its length, 0 where the file is missing or has another form.  Hook context: yes. */
size_t gos_kernel_module_version(char *version, size_t bytes);

#endif
