/*
 * Calling a function of a Python module that the program has imported, on the
 * helper thread, under the GIL.
 */
#ifndef GOS_OBSERVE_PYTHON_CALL_H
#define GOS_OBSERVE_PYTHON_CALL_H

#include <stddef.h>

#include "../base/text.h"

enum gos_python_answer {
    GOS_PYTHON_DONE,
    GOS_PYTHON_ABSENT, /* no such module is imported */
    GOS_PYTHON_ENDING, /* nothing was done: no interpreter, or it or the time for it is ending */
    GOS_PYTHON_RAISED, /* the exception's words were put into the text */
};

/*
 * Call what path[0..length) names: "module:function", where the function may
 * be reached through attributes and calls without arguments
 * ("cupy:get_default_memory_pool().free_all_blocks").  Looks only into
 * sys.modules, and never imports.  May wait for ever: on the helper only.
 */
enum gos_python_answer gos_python_call(const char *path, size_t length, struct gos_text *text);

#endif
