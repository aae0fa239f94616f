/*
 * The unwinding libraries, opened privately: libunwind, or libgcc where it is
 * missing.
 */
#ifndef GOS_TRACK_UNWINDER_H
#define GOS_TRACK_UNWINDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind.h"

/* Registers that a function must give back as it found them: rbx, rbp, r12 to r15. */
#define GOS_UNWINDER_SAVED 6

struct gos_unwinder_frame {
    uintptr_t address; /* where it goes on: a return address */
    uintptr_t stack;   /* its stack pointer; the frame inside it ends there */
    bool is_signal;
    struct {
        uintptr_t value;
        uintptr_t place; /* where a frame inside it keeps the value, 0 nowhere */
    } saved[GOS_UNWINDER_SAVED];
};

/* Loader context.  Warms the libraries up, so that later walks only read. */
void gos_unwinder_open(void);
enum gos_unwinder gos_unwinder_which(void);

/* Longest walk. */
#define GOS_UNWINDER_MAX 96

/*
 * Return addresses of the calling thread, newest first; the first few are
 * those of the walking itself.  Hook context: yes.
 */
size_t gos_unwinder_walk(uintptr_t *addresses, size_t max);

/*
 * Frames one by one, newest first and including those of the walking, while
 * the visitor returns true.  None on other machines than x86-64.  Slow.  Hook
 * context: yes.
 */
typedef bool gos_unwinder_visitor(const struct gos_unwinder_frame *frame, void *arg);
void gos_unwinder_visit(gos_unwinder_visitor *visit, void *arg);

/*
 * In a forked child: native stacks stay off, because libunwind's lock may be
 * held by a thread that is no more.  (A child of a process that used CUDA
 * cannot use it anyway; one of a process that did not opens them afresh.)
 */
void gos_unwinder_reset_after_fork(void);

#endif
