/* Where a loaded object's file is, by the kernel's list of mappings.  For module.c. */
#ifndef GOS_BASE_MODULE_PATH_H
#define GOS_BASE_MODULE_PATH_H

#include <stdint.h>

#include "memory.h"

/*
 * The loader names an object that was found by a relative path so, and that means
 * nothing once the program has changed its directory, or to a reader elsewhere.
 * The absolute path of the file that is mapped at the address, or NULL.  Reads all
 * of /proc/self/maps up to there: not for every call of a hook, and not while the
 * loader's lock is held.
 */
const char *gos_module_mapped_path(uintptr_t address, struct gos_scratch *scratch);

#endif
