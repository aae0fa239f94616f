/* What the loader tells of one object, in our terms.  For module.c and module_symbol.c. */
#ifndef GOS_BASE_MODULE_FACTS_H
#define GOS_BASE_MODULE_FACTS_H

#include <link.h>
#include <stdbool.h>

#include "module.h"

/* Fills all but path, name and index.  Inside gos_phdr_walk only. */
void gos_module_describe(const struct dl_phdr_info *info, struct gos_module *module);

/* Is it the same object at the same place?  Does not look at path, name and index. */
bool gos_module_is_same(const struct gos_module *a, const struct gos_module *b);

#endif
