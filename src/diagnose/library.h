/* What is known about libraries by name, beyond gos_library_name (diagnosis.h). */
#ifndef GOS_DIAGNOSE_LIBRARY_H
#define GOS_DIAGNOSE_LIBRARY_H

#include <stdbool.h>

/*
 * Does it keep memory that it does not use?  The name is an everyday one.
 * How much of its live memory is idle is invisible from outside.
 */
bool gos_library_caches(const char *library_name);

/* Only carries calls of others (ctypes, libffi): who asked is the next frame. */
bool gos_library_is_bridge(const char *module_path);

#endif
