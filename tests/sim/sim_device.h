/*
 * What the simulated devices are called; the driver and NVML must agree.
 */
#ifndef SIM_DEVICE_H
#define SIM_DEVICE_H

#include <stdio.h>

#define SIM_DEVICE_NAME "Simulated GPU"
#define SIM_DRIVER_TEXT "580.0.0-gpusim"
#define SIM_UUID_BYTES 16

/* 67707573-696d-0000-0000-0000000000NN: "gpusim" and the ordinal. */
static inline void sim_device_uuid(int device, unsigned char uuid[SIM_UUID_BYTES])
{
    static const unsigned char prefix[6] = {'g', 'p', 'u', 's', 'i', 'm'};
    for (int i = 0; i < SIM_UUID_BYTES; i++)
        uuid[i] = i < 6 ? prefix[i] : 0;
    uuid[SIM_UUID_BYTES - 1] = (unsigned char)device;
}

static inline int sim_device_bus_id(int device, char *text, size_t bytes)
{
    return snprintf(text, bytes, "0000:%02X:00.0", (unsigned)(device + 1) & 0xffu);
}

#endif
