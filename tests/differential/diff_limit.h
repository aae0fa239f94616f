/*
 * A limit for the whole run, DIFFERENTIAL_LIMIT in seconds (none by default):
 * then the host says which step it is in and for how long, and ends with
 * DIFF_LIMIT_STATUS.  A short time says that the driver is slow, a long one
 * that the step waits for something that does not come.
 */
#ifndef DIFF_LIMIT_H
#define DIFF_LIMIT_H

#include <stdint.h>

#define DIFF_LIMIT_STATUS 4

void diff_limit_start(void);
void diff_limit_step(uint64_t seed, unsigned index, const char *name);

#endif
