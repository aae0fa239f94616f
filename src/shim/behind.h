/* The loader's functions that we export as well, as they are without us. */
#ifndef GOS_SHIM_BEHIND_H
#define GOS_SHIM_BEHIND_H

#include <stdatomic.h>

/*
 * That of another preload library behind us if it has one, else libc's.  Kept
 * in the slot.  Allowed in dlsym.
 */
void *gos_behind_us(_Atomic(void *) *slot, const char *name);

#endif
