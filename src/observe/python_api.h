/*
 * The interpreter's functions that we need, found in whatever module of
 * this process exports them: python itself, or libpython.
 *
 * Objects and thread states are void pointers: no header of Python is used,
 * and one build serves 3.8 and later.
 */
#ifndef GOS_OBSERVE_PYTHON_API_H
#define GOS_OBSERVE_PYTHON_API_H

#include <stdbool.h>
#include <stddef.h>

#include "../base/module.h"

/* CALL(name, result, arguments); all are in the stable ABI or have not changed since 3.8. */
#define GOS_PYTHON_CALLS(CALL)                                                                     \
    CALL(Py_IsInitialized, int, (void))                                                            \
    CALL(PyGILState_Check, int, (void))                                                            \
    CALL(PyGILState_Ensure, int, (void))                                                           \
    CALL(PyGILState_Release, void, (int state))                                                    \
    CALL(PyGILState_GetThisThreadState, void *, (void))                                            \
    CALL(PyEval_SaveThread, void *, (void))                                                        \
    CALL(PyEval_RestoreThread, void, (void *thread_state))                                         \
    CALL(PyImport_GetModuleDict, void *, (void))                                                   \
    CALL(Py_CompileString, void *, (const char *text, const char *name, int start))                \
    CALL(PyEval_EvalCode, void *, (void *code, void *globals, void *locals))                       \
    CALL(PyEval_GetBuiltins, void *, (void))                                                       \
    CALL(PyDict_New, void *, (void))                                                               \
    CALL(PyDict_SetItemString, int, (void *dict, const char *key, void *value))                    \
    CALL(PyDict_GetItemString, void *, (void *dict, const char *key))                              \
    CALL(PyObject_GetAttrString, void *, (void *object, const char *name))                         \
    CALL(PyObject_CallObject, void *, (void *callable, void *arguments))                           \
    CALL(PyObject_Str, void *, (void *object))                                                     \
    CALL(PyUnicode_FromString, void *, (const char *utf8))                                         \
    CALL(PyUnicode_AsUTF8, const char *, (void *string))                                           \
    CALL(PyErr_Fetch, void, (void **type, void **value, void **traceback))                         \
    CALL(PyErr_Clear, void, (void))                                                                \
    CALL(Py_IncRef, void, (void *object))                                                          \
    CALL(Py_DecRef, void, (void *object))

/* What only a look at exceptions takes; all there from 3.8 on. */
#define GOS_PYTHON_EXCEPTION_CALLS(CALL)                                                           \
    CALL(Py_AddPendingCall, int, (int (*function)(void *arg), void *arg))                          \
    CALL(PySys_AddAuditHook, int,                                                                  \
         (int (*hook)(const char *event, void *arguments, void *data), void *data))                \
    CALL(PyErr_GetExcInfo, void, (void **type, void **value, void **traceback))                    \
    CALL(PyException_GetCause, void *, (void *exception))                                          \
    CALL(PyException_GetContext, void *, (void *exception))                                        \
    CALL(PyException_GetTraceback, void *, (void *exception))                                      \
    CALL(PyObject_Type, void *, (void *object))                                                    \
    CALL(PyTuple_GetItem, void *, (void *tuple, ptrdiff_t index))                                  \
    CALL(PyLong_AsLong, long, (void *integer))

struct gos_python_api {
#define GOS_PYTHON_MEMBER(name, result, arguments) result(*name) arguments;
    GOS_PYTHON_CALLS(GOS_PYTHON_MEMBER)
    GOS_PYTHON_EXCEPTION_CALLS(GOS_PYTHON_MEMBER)
#undef GOS_PYTHON_MEMBER
    /* Exported under one name up to 3.12 and under another from 3.13 on. */
    int (*is_finalizing)(void);
    void *(*current_thread_state)(void);
    /* For what is kept as long as the interpreter lives; may be NULL. */
    void *(*current_interpreter)(void);
    void *(*interpreter_dict)(void *interpreter);
    bool sees_exceptions;            /* has all of GOS_PYTHON_EXCEPTION_CALLS */
    const struct gos_module *module; /* that has all these */
};

/*
 * NULL: no interpreter lives in this process (none, not initialised, ending)
 * or it lacks something.  Hook context: yes; the table is permanent.
 */
const struct gos_python_api *gos_python_api(void);

/* The same without asking how the interpreter is: for what has to be undone. */
const struct gos_python_api *gos_python_api_found(void);

void gos_python_api_reset_after_fork(void);

#endif
