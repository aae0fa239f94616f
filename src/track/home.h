/*
 * What an allocation ends with, in the driver's terms: its context or its pool,
 * interned to 16 bits because a process has few of them and many allocations.
 *
 * A number is given to another home only after its own was forgotten.
 *
 * Hook context: yes; a home that was seen before is found without a lock.
 */
#ifndef GOS_TRACK_HOME_H
#define GOS_TRACK_HOME_H

#include <stdint.h>

struct gos_home {
    uint64_t context; /* CUcontext, 0 for memory that outlives contexts (pools, VMM) */
    uint64_t pool;    /* CUmemoryPool of stream-ordered allocation, else 0 */
};
#define GOS_HOME_UNKNOWN 0
#define GOS_HOME_MAX 32767 /* at once */

/* The small number of that home; GOS_HOME_UNKNOWN when the table is full (counted as lost). */
uint16_t gos_home_intern(const struct gos_home *home);
/* All zero for GOS_HOME_UNKNOWN. */
struct gos_home gos_home_get(uint16_t index);

/* The context is gone, and with it all records that name it. */
void gos_home_context_ended(uint64_t context);
/*
 * The pool is about to be destroyed.  Where allocations from it live on, its
 * home stays for good.  Visits every record if anything came from the pool.
 */
void gos_home_pool_ends(uint64_t pool);

void gos_home_reset_after_fork(void); /* by gos_registry_reset_after_fork */

#endif
