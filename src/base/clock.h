/*
 * The kernel's clocks through its vDSO, found by ourselves: a host may have
 * replaced libc's clock_gettime (to fake the time), and the plain system call
 * costs several times as much.  Hook context: yes.
 */
#ifndef GOS_BASE_CLOCK_H
#define GOS_BASE_CLOCK_H

#include <stdint.h>

/* CLOCK_* in nanoseconds, and in whole milliseconds. */
uint64_t gos_clock_read(int clock);
uint64_t gos_clock_read_ms(int clock);

#endif
