/* Who else is on the devices: NVML's lists, explained by /proc. */
#ifndef GOS_OBSERVE_PROCESSES_H
#define GOS_OBSERVE_PROCESSES_H

#include "device_state.h"

/* Fills processes, own_bytes and processes_status.  Needs evidence->pid. */
void gos_processes_observe(struct gos_evidence *evidence, const struct gos_device_ids *ids);

/* Name, owner, zombie state and relation of process->pid to `self`, from /proc.  For tests too. */
void gos_processes_explain(struct gos_process_evidence *process, uint32_t self);

#endif
