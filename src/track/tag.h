/*
 * Tags: words that a thread puts on what it allocates ("kv-cache").  They are
 * nested; the innermost one becomes part of the site.
 *
 * Hook context: yes.  A thread that never pushed one pays for reading a
 * thread-local word.
 */
#ifndef GOS_TRACK_TAG_H
#define GOS_TRACK_TAG_H

#include <stdint.h>

#define GOS_TAG_NEST_MAX 16
#define GOS_TAG_NAME_MAX 63 /* bytes; a longer name is cut between characters */

struct gos_tags {
    const char *current; /* innermost, interned; NULL: none */
    uint32_t depth;      /* pushes that were not popped; beyond the limit only counted */
    const char *names[GOS_TAG_NEST_MAX];
};

extern __thread struct gos_tags gos_tags __attribute__((tls_model("initial-exec")));

/*
 * A name that is NULL, empty or cannot be kept for want of memory repeats the
 * tag around it, so that its pop has something to take.
 */
void gos_tag_push(const char *name);
void gos_tag_pop(void); /* without a push it does nothing */

static inline const char *gos_tag_current(void)
{
    return gos_tags.current;
}

#endif
