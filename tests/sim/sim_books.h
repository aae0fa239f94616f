/*
 * What is alive, added up over every kind of memory, for tests that compare it
 * with somebody else's books.
 */
#ifndef SIM_BOOKS_H
#define SIM_BOOKS_H

#include <stdint.h>

/*
 * Bytes as asked for and number of the live allocations on a device: device,
 * stream-ordered, managed and array memory, and physical handles that are
 * referenced or mapped; not what graphs own or other processes lend.
 * device -1: pinned host memory.  Exported; takes the driver lock.
 */
void gpusim_books(int device, uint64_t *bytes, uint64_t *count);

/* Adds the physical handles on the device.  Under the driver lock. */
void sim_vmm_count(int device, uint64_t *bytes, uint64_t *count);

#endif
