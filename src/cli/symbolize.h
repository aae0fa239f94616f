/* Functions and source lines of native frames, by libdw and the files on this machine. */
#ifndef GOS_CLI_SYMBOLIZE_H
#define GOS_CLI_SYMBOLIZE_H

#include "load.h"

/*
 * Give native frames their source lines, and names to those that the report could
 * not name; functions that were inlined become frames of their own.  Files that are
 * not there or not the ones that were loaded (another build id) are left alone, with
 * a line on stderr.
 * 0, or -ENOENT after a complaint when there is no libdw.
 */
__attribute__((warn_unused_result)) int gos_symbolize(struct gos_loaded *loaded);

#endif
