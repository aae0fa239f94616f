/*
 * When and by whom an allocation was made.  Hook context: yes; lock-free.
 */
#ifndef GOS_TRACK_BIRTH_H
#define GOS_TRACK_BIRTH_H

#include <stdint.h>

struct gos_birth {
    uint32_t sequence; /* as in struct gos_allocation */
    uint32_t born_ms;
    uint16_t thread;
};

/* Of an allocation that is made now; the first call starts the registry's clock. */
void gos_birth_now(struct gos_birth *birth);

/* Milliseconds since the registry's start, which is the clock of born_ms. */
uint32_t gos_birth_age_ms(void);

/*
 * Numbers given to threads so far: a clock of allocations that is ahead by at
 * most 31 for each thread.
 */
uint64_t gos_birth_drawn(void);

/* A forked child counts from one again, on a clock that has not started. */
void gos_birth_reset_after_fork(void);

#endif
