/*
 * The variables that matter to CUDA, by an allow-list; everything else stays
 * out of a report.  As they were at first use (libraries read them then) and
 * as they are now.
 */
#ifndef GOS_OBSERVE_ENVIRONMENT_H
#define GOS_OBSERVE_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "evidence.h"

#define GOS_ENVIRONMENT_MAX 128

/* Keep permanent copies.  One caller at a time, once. */
void gos_environment_remember(void);

/* Variables in order of their names; then rank and world from them. */
void gos_environment_observe(struct gos_evidence *evidence);

/* The value now of a variable that is on the list, cut to the room; false: it is not set. */
bool gos_environment_now(const char *name, char *value, size_t room);

/* Is a variable of that name on the list? */
bool gos_environment_allows(const char *name, size_t length);

#endif
