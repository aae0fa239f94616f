/*
 * Which callers ask again after a failure, and how often.
 *
 * Some libraries are known for it.  Of everybody else it is learned: a place in
 * the code whose failures were followed, at once, by a success of the same
 * function with the same or a smaller size (a pool that frees its cache, one
 * that asks for nine tenths again and again) gets as many of its next answers
 * back without a word as it has survived before; recovery is tried for it as for
 * any other.  A place that does not survive them is forgotten.
 *
 * Hook context.
 */
#ifndef GOS_SHIM_HABIT_H
#define GOS_SHIM_HABIT_H

#include <stdbool.h>
#include <stdint.h>

#include "../observe/evidence.h"

/* More often than anybody counts: its last attempt looks like the others. */
#define GOS_HABIT_ENDLESS UINT32_MAX

/* How often the requesting library asks for one size before it gives up; 1: not known to retry. */
uint32_t gos_habit_attempts(const struct gos_request *request);

/* Device allocators repeat; nothing repeats a launch or a pinned buffer. */
bool gos_habit_may_repeat(enum gos_kind kind);

/* How many failures in a row that origin (origin.h) has survived; 0: none, or not known. */
uint32_t gos_habit_survived(uint64_t origin);
void gos_habit_learn(uint64_t origin, uint32_t failure_count);
void gos_habit_forget(uint64_t origin);

/* One more word of torch's about that origin: how many there were before. */
uint32_t gos_habit_count_word(uint64_t origin);

void gos_habit_reset_after_fork(void);

#endif
