/* Interning with a stack cache that the caller has claimed already. */
#ifndef GOS_TRACK_SITE_INTERN_H
#define GOS_TRACK_SITE_INTERN_H

#include "site.h"
#include "stack_cache.h"

/*
 * As gos_site_intern; cache may be NULL.  The hint, where there is one, is filled
 * in when the stack has a number and the cache holds it.  Hook context: yes.
 */
uint32_t gos_site_intern_with(struct gos_stack_cache *cache, const struct gos_stack *stack,
                              struct gos_site_hint *hint);

#endif
