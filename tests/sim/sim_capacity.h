/*
 * Device memory as a number: who has how much of which device.
 *
 * One table for all processes that name the same GPUSIM_STATE file, else a
 * private one.  A process has one row; what it holds is in that row and in no
 * other place, so that a process killed with SIGKILL gives its memory back
 * when somebody next looks: rows of dead processes are swept.
 *
 * Device memory is paged, so a number of bytes is all there is to it: no
 * request fails for want of contiguous memory [H200].
 *
 * Thread-safe; takes a robust lock that processes share.
 */
#ifndef SIM_CAPACITY_H
#define SIM_CAPACITY_H

#include <stdbool.h>
#include <stdint.h>

#include "sim_settings.h"

struct sim_row {
    int32_t pid; /* 0: free row */
    uint64_t start_ticks;
    char name[32];
    uint64_t used_bytes[SIM_DEVICES_MAX];
};

struct sim_capacity;

/* Opens the shared table, or makes a private one.  False when neither works. */
bool sim_capacity_open(void);

/* NVML in the same process looks at the driver's private table through this. */
struct sim_capacity *sim_capacity_table(void);
void sim_capacity_adopt(struct sim_capacity *table);

/* False, and nothing taken, when the device has less than `bytes` left. */
bool sim_capacity_take(int device, uint64_t bytes);
void sim_capacity_give(int device, uint64_t bytes);

uint64_t sim_capacity_free_bytes(int device);

/* Copies up to `max` live rows that hold memory of the device; returns their number. */
unsigned sim_capacity_rows(int device, struct sim_row *rows, unsigned max);

/* Gives everything back at exit. */
void sim_capacity_leave(void);

#endif
