/*
 * NVML's memory calls, which monitors and frameworks compare with the
 * driver's: under GPUOOMSHIM_LIMIT they tell of the same smaller device.
 *
 * Substituted in dlsym alone, and only where a limit is set; NVML itself is
 * asked first, and its other answers stay.
 */
#ifndef GOS_SHIM_NVML_HOOK_H
#define GOS_SHIM_NVML_HOOK_H

#include <stdbool.h>

/* One of the names, with a limit set?  Allowed inside dlsym; the settings have been read. */
bool gos_nvml_hook_wants(const char *name);
/* Our function if `found` is that of libnvidia-ml; else `found`. */
void *gos_nvml_hook_substitute(const char *name, void *found);

#endif
