#include "python_script.h"

#include <stdbool.h>

#include "helper_thread.h"
#include "python_api.h"
#include "python_error.h"

typedef const struct gos_python_api *python;

/* Of Include/compile.h: a sequence of statements. */
#define FILE_INPUT 257

static void let_go(python py, void *object)
{
    if (object)
        py->Py_DecRef(object);
}

static bool set_word(python py, void *globals, const struct gos_python_word *word)
{
    void *value = py->PyUnicode_FromString(word->value);
    bool done = value && py->PyDict_SetItemString(globals, word->name, value) == 0;

    let_go(py, value);
    return done;
}

/*
 * With builtins of its own: up to 3.9 code that is evaluated outside of any
 * frame finds none.  Both dictionaries are borrowed.
 */
static bool furnish(python py, void *globals, const struct gos_python_word *words, size_t count)
{
    void *builtins = py->PyEval_GetBuiltins();
    void *modules = py->PyImport_GetModuleDict();

    if (!builtins || !modules || py->PyDict_SetItemString(globals, "__builtins__", builtins) != 0 ||
        py->PyDict_SetItemString(globals, "modules", modules) != 0)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!set_word(py, globals, &words[i]))
            return false;
    return true;
}

static void *kept_things(python py)
{
    void *interpreter =
        py->current_interpreter && py->interpreter_dict ? py->current_interpreter() : NULL;

    return interpreter ? py->interpreter_dict(interpreter) : NULL;
}

/*
 * Compiled once for each interpreter, which keeps it: a program that is about
 * to end leaves no time for it.  A new reference.
 */
static void *code_of(python py, const char *script)
{
    static const char key[] = "gpuoomshim.script";
    void *kept = kept_things(py);
    void *code = kept ? py->PyDict_GetItemString(kept, key) : NULL;

    if (code) {
        py->Py_IncRef(code);
        return code;
    }
    code = py->Py_CompileString(script, "<gpuoomshim>", FILE_INPUT);
    if (code && kept && py->PyDict_SetItemString(kept, key, code) != 0)
        py->PyErr_Clear();
    return code;
}

static bool evaluate(python py, const char *script, void *globals, void (*begun)(void))
{
    void *code = code_of(py, script);

    begun();
    void *result = code ? py->PyEval_EvalCode(code, globals, globals) : NULL;

    let_go(py, code);
    let_go(py, result);
    return result != NULL;
}

static bool take_answer(python py, void *globals, struct gos_text *answer)
{
    void *string = py->PyDict_GetItemString(globals, "answer");
    const char *words = string ? py->PyUnicode_AsUTF8(string) : NULL;

    if (words)
        gos_text_put(answer, words);
    return words != NULL;
}

static enum gos_python_answer run(python py, const char *script,
                                  const struct gos_python_word *words, size_t count,
                                  struct gos_text *answer, void (*begun)(void))
{
    void *globals = py->PyDict_New();
    bool done = globals && furnish(py, globals, words, count) &&
                evaluate(py, script, globals, begun) && take_answer(py, globals, answer);

    if (!done)
        gos_python_put_error(py, answer);
    let_go(py, globals);
    return done ? GOS_PYTHON_DONE : GOS_PYTHON_RAISED;
}

enum gos_python_answer gos_python_run(const char *script, const struct gos_python_word *words,
                                      size_t count, struct gos_text *answer, void (*begun)(void))
{
    enum gos_python_answer result = GOS_PYTHON_ENDING;
    python py = gos_python_api();

    if (!py)
        return result;
    int state = py->PyGILState_Ensure();
    if (!gos_helper_is_abandoned() && !py->is_finalizing())
        result = run(py, script, words, count, answer, begun);
    py->PyGILState_Release(state);
    return result;
}

static void begun_by_itself(void)
{
}

enum gos_python_answer gos_python_run_held(const char *script, const struct gos_python_word *words,
                                           size_t count, struct gos_text *answer)
{
    python py = gos_python_api();

    return py ? run(py, script, words, count, answer, begun_by_itself) : GOS_PYTHON_ENDING;
}
