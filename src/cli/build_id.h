/* The build id of a file on disk, to see whether it is still the one that was loaded. */
#ifndef GOS_CLI_BUILD_ID_H
#define GOS_CLI_BUILD_ID_H

#include <stdbool.h>

#include "../base/module.h"

/*
 * Is the file at the module's path the one that was loaded?  True also for a
 * module without a build id, as far as the file can be read at all.
 */
bool gos_build_id_matches(const struct gos_module *module);

#endif
