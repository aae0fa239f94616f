/*
 * Reading an exception of the host's interpreter, on a thread that has the GIL:
 * is it, or one that it was raised from, a framework's refusal of memory?  The
 * host's objects stay as they are, and no exception is left set.
 */
#ifndef GOS_OBSERVE_PYTHON_EXCEPTION_H
#define GOS_OBSERVE_PYTHON_EXCEPTION_H

#include <stdbool.h>
#include <stdint.h>

#include "python_api.h"
#include "refusal_words.h"

struct gos_python_refusal {
    struct gos_refusal_words words;
    /*
     * Where it was raised: its traceback, and the frames around that; 0 where
     * it has none.
     */
    uint32_t site;
    uint64_t mark; /* the same each time that this exception is looked at */
};

/*
 * Causes and contexts count, too; not those of KeyboardInterrupt and
 * SystemExit, which end a program for reasons of their own.
 */
bool gos_python_exception_refuses(const struct gos_python_api *py, void *exception,
                                  struct gos_python_refusal *refusal);

#endif
