/*
 * Which callers ask again after a failure, and how often.
 *
 * Some libraries are known for it.  Of everybody else it is learned: a place in
 * the code whose failures were followed, at once, by a success of the same
 * function with the same or a smaller size (a pool that frees its cache, one
 * that asks for nine tenths again and again) gets as many of its next answers
 * back at once as it has survived before.  A place that does not survive them
 * is forgotten.
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

/* May it give up earlier than that? */
bool gos_habit_is_vague(const struct gos_request *request);

/*
 * Where the request was made: the call in the library that asked and the next
 * callers, of which those in Python are known by their lines.  0: not known (no
 * stack), or of a kind that nobody repeats.
 */
uint64_t gos_habit_place(const struct gos_request *request);

/* How many failures in a row that place has survived; 0: none, or not known. */
uint32_t gos_habit_survived(uint64_t place);
void gos_habit_learn(uint64_t place, uint32_t failure_count);
void gos_habit_forget(uint64_t place);

void gos_habit_reset_after_fork(void);

#endif
