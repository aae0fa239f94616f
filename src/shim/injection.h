/*
 * GPUOOMSHIM_INJECT: which calls are made to fail.
 *
 * The calls that pass the filters are numbered in the order in which they come,
 * over all threads; a call that recovery repeats keeps its number.  So with one
 * thread the same calls fail in each run; with several, the same numbers do,
 * and which call gets which depends on who comes first.
 */
#ifndef GOS_SHIM_INJECTION_H
#define GOS_SHIM_INJECTION_H

#include <stdbool.h>
#include <stdint.h>

struct gos_call;

/* Hook context; may capture the stack.  True: this call fails. */
bool gos_injection_hits(const struct gos_call *call);

/* Calls that passed the filters so far, and those of them that were made to fail. */
void gos_injection_count(uint64_t *candidate_count, uint64_t *injected_count);

void gos_injection_reset_after_fork(void);

#endif
