/* C++ names for people, by the C++ library of this system where it has one. */
#ifndef GOS_CLI_DEMANGLE_H
#define GOS_CLI_DEMANGLE_H

#include "load.h"

/* Replace every mangled symbol of the report; without a C++ library they stay. */
void gos_demangle(struct gos_loaded *loaded);

#endif
