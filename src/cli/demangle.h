/* C++ names for people, by the C++ library of this system where it has one. */
#ifndef GOS_CLI_DEMANGLE_H
#define GOS_CLI_DEMANGLE_H

#include "load.h"

/* A name for people: itself where it is not mangled or there is no C++ library. */
const char *gos_demangled(struct gos_scratch *scratch, const char *symbol);

/* Replace every mangled symbol of the report; without a C++ library they stay. */
void gos_demangle(struct gos_loaded *loaded);

#endif
