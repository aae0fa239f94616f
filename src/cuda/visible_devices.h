/*
 * Which ordinal CUDA will give a device, before it has given any: what NVML
 * calls the device, and what CUDA_VISIBLE_DEVICES makes of it (CUDA C++
 * Programming Guide, environment variables).  Pure.
 */
#ifndef GOS_CUDA_VISIBLE_DEVICES_H
#define GOS_CUDA_VISIBLE_DEVICES_H

#include <stdbool.h>
#include <stdint.h>

/*
 * False: CUDA will not show the device.  visible: the variable's value, NULL
 * where it is not set; uuid as NVML tells it ("GPU-…"), "" if it does not.
 *
 * Without CUDA_DEVICE_ORDER=PCI_BUS_ID this holds where all devices are of one
 * kind; else CUDA may count the fastest first.
 */
bool gos_visible_ordinal(const char *visible, uint32_t index, const char *uuid, uint32_t *ordinal);

#endif
