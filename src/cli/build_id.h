/* The build id of a file on disk, to see whether it is still the one that was loaded. */
#ifndef GOS_CLI_BUILD_ID_H
#define GOS_CLI_BUILD_ID_H

#include "../base/module.h"

/*
 * Is the file at the module's path the one that was loaded?  0: yes, also for a
 * module without a build id; -ESTALE: it has another one; else why it cannot be read.
 */
int gos_build_id_check(const struct gos_module *module);

#endif
