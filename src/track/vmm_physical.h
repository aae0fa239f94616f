/*
 * What shows a physical handle, by address or in an array: one count for both.
 * Private to the vmm's files.  Everything here wants the lock held.
 */
#ifndef GOS_TRACK_VMM_PHYSICAL_H
#define GOS_TRACK_VMM_PHYSICAL_H

#include <stdint.h>

#include "../base/lock.h"

struct gos_physical;
extern struct gos_lock gos_vmm_lock;

/* One mapping more; NULL for a handle that is not known. */
struct gos_physical *gos_physical_show(uint64_t handle);
/* One less: with the last, and no reference, the memory is gone and its record too. */
void gos_physical_hide(struct gos_physical *physical);

void gos_vmm_array_reset_after_fork(void); /* by gos_vmm_reset_after_fork */

#endif
