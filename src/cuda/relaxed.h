/*
 * Calls of our own that no capture suffers from.
 *
 * A thread in global mode that asks for memory while another thread captures a
 * stream in global mode gets 900, and the capture is lost [measured on an H200,
 * driver 580].  In relaxed mode its calls are allowed.  A capture can begin at
 * any moment, so whatever we ask besides looking is asked like this.
 *
 * Hook context: yes.  Of the calling thread; begun and ended in pairs.
 */
#ifndef GOS_CUDA_RELAXED_H
#define GOS_CUDA_RELAXED_H

#include <stdbool.h>

#include "cuda_types.h"

struct gos_relaxed {
    CUstreamCaptureMode before;
    bool is_on; /* false: the driver is too old to have modes, or has none to offer now */
};

void gos_relaxed_begin(struct gos_relaxed *relaxed);
/* The thread's mode is again what it was; nothing where it was not begun. */
void gos_relaxed_end(struct gos_relaxed *relaxed);

#endif
