/*
 * What an observer cannot see of a device, in words for people.  Each state has
 * words of its own, because each has another remedy: NVML is missing, refuses,
 * lists nobody (a container), lists pids without numbers (WSL), or shows one
 * instance of a partitioned card (MIG); MPS keeps clients' memory in its server;
 * an integrated GPU has no memory of its own.
 *
 * Hook context: yes, all.  They only add lines to evidence->incomplete.
 */
#ifndef GOS_OBSERVE_NOT_SEEN_H
#define GOS_OBSERVE_NOT_SEEN_H

#include "evidence.h"

/* Why NVML's numbers of the device are missing; nothing when nvml_status is 0. */
void gos_not_seen_nvml(struct gos_evidence *evidence, const struct gos_device_evidence *device);

/* Why there is no list of processes: by processes_status, which is not 0. */
void gos_not_seen_list(struct gos_evidence *evidence, const struct gos_device_evidence *device);

/* What a list of processes leaves open; the device's part of evidence->processes is filled. */
void gos_not_seen_processes(struct gos_evidence *evidence,
                            const struct gos_device_evidence *device);

/* What follows from the devices' nature: integrated, MIG, several contexts, unused devices. */
void gos_not_seen_devices(struct gos_evidence *evidence);

#endif
