/*
 * Whether the host's stack, on which we run, has room for what a failure takes.
 * Threads and coroutines with small stacks exist, and no driver call of theirs
 * was made for that.
 */
#ifndef GOS_SHIM_STACK_ROOM_H
#define GOS_SHIM_STACK_ROOM_H

#include <stdbool.h>

/*
 * Room to gather evidence, diagnose, recover and report?  Hook context; about
 * twenty system calls.
 */
bool gos_stack_has_room(void);

#endif
