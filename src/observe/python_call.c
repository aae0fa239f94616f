#include "python_call.h"

#include <string.h>

#include "helper_thread.h"
#include "python_api.h"
#include "python_error.h"

#define NAME_MAX_BYTES 128

typedef const struct gos_python_api *python;

static void let_go(python py, void *object)
{
    if (object)
        py->Py_DecRef(object);
}

static bool copy_name(char name[NAME_MAX_BYTES], const char *from, size_t length)
{
    if (length == 0 || length >= NAME_MAX_BYTES)
        return false;
    memcpy(name, from, length);
    name[length] = '\0';
    return true;
}

/* A new reference, or NULL. */
static void *find_module(python py, const char *name)
{
    void *modules = py->PyImport_GetModuleDict();
    void *module = modules ? py->PyDict_GetItemString(modules, name) : NULL;

    if (module)
        py->Py_IncRef(module);
    return module;
}

/* The next two give a new reference for the one that they are given; NULL: an exception is set. */
static void *step_into(python py, void *object, const char *name)
{
    void *attribute = py->PyObject_GetAttrString(object, name);

    let_go(py, object);
    return attribute;
}

static void *step_through(python py, void *callable)
{
    void *result = py->PyObject_CallObject(callable, NULL);

    let_go(py, callable);
    return result;
}

static bool ends_in_call(const char *step, size_t length)
{
    return length > 2 && strncmp(step + length - 2, "()", 2) == 0;
}

/* Attribute after attribute; the last one is called in any case. */
static void *follow(python py, void *object, const char *steps, size_t length)
{
    while (object && length > 0) {
        char name[NAME_MAX_BYTES];
        const char *dot = memchr(steps, '.', length);
        size_t step_length = dot ? (size_t)(dot - steps) : length;
        bool is_called = ends_in_call(steps, step_length);

        if (!copy_name(name, steps, is_called ? step_length - 2 : step_length)) {
            let_go(py, object);
            return NULL;
        }
        object = step_into(py, object, name);
        if (object && (is_called || !dot))
            object = step_through(py, object);
        step_length += dot != NULL;
        steps += step_length;
        length -= step_length;
    }
    return object;
}

static enum gos_python_answer call(python py, const char *path, size_t length,
                                   struct gos_text *text)
{
    char module_name[NAME_MAX_BYTES];
    const char *colon = memchr(path, ':', length);

    if (!colon || !copy_name(module_name, path, (size_t)(colon - path)))
        return GOS_PYTHON_ABSENT;
    void *module = find_module(py, module_name);
    if (!module)
        return GOS_PYTHON_ABSENT;
    void *result = follow(py, module, colon + 1, length - (size_t)(colon + 1 - path));
    if (!result) {
        gos_python_put_error(py, text);
        return GOS_PYTHON_RAISED;
    }
    let_go(py, result);
    return GOS_PYTHON_DONE;
}

/*
 * Taking the GIL may have lasted longer than anybody waits, or until the
 * interpreter is about to end: then it is given back and nothing is done.
 */
enum gos_python_answer gos_python_call(const char *path, size_t length, struct gos_text *text)
{
    enum gos_python_answer answer = GOS_PYTHON_ENDING;
    python py = gos_python_api();

    if (!py)
        return answer;
    int state = py->PyGILState_Ensure();
    if (!gos_helper_is_abandoned() && !py->is_finalizing())
        answer = call(py, path, length, text);
    py->PyGILState_Release(state);
    return answer;
}
