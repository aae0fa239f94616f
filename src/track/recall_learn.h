/* Learning what has to lie where for a stack to be recognised (recall.h). */
#ifndef GOS_TRACK_RECALL_LEARN_H
#define GOS_TRACK_RECALL_LEARN_H

#include "recall.h"

/* Callee-saved registers that the capturing function keeps right below key.slot. */
#define GOS_RECALL_SAVED_BYTES 64

/*
 * Walk the calling thread's stack slowly, for the lesson that gos_recall_note
 * has begun.  `addresses` is the same stack as the fast walk saw it, from the
 * capturing function's caller on; its first `own` frames are ours and not kept.
 * Without agreement between the two walks, or without libunwind, nothing is learned.
 *
 * Hook context: yes; some microseconds.
 */
void gos_recall_learn(struct gos_recall *recall, const uintptr_t *addresses, uint32_t count,
                      uint32_t own);

#endif
