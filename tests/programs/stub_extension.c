/*
 * A stand-in for an extension that is called with the GIL held.  Each function is
 * given the one that asks for memory.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>

#include "stub_extension.h"

/* --- a section that the GIL guards, as in any extension that never lets go of it --- */

static int inside;
static int overlaps;

static void tell_end(void *unused)
{
    (void)unused;
    puts("outcome: the thread was ended in here");
    fflush(stdout);
}

int stub_extension_ask(stub_ask *ask, size_t bytes)
{
    int result;

    if (inside++)
        overlaps++;
    pthread_cleanup_push(tell_end, NULL);
    result = ask(bytes);
    pthread_cleanup_pop(0);
    inside--;
    return result;
}

int stub_extension_overlaps(void)
{
    return overlaps;
}

/* --- with the interpreter's functions, found in the process --- */

static void *find(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}

int stub_extension_ask_while_raising(stub_ask *ask, size_t bytes)
{
    void (*set_string)(void *, const char *) =
        (void (*)(void *, const char *))find("PyErr_SetString");

    set_string(*(void **)find("PyExc_ValueError"), "in hand");
    return ask(bytes);
}

int stub_extension_ask_with_collection_due(stub_ask *ask, size_t bytes)
{
    void *(*new_list)(ptrdiff_t) = (void *(*)(ptrdiff_t))find("PyList_New");
    void (*let_go)(void *) = (void (*)(void *))find("Py_DecRef");
    void *(*save)(void) = (void *(*)(void))find("PyEval_SaveThread");
    void (*restore)(void *) = (void (*)(void *))find("PyEval_RestoreThread");
    enum { COUNT = 3000 };
    void *lists[COUNT];

    for (int i = 0; i < COUNT; i++)
        lists[i] = new_list(0);
    void *state = save();
    int result = ask(bytes);
    restore(state);
    for (int i = 0; i < COUNT; i++)
        let_go(lists[i]);
    return result;
}
