/*
 * Capturing the calling thread's stacks.
 *
 * Native: libunwind (unw_backtrace) when libunwind.so.8 can be opened, else
 * libgcc's _Unwind_Backtrace, else none.  Opened with RTLD_LOCAL by
 * gos_unwind_open from the cuInit hook: as a NEEDED entry libunwind would take
 * over the host's C++ exception handling.
 *
 * Python: frames of the calling thread, read without the GIL and without
 * calling into the interpreter (python_frames.h).
 */
#ifndef GOS_TRACK_UNWIND_H
#define GOS_TRACK_UNWIND_H

#include <stdbool.h>

#include "../base/options.h"
#include "site.h"
#include "tag.h"

enum gos_unwinder { GOS_UNWINDER_NONE, GOS_UNWINDER_LIBUNWIND, GOS_UNWINDER_LIBGCC };

/* Loader context (dlopen).  Idempotent. */
void gos_unwind_open(void);
const char *gos_unwind_name(void); /* "libunwind", "libgcc", "none" */

/* Capture what GPUOOMSHIM_STACK asks for, at most `depth` frames of each.  Hook context: yes. */
void gos_unwind_capture(struct gos_stack *stack, uint32_t depth);

/* Capture and intern in one step. */
uint32_t gos_unwind_site_now(void);
/* The same: what hooks call.  Where there is nothing to capture, it costs two loads. */
static inline bool gos_unwind_is_wanted(void)
{
    return gos_options.stack != GOS_STACK_OFF || gos_tag_current();
}
static inline uint32_t gos_unwind_site(void)
{
    return gos_unwind_is_wanted() ? gos_unwind_site_now() : 0;
}

/*
 * In a forked child of a process that had opened an unwinder: native stacks
 * are off, because libunwind's lock may be held by a thread that is no more.
 */
void gos_unwind_reset_after_fork(void);

#endif
