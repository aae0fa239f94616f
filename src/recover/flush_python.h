/*
 * Asking a Python module for its idle memory, on the helper thread, under the
 * GIL.
 */
#ifndef GOS_RECOVER_FLUSH_PYTHON_H
#define GOS_RECOVER_FLUSH_PYTHON_H

#include <stddef.h>

#include "../base/text.h"

enum gos_flush_answer {
    GOS_FLUSH_DONE,
    GOS_FLUSH_ABSENT, /* no such module is imported, or the interpreter is ending */
    GOS_FLUSH_RAISED, /* the exception's words were put into the text */
};

/*
 * Call what path[0..length) names: "module:function", where the function may
 * be reached through attributes and calls without arguments
 * ("cupy:get_default_memory_pool().free_all_blocks").  Looks only into
 * sys.modules, and never imports.  May wait for ever: on the helper only.
 */
enum gos_flush_answer gos_flush_python_call(const char *path, size_t length, struct gos_text *text);

#endif
