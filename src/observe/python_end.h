/*
 * Exceptions of the host's interpreter that end a program or a thread, and, as
 * far as they come by, those that somebody handles.
 *
 * CPython tells its audit hooks when an exception ends the program
 * (sys.excepthook) or reaches a place that nothing handles
 * (sys.unraisablehook: a thread's first function, a finalizer).  For a
 * threading.Thread it tells nothing, and a test runner or a worker pool handles
 * all by itself; but while one is handled, its traceback is read or a file of
 * source is opened, and these are told, too.  JAX itself reads the traceback of
 * each exception that leaves one of its functions.
 *
 * Such a hook makes each audited event (id(), f.__code__, open()) dearer, by 30
 * to 100 ns of CPython's own; so only a process that has imported a framework
 * with a pool that is refused in silence gets one, and it cannot be taken away.
 */
#ifndef GOS_OBSERVE_PYTHON_END_H
#define GOS_OBSERVE_PYTHON_END_H

#include <stdbool.h>

#include "python_exception.h"

/*
 * Both are called on the host's thread, which has the GIL and is in Python's
 * own code: under no lock, in no driver call, with gos_thread.depth zero.
 */
struct gos_python_watcher {
    /* An exception ends the program, or a thread. */
    void (*ends)(void);
    /* A framework refused memory; not told twice in a row of the same exception. */
    void (*refused)(const struct gos_python_refusal *refusal, bool is_end);
};

/*
 * Called at each cuInit, on any thread, with the GIL or without: sees to it that
 * the interpreter's main thread adds the hook when it comes by, if JAX or CuPy
 * is imported by then.  Nothing where there is no interpreter.  Hook context; the
 * watcher is permanent, and the first one counts.
 */
void gos_python_end_watch(const struct gos_python_watcher *watcher);

#endif
