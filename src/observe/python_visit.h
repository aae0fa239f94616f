/*
 * Being in the interpreter with the GIL, and leaving it as it was: the collector
 * is held (collector.h), and an exception that the host has in hand is put aside.
 */
#ifndef GOS_OBSERVE_PYTHON_VISIT_H
#define GOS_OBSERVE_PYTHON_VISIT_H

#include <stdbool.h>

#include "python_api.h"

struct gos_python_visit {
    const struct gos_python_api *py;
    struct gos_python_raised raised;
    int state;
};

/*
 * Takes the GIL, which may last for ever: on the helper, or on a thread that has
 * it and the helper's claim.  False: nothing is to be done, and nothing to be
 * left; there is no interpreter, or it or the time for it is ending.
 */
__attribute__((warn_unused_result)) bool gos_python_enter(struct gos_python_visit *visit);
void gos_python_leave(struct gos_python_visit *visit);

#endif
