/* The part of gos_arena_intern that memory.c has to know. */
#ifndef GOS_BASE_INTERN_H
#define GOS_BASE_INTERN_H

void gos_intern_reset_after_fork(void);

#endif
