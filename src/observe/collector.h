/*
 * Python's collector of cycles, held back while we call into the interpreter.
 *
 * What it ends has finalizers and callbacks of the host, which belong on the
 * host's threads and may want locks that whoever waits for us holds.  It is set
 * off by any allocation, and since 3.12 by the next bytecode of any thread.
 *
 * Held back by its thresholds, which the whole process shares: the host's own
 * gc.disable() and gc.enable() keep their effect meanwhile, and thresholds that
 * the host sets meanwhile stay.  Through the module gc, which torch, CuPy and JAX
 * import; where it was never imported the collector is not held.
 */
#ifndef GOS_OBSERVE_COLLECTOR_H
#define GOS_OBSERVE_COLLECTOR_H

#include "python_api.h"

/*
 * By one thread at a time, which has the helper's claim and holds the GIL.
 * No exception is set before or after.  Neither runs bytecode or lets the
 * collector run.
 */
void gos_collector_hold(const struct gos_python_api *py);
void gos_collector_let_go(const struct gos_python_api *py);

/* The child of a thread with the GIL goes on with the thresholds of before. */
void gos_collector_reset_after_fork(void);

#endif
