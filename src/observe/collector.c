#include "collector.h"

#include <stdbool.h>
#include <stddef.h>

/* More than will ever be allocated; a number of our own, by which ours are known. */
#define OUT_OF_REACH 2147480911
#define EQUAL 2 /* Py_EQ */

static struct {
    void *module; /* gc; NULL: it is not held */
    void *before; /* thresholds, as gc.get_threshold gives them */
    void *ours;
} held;

static void *call(const struct gos_python_api *py, const char *name, void *arguments)
{
    void *function = py->PyObject_GetAttrString(held.module, name);
    void *result = function ? py->PyObject_CallObject(function, arguments) : NULL;

    gos_python_let_go(py, function);
    return result;
}

static bool is_enabled(const struct gos_python_api *py)
{
    void *answer = call(py, "isenabled", NULL);
    bool is_enabled = answer && py->PyObject_IsTrue(answer) == 1;

    gos_python_let_go(py, answer);
    return is_enabled;
}

static void raise_thresholds(const struct gos_python_api *py)
{
    void *set = py->PyObject_GetAttrString(held.module, "set_threshold");
    void *done =
        set ? py->PyObject_CallFunction(set, "iii", OUT_OF_REACH, OUT_OF_REACH, OUT_OF_REACH)
            : NULL;

    gos_python_let_go(py, done);
    gos_python_let_go(py, set);
}

/*
 * The tuples for it are themselves allocations that may set the collector off,
 * up to 3.11: for these few calls, which run no bytecode and so do not let
 * others in, it is disabled.
 */
void gos_collector_hold(const struct gos_python_api *py)
{
    held.module = py->PyDict_GetItemString(py->PyImport_GetModuleDict(), "gc");
    if (!held.module)
        return;
    py->Py_IncRef(held.module);
    if (is_enabled(py)) {
        gos_python_let_go(py, call(py, "disable", NULL));
        held.before = call(py, "get_threshold", NULL);
        raise_thresholds(py);
        held.ours = call(py, "get_threshold", NULL);
        gos_python_let_go(py, call(py, "enable", NULL));
    }
    py->PyErr_Clear();
}

void gos_collector_let_go(const struct gos_python_api *py)
{
    if (!held.module)
        return;
    void *now = held.before && held.ours ? call(py, "get_threshold", NULL) : NULL;
    if (now && py->PyObject_RichCompareBool(now, held.ours, EQUAL) == 1)
        gos_python_let_go(py, call(py, "set_threshold", held.before));
    gos_python_let_go(py, now);
    gos_python_let_go(py, held.ours);
    gos_python_let_go(py, held.before);
    gos_python_let_go(py, held.module);
    held.module = held.before = held.ours = NULL;
    py->PyErr_Clear();
}

static bool has_gil(const struct gos_python_api *py)
{
    void *own = py->PyGILState_GetThisThreadState();

    return own && py->current_thread_state() == own;
}

/* That the interpreter is there needs no look: it was held when the process forked. */
void gos_collector_reset_after_fork(void)
{
    const struct gos_python_api *py = gos_python_api_found();

    if (held.module && py && has_gil(py)) {
        struct gos_python_raised raised = gos_python_put_aside(py);
        gos_collector_let_go(py);
        gos_python_put_back(py, &raised);
    }
    held.module = held.before = held.ours = NULL;
}
