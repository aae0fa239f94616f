/*
 * Whether an address still belongs to the object that it belonged to: libraries
 * come and go, and what we remember of one must not outlive it.
 */
#ifndef GOS_BASE_RESIDENCE_H
#define GOS_BASE_RESIDENCE_H

#include <stdint.h>

/*
 * Changes when the object at this address is unloaded or replaced (without
 * glibc 2.35: when any object is unloaded).  Equal stamps: still the same;
 * 0: no object is there.
 *
 * Hook context: yes; no lock from glibc 2.35 on, before that the loader's
 * short one.
 */
uint64_t gos_residence_stamp(const void *address);

#endif
