/*
 * The Python interpreter in this process: it may be the program, come with a
 * library, wake up late, end, and be unloaded.
 */
#ifndef GOS_TRACK_PYTHON_INTERPRETER_H
#define GOS_TRACK_PYTHON_INTERPRETER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/module.h"
#include "python_layout.h"

typedef int gos_python_question(void);

/* Permanent once adopted: a thread may be reading it although it was replaced. */
struct gos_interpreter {
    struct gos_interpreter *next; /* another that was adopted once */
    const struct gos_module *module;
    struct gos_python_layout layout;
    void *(*thread_state)(void);
    gos_python_question *is_initialized;
    uintptr_t code_type;
    const char *version;
};

extern _Atomic(const struct gos_interpreter *) gos_python_adopted;

/* The interpreter, or NULL when none was found yet. */
static inline const struct gos_interpreter *gos_python_known(void)
{
    return atomic_load_explicit(&gos_python_adopted, memory_order_acquire);
}

/* The same, but where there is none it is looked for, if that is due. */
const struct gos_interpreter *gos_python_look(void);
static inline const struct gos_interpreter *gos_python_current(void)
{
    const struct gos_interpreter *python = gos_python_known();

    return python ? python : gos_python_look();
}

/*
 * Find the interpreter in this process, if it has one by now: walks modules
 * for Py_Version/Py_GetVersion, PyCode_Type, PyGILState_GetThisThreadState.
 * Cheap when already found; tried again while none is found, at most once per
 * new set of loaded modules.  Hook context: yes.
 */
bool gos_python_find(void);

/*
 * Around each dlclose of the host, which may unload the interpreter; the
 * modules are refreshed before the end.
 */
void gos_python_unload_begin(void);
void gos_python_unload_end(void);

/* "3.12.3", or NULL without an interpreter. */
const char *gos_python_version(void);
/* Why Python stacks are off ("CPython 3.15 is not known"), or NULL. */
const char *gos_python_unsupported(void);

void gos_python_reset_after_fork(void);

#endif
