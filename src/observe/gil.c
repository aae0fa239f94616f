#include "gil.h"

#include <stdbool.h>
#include <stddef.h>

#include "python_api.h"

/*
 * PyGILState_Check alone would not do: once a program has made a
 * subinterpreter it always says yes, and letting go of what is not held ends
 * the process.
 */
static bool is_held(const struct gos_python_api *api)
{
    void *own = api->PyGILState_GetThisThreadState();

    return own && api->current_thread_state() == own && api->PyGILState_Check() == 1;
}

bool gos_gil_is_held(void)
{
    const struct gos_python_api *api = gos_python_api();

    return api && is_held(api);
}

void *gos_gil_release(void)
{
    const struct gos_python_api *api = gos_python_api();

    return api && is_held(api) ? api->PyEval_SaveThread() : NULL;
}

/*
 * Were the interpreter ending by now, this would end the thread, as it does
 * with any thread that comes back from a blocking call.
 */
void gos_gil_retake(void *released)
{
    const struct gos_python_api *api = gos_python_api_found();

    if (released && api)
        api->PyEval_RestoreThread(released);
}
