/*
 * The turn to look into a failure: one failing thread at a time has it.
 *
 * The one lock that is held across driver calls, and across waits for the GIL,
 * where a thread can come to its end (the interpreter is ending, it is
 * cancelled).  Then the next that wants the turn inherits it.
 *
 * Hook context; taken only by failing threads, never while another lock of ours
 * is held.
 */
#ifndef GOS_SHIM_TURN_H
#define GOS_SHIM_TURN_H

#include <stdbool.h>
#include <stdint.h>

bool gos_turn_try(void);
/* False when the time ran out. */
bool gos_turn_take_within(uint64_t timeout_ns);
void gos_turn_give_back(void);
void gos_turn_reset_after_fork(void);

#endif
