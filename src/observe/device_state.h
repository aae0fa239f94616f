/*
 * Devices by the driver and by NVML.  Only devices that have a context or
 * memory of ours, or that the failed request is about, are read; of the others
 * nothing is known but that they exist.
 */
#ifndef GOS_OBSERVE_DEVICE_STATE_H
#define GOS_OBSERVE_DEVICE_STATE_H

#include "contexts.h"
#include "evidence.h"

/* What NVML needs to find the device again. */
struct gos_device_ids {
    uint8_t uuid[GOS_DEVICE_MAX][16];
    bool uuid_known[GOS_DEVICE_MAX];
    void *nvml[GOS_DEVICE_MAX]; /* NULL: not found; filled by gos_device_state_nvml */
};

/* Driver version, devices, names, free and total.  One cuMemGetInfo for each present device. */
void gos_device_state_driver(struct gos_evidence *evidence, const struct gos_contexts *contexts,
                             struct gos_device_ids *ids);

/* Graph memory of the present devices, by the driver. */
void gos_device_state_graphs(struct gos_evidence *evidence);

/* NVML's totals of the present devices. */
void gos_device_state_nvml(struct gos_evidence *evidence, struct gos_device_ids *ids);

/*
 * What is free of a device now: by the driver if its context is current, else by
 * NVML.  0, or a negative errno when neither tells.
 */
int gos_device_state_free(int ordinal, uint64_t *bytes);

#endif
