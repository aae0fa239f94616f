/*
 * What a file's debug information and symbols say of an address, by elfutils'
 * libdw.  The library is opened when it is first asked for, so that the command
 * runs without it.  Debug information that is kept apart is found by build id
 * or link, and fetched by debuginfod where the user has set DEBUGINFOD_URLS.
 */
#ifndef GOS_CLI_DEBUG_INFO_H
#define GOS_CLI_DEBUG_INFO_H

#include "../base/module.h"

struct gos_debug_info {
    struct Dwfl *session;
    struct Dwfl_Module *module;
};

/* Strings live until the file is closed. */
struct gos_function {
    const char *name; /* C++: mangled */
    const char *file; /* of the place in it; NULL: not known */
    int line;
};

#define GOS_FUNCTIONS_MAX 64

/* Before anything else.  NULL, or why there is no usable libdw. */
__attribute__((warn_unused_result)) const char *gos_debug_info_load(void);

/*
 * Open the file at the module's path.  0; -ESTALE: it is not the one that was
 * loaded (another build id); else why it cannot be read.  Close it in any case.
 */
__attribute__((warn_unused_result)) int gos_debug_info_open(struct gos_debug_info *info,
                                                            const struct gos_module *module);
void gos_debug_info_close(struct gos_debug_info *info);

/*
 * The functions that a place is in, the innermost inlined one first; how many, 0
 * where nothing is known.  The address counts from the module's base.
 */
size_t gos_debug_info_ask(const struct gos_debug_info *info, uint64_t address,
                          struct gos_function functions[GOS_FUNCTIONS_MAX]);

#endif
