/*
 * Errors of allocation calls that are not about memory, and end jobs all the
 * same: a graph is being captured, the device is busy, nothing is permitted
 * here, the context is lost.  Nothing can be tried; they are told once.
 *
 * Hook context; no call of the driver, no lock.
 */
#ifndef GOS_SHIM_OTHER_ERROR_H
#define GOS_SHIM_OTHER_ERROR_H

#include <stdbool.h>

#include "../observe/evidence.h"

/* So few that failures for want of memory still find room under GPUOOMSHIM_REPORT_MAX. */
#define GOS_OTHER_ERROR_MAX 8

/* Is this process the child of one that initialised CUDA?  Then the driver is not to be asked. */
bool gos_other_error_is_forked(void);

/*
 * An error other than 2, or any in a forked child, that is worth a report.  Not
 * what callers probe for: an argument that a driver does not know or support, a
 * kind of handle that it does not permit; nor the end of the process.
 */
bool gos_other_error_is_telling(enum gos_kind kind, int result);

/*
 * Is it the first of this code, by this library, from this line of the host?  In
 * a forked child: the first of all.  At most GOS_OTHER_ERROR_MAX are, and that no
 * more are told is said.
 */
bool gos_other_error_is_first(const struct gos_request *request);

void gos_other_error_reset_after_fork(void);

#endif
