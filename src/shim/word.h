/*
 * What torch tells of itself: each block that it hands out, and that it has
 * given up on a request, right before it throws.
 *
 * Both are functions of libc10.so that a preload library may define.  They run
 * on torch's thread with its allocator's mutex held: nothing here waits for a
 * turn, a GIL or a driver call that can wait, and nothing asks the loader.
 */
#ifndef GOS_SHIM_WORD_H
#define GOS_SHIM_WORD_H

#include <stdbool.h>
#include <stdint.h>

struct gos_word {
    uint64_t asked_bytes;     /* the block, rounded as torch does */
    uint64_t allocated_bytes; /* in blocks of that device, before this request */
    uint64_t reserved_bytes;  /* in segments of that device */
    int device;               /* CUDA's ordinal in this process */
};

/*
 * torch has given up on this request.  Called with gos_thread.depth raised;
 * the caller keeps errno.  The report is on disk when it returns.
 */
void gos_failure_word(const struct gos_word *word);

/* Has torch told a block yet?  Then each of its refusals will be told, too. */
bool gos_word_can_come(void);

#endif
