#include "gil.h"

#include <stddef.h>

#include "../track/python_interpreter.h"
#include "python_api.h"

typedef const struct gos_python_api *python;

/*
 * PyGILState_Check alone would not do: once a program has made a
 * subinterpreter it always says yes, and letting go of what is not held ends
 * the process.
 */
static bool is_held(python py)
{
    void *own = py->PyGILState_GetThisThreadState();

    return own && py->current_thread_state() == own && py->PyGILState_Check() == 1;
}

/* NULL: this thread does not hold it. */
static python held(void)
{
    python py = gos_python_api();

    return py && is_held(py) ? py : NULL;
}

bool gos_gil_is_held(void)
{
    return held() != NULL;
}

static bool is_free_threaded(void)
{
    const struct gos_interpreter *interpreter = gos_python_known();

    return interpreter && interpreter->layout.is_free_threaded;
}

static bool is_main(python py)
{
    return py->is_main_thread && py->is_main_thread() == 1;
}

/* Borrowed: what `threading` knows of this thread; NULL: it did not make it. */
static void *find_thread(python py)
{
    void *threading = py->PyDict_GetItemString(py->PyImport_GetModuleDict(), "threading");
    void *all = threading ? py->PyObject_GetAttrString(threading, "_active") : NULL;
    void *number = all ? py->PyLong_FromUnsignedLong(py->PyThread_get_thread_ident()) : NULL;
    void *thread = number ? py->PyDict_GetItem(all, number) : NULL;

    gos_python_let_go(py, number);
    gos_python_let_go(py, all);
    return thread;
}

/*
 * The end of the interpreter begins with the end of all threads of `threading`
 * but the daemons.  Read from attributes, which runs no code of the host.
 */
static bool is_awaited(python py)
{
    struct gos_python_raised raised = gos_python_put_aside(py);
    void *thread = find_thread(py);
    void *daemon = thread ? py->PyObject_GetAttrString(thread, "_daemonic") : NULL;
    bool is_awaited = daemon && py->PyObject_IsTrue(daemon) == 0;

    gos_python_let_go(py, daemon);
    gos_python_put_back(py, &raised);
    return is_awaited;
}

static enum gos_gil state_of(python py)
{
    if (is_main(py))
        return GOS_GIL_MAY_GO;
    if (!is_awaited(py))
        return GOS_GIL_IN_DANGER;
    return is_free_threaded() ? GOS_GIL_MAY_GO : GOS_GIL_STAYS;
}

enum gos_gil gos_gil_state(void)
{
    python py = held();

    return py ? state_of(py) : GOS_GIL_NOT_HELD;
}

void *gos_gil_release(void)
{
    python py = held();

    return py && state_of(py) == GOS_GIL_MAY_GO ? py->PyEval_SaveThread() : NULL;
}

void *gos_gil_detach(void)
{
    return is_free_threaded() ? gos_gil_release() : NULL;
}

void gos_gil_retake(void *released)
{
    python py = gos_python_api_found();

    if (released && py)
        py->PyEval_RestoreThread(released);
}
