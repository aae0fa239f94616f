/*
 * Memory of the host: pinned, registered, managed; and addresses opened from
 * other processes.  None of it takes device memory: managed memory is the
 * host's until it is touched, and larger than the device if need be [H200].
 */
#ifndef SIM_HOST_H
#define SIM_HOST_H

#include "sim_range.h"

/* Gives memory of one of these kinds back; the range is out of the map already. */
void sim_host_give(const struct sim_range *range);

#endif
