/*
 * CPython's frames of the calling thread, read from memory: no GIL, no call
 * that can allocate, take a critical section or run Python code.  Safe because
 * the thread is inside a C call, so nobody edits its chain of frames.
 *
 * CPython 3.8 to 3.14; 3.13+ through its own _Py_DebugOffsets, builds without
 * the GIL too.  An unknown version switches Python stacks off.
 */
#ifndef GOS_TRACK_PYTHON_FRAMES_H
#define GOS_TRACK_PYTHON_FRAMES_H

#include "python_interpreter.h"
#include "site.h"

/*
 * Frames of the calling thread into stack->python, with their hash; none
 * without an interpreter or a thread state.  Hook context: yes.
 */
void gos_python_capture(struct gos_stack *stack, uint32_t max);

/*
 * Where the caller's Python frames lay when they were last looked at, outermost
 * first.  A guess, for speed: any content will do.
 */
struct gos_python_places {
    uintptr_t outermost[GOS_FRAME_MAX];
};

/* Would gos_python_capture give exactly these frames?  Hook context: yes. */
bool gos_python_matches(const struct gos_python_ref *refs, uint32_t count, uint32_t max,
                        struct gos_python_places *places);

/*
 * What a capture would have of a frame of that code object at that byte of its
 * code; false: it is none, or there is no interpreter.  With the GIL, or where
 * something keeps the object alive.
 */
bool gos_python_ref_of(uintptr_t code, uint32_t offset, struct gos_python_ref *ref);

/* File, qualified name and line of a captured frame, as permanent strings. */
bool gos_python_decode(const struct gos_python_ref *ref, struct gos_python_frame *frame);

#endif
