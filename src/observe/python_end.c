#include "python_end.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "../base/thread.h"

typedef const struct gos_python_api *python;

static _Atomic(const struct gos_python_watcher *) watcher;
static _Atomic bool is_added;

/* What is asked of the interpreter here raises events of its own. */
static __thread bool is_looking __attribute__((tls_model("initial-exec")));

enum sort { OTHER, PROGRAM_ENDS, UNRAISABLE, ATTRIBUTE_READ, FILE_OPENED };

/* A few characters tell most events apart. */
static inline enum sort sort_of(const char *event)
{
    if (event[0] == 's' && event[1] == 'y' && event[2] == 's' && event[3] == '.') {
        if (event[4] == 'e' && strcmp(event, "sys.excepthook") == 0)
            return PROGRAM_ENDS;
        if (event[4] == 'u' && strcmp(event, "sys.unraisablehook") == 0)
            return UNRAISABLE;
    } else if (event[0] == 'o') {
        if (event[1] == 'b' && strcmp(event, "object.__getattr__") == 0)
            return ATTRIBUTE_READ;
        if (event[1] == 'p' && strcmp(event, "open") == 0)
            return FILE_OPENED;
    }
    return OTHER;
}

/* Borrowed; NULL: there is no such element. */
static void *element(python py, void *tuple, ptrdiff_t index)
{
    void *value = tuple ? py->PyTuple_GetItem(tuple, index) : NULL;

    if (!value)
        py->PyErr_Clear();
    return value;
}

/* Functions' code is read far more often than tracebacks are. */
static bool is_of_traceback(void *arguments)
{
    python py = gos_python_api_found();

    if (!py || !py->sees_exceptions)
        return false;
    void *attribute = element(py, arguments, 1);
    const char *name = attribute ? py->PyUnicode_AsUTF8(attribute) : NULL;

    if (!name)
        py->PyErr_Clear();
    return name && strcmp(name, "tb_frame") == 0;
}

/* A new reference to what this thread handles; NULL: nothing. */
static void *handled(python py)
{
    void *type = NULL, *value = NULL, *traceback = NULL;

    py->PyErr_GetExcInfo(&type, &value, &traceback);
    if (type)
        py->Py_DecRef(type);
    if (traceback)
        py->Py_DecRef(traceback);
    return value;
}

static void *kept(python py, void *borrowed)
{
    if (borrowed)
        py->Py_IncRef(borrowed);
    return borrowed;
}

/* sys.excepthook: hook, type, value, traceback; sys.unraisablehook: hook, (type, value, …). */
static void *exception_of(python py, enum sort sort, void *arguments)
{
    if (sort == PROGRAM_ENDS)
        return kept(py, element(py, arguments, 2));
    if (sort == UNRAISABLE)
        return kept(py, element(py, element(py, arguments, 1), 1));
    return handled(py);
}

/* None, and what a damaged program may give, is no exception: their C functions would believe it.
 */
static bool is_exception(python py, void *value)
{
    void *cause = value ? py->PyObject_GetAttrString(value, "__suppress_context__") : NULL;

    if (cause)
        py->Py_DecRef(cause);
    else
        py->PyErr_Clear();
    return cause != NULL;
}

/* Of the last one that this thread told: each of its frames is read. */
static __thread uint64_t last_mark __attribute__((tls_model("initial-exec")));

static void look(python py, enum sort sort, void *exception)
{
    const struct gos_python_watcher *told = atomic_load(&watcher);
    struct gos_python_refusal refusal;
    bool is_end = sort == PROGRAM_ENDS || sort == UNRAISABLE;

    /* First what the exception is about, which may have been put off before. */
    if (is_exception(py, exception) && gos_python_exception_refuses(py, exception, &refusal) &&
        refusal.mark != last_mark) {
        last_mark = refusal.mark;
        told->refused(&refusal, is_end);
    }
    if (is_end)
        told->ends();
}

static __attribute__((noinline)) void look_at(enum sort sort, void *arguments)
{
    int saved = errno;
    python py = gos_python_api();

    is_looking = true;
    if (py && py->sees_exceptions) {
        void *exception = exception_of(py, sort, arguments);

        if (exception || sort == PROGRAM_ENDS)
            look(py, sort, exception);
        if (exception)
            py->Py_DecRef(exception);
    }
    is_looking = false;
    errno = saved;
}

/* Always 0: another answer would be an error of the host's. */
static int hear(const char *event, void *arguments, void *unused)
{
    enum sort sort = sort_of(event);

    (void)unused;
    if (sort == OTHER || is_looking || gos_thread.depth > 0)
        return 0;
    if (sort != ATTRIBUTE_READ || is_of_traceback(arguments))
        look_at(sort, arguments);
    return 0;
}

static bool is_needed(python py)
{
    void *modules = py->PyImport_GetModuleDict();

    return modules &&
           (py->PyDict_GetItemString(modules, "jax") || py->PyDict_GetItemString(modules, "cupy"));
}

/* On the interpreter's main thread, with the GIL; a hook of the host's may forbid it. */
static int add(void *unused)
{
    python py = gos_python_api();

    (void)unused;
    if (!py || !is_needed(py) || atomic_exchange(&is_added, true))
        return 0;
    is_looking = true;
    if (py->PySys_AddAuditHook(hear, NULL) != 0) {
        py->PyErr_Clear();
        atomic_store(&is_added, false);
    }
    is_looking = false;
    return 0;
}

/*
 * Where many calls are pending already it is left to the next cuInit, of which
 * each library that uses CUDA makes one.
 */
void gos_python_end_watch(const struct gos_python_watcher *with)
{
    const struct gos_python_watcher *none = NULL;

    if (atomic_load(&is_added))
        return;
    python py = gos_python_api();
    if (!py || !py->sees_exceptions)
        return;
    atomic_compare_exchange_strong(&watcher, &none, with);
    (void)py->Py_AddPendingCall(add, NULL);
}
