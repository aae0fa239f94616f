/*
 * Frames, each kept once and known by a small number.  Stacks are mostly made
 * of frames that others have too, so a stack is a list of such numbers.
 *
 * Frames are never removed.  Hook context: yes.
 */
#ifndef GOS_TRACK_FRAME_TABLE_H
#define GOS_TRACK_FRAME_TABLE_H

#include <stdint.h>

#include "site.h"

/* A frame of either kind, all of it: padding must be zero. */
union gos_frame {
    uint64_t words[3];
    struct gos_native_frame native;
    struct gos_python_frame python;
};
_Static_assert(sizeof(union gos_frame) == 3 * sizeof(uint64_t), "the words are the whole frame");

/* 1…; 0 when memory ran out.  Frames of different kinds with the same words share a number. */
uint32_t gos_frame_table_number(const union gos_frame *frame);
/* A number that was given out.  The result is permanent; takes no lock. */
const union gos_frame *gos_frame_table_get(uint32_t number);

void gos_frame_table_reset_after_fork(void);

#endif
