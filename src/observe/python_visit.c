#include "python_visit.h"

#include <stddef.h>

#include "collector.h"
#include "helper_thread.h"

/*
 * Taking the GIL may have lasted longer than anybody waits, or until the
 * interpreter is about to end: then it is given back and nothing is done.
 */
bool gos_python_enter(struct gos_python_visit *visit)
{
    visit->py = gos_python_api();
    if (!visit->py)
        return false;
    visit->state = visit->py->PyGILState_Ensure();
    if (gos_helper_is_abandoned() || visit->py->is_finalizing()) {
        visit->py->PyGILState_Release(visit->state);
        return false;
    }
    visit->raised = gos_python_put_aside(visit->py);
    gos_collector_hold(visit->py);
    return true;
}

void gos_python_leave(struct gos_python_visit *visit)
{
    gos_collector_let_go(visit->py);
    gos_python_put_back(visit->py, &visit->raised);
    visit->py->PyGILState_Release(visit->state);
}
