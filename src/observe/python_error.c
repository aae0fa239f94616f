#include "python_error.h"

#include <stddef.h>

#define WORDS_MAX 120

/* It may hold anything, so control characters stay out; bytes of UTF-8 are kept. */
static void put_string(const struct gos_python_api *py, void *string, struct gos_text *text)
{
    const char *words = string ? py->PyUnicode_AsUTF8(string) : NULL;

    for (size_t i = 0; words && words[i] && i < WORDS_MAX; i++)
        gos_text_char(text, (unsigned char)words[i] < ' ' ? ' ' : words[i]);
}

static void put_type(const struct gos_python_api *py, void *type, struct gos_text *text)
{
    void *name = type ? py->PyObject_GetAttrString(type, "__name__") : NULL;

    put_string(py, name, text);
    gos_python_let_go(py, name);
}

static void put_value(const struct gos_python_api *py, void *value, struct gos_text *text)
{
    void *string = value ? py->PyObject_Str(value) : NULL;

    gos_text_put(text, ": ");
    put_string(py, string, text);
    gos_python_let_go(py, string);
}

void gos_python_put_error(const struct gos_python_api *py, struct gos_text *text)
{
    void *type = NULL, *value = NULL, *traceback = NULL;

    py->PyErr_Fetch(&type, &value, &traceback);
    if (type) {
        put_type(py, type, text);
        put_value(py, value, text);
    } else {
        gos_text_put(text, "not the path of a function");
    }
    py->PyErr_Clear(); /* what telling it may have raised */
    gos_python_let_go(py, type);
    gos_python_let_go(py, value);
    gos_python_let_go(py, traceback);
}
