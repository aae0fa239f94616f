#include "python_call.h"

#include <string.h>

#include "python_api.h"
#include "python_error.h"
#include "python_visit.h"

#define NAME_MAX_BYTES 128

typedef const struct gos_python_api *python;

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

    gos_python_let_go(py, object);
    return attribute;
}

static void *step_through(python py, void *callable)
{
    void *result = py->PyObject_CallObject(callable, NULL);

    gos_python_let_go(py, callable);
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
            gos_python_let_go(py, object);
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
    gos_python_let_go(py, result);
    return GOS_PYTHON_DONE;
}

enum gos_python_answer gos_python_call(const char *path, size_t length, struct gos_text *text)
{
    struct gos_python_visit visit;

    if (!gos_python_enter(&visit))
        return GOS_PYTHON_ENDING;
    enum gos_python_answer answer = call(visit.py, path, length, text);
    gos_python_leave(&visit);
    return answer;
}
