/*
 * libc's own dl_iterate_phdr, past any that a host or another preload library
 * puts in front: theirs may call dlsym to find the real one, and dlsym may be
 * where we come from.
 */
#ifndef GOS_BASE_PHDR_WALK_H
#define GOS_BASE_PHDR_WALK_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>

typedef int gos_phdr_visit(struct dl_phdr_info *info, size_t info_bytes, void *arg);

/* Holds the loader's short lock during each visit: no object can be unmapped meanwhile. */
int gos_phdr_walk(gos_phdr_visit *visit, void *arg);

/*
 * From now on nothing is visited and 0 returned.  For a forked child: fork does
 * not release that lock in it, if another thread of the parent held it.
 */
void gos_phdr_stop(void);
bool gos_phdr_is_stopped(void);

#endif
