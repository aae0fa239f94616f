/*
 * What a thread remembers of its own stacks: how they looked (recall), which
 * sites and which frames they are.
 *
 * A fixed number of caches, by thread number; a thread claims its cache for
 * one capture and goes without when another thread has the same one just then,
 * or when a signal handler interrupted a claim.  So nothing is owned by a
 * thread, and nothing has to be done when one ends.
 *
 * All of it goes by address, so a claim finds it empty after an unload.
 *
 * Hook context: yes; claiming never waits.
 */
#ifndef GOS_TRACK_STACK_CACHE_H
#define GOS_TRACK_STACK_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "frame_cache.h"
#include "python_frames.h"
#include "recall.h"
#include "site_cache.h"

#define GOS_STACK_CACHES 64 /* a power of two */

struct gos_stack_cache {
    atomic_flag claimed;
    bool is_first_meeting; /* with the native stack that was captured last: not worth keeping yet */
    uint64_t unloads;      /* gos_module_unloads when it was last empty */
    struct gos_recall recall;
    struct gos_recall_stack without_native; /* where no native stacks are taken */
    struct gos_python_places places;
    struct gos_frame_cache frames;
    struct gos_site_cache sites;
};

/* NULL when it is in use or there is no memory. */
struct gos_stack_cache *gos_stack_cache_claim(void);
void gos_stack_cache_release(struct gos_stack_cache *cache); /* NULL is allowed */

void gos_stack_cache_reset_after_fork(void);

#endif
