/*
 * C++ functions as people write them: "model::Layer::grow" for the symbol
 * _ZN5model5Layer4growESt6vectorIiSaIiEE.  Only the name: arguments and template
 * arguments are left out, for a line in a report has no room for them.
 */
#ifndef GOS_BASE_CXX_NAME_H
#define GOS_BASE_CXX_NAME_H

#include "text.h"

/*
 * Puts the name, or the symbol as it is where it is none of C++ or has a form that
 * is not known here (thunks, expressions).  Hook context: yes; bounded.
 */
void gos_cxx_name_put(struct gos_text *text, const char *symbol);

#endif
