/* Running the one script of ours in the host's interpreter. */
#ifndef GOS_OBSERVE_PYTHON_SCRIPT_H
#define GOS_OBSERVE_PYTHON_SCRIPT_H

#include <stddef.h>

#include "../base/text.h"
#include "python_call.h"

/* A global of the script: a str. */
struct gos_python_word {
    const char *name;
    const char *value;
};

/*
 * Run the script in a namespace of its own, which holds the builtins,
 * `modules` (sys.modules) and the given words, and put what it left in the
 * global `answer`, a str; with GOS_PYTHON_RAISED the exception's words.  It is
 * not run once nobody waits any more, unless the work was started loose.  May
 * wait for ever: on the helper only.  Always the same script.
 * begun is called when the GIL was taken and nothing but the script itself is
 * left to wait for.
 */
enum gos_python_answer gos_python_run(const char *script, const struct gos_python_word *words,
                                      size_t count, struct gos_text *answer, void (*begun)(void));

/*
 * The same on a thread of the host's that has the GIL: nothing is waited for
 * but what the script itself waits for.
 */
enum gos_python_answer gos_python_run_held(const char *script, const struct gos_python_word *words,
                                           size_t count, struct gos_text *answer);

#endif
