/*
 * Metadata memory.  Inside a hook the host's malloc is out of reach: the host
 * may hold its lock, may have replaced it, or may be inside it.  So all our
 * memory comes from anonymous mappings of our own.
 *
 * Three shapes, each with one owner:
 *   slab    objects of one size, freed one by one, never returned to the OS
 *   arena   permanent bump memory (interned strings and stacks)
 *   scratch bump memory for one report, unmapped as a whole
 * plus gos_memory_alloc/free for tables whose size varies.
 *
 * Every allocation may fail and gives NULL; callers count what they lose with
 * gos_loss_count (loss.h).
 */
#ifndef GOS_BASE_MEMORY_H
#define GOS_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Not locked: the owner's lock protects it.  Zero it, then set object_bytes. */
struct gos_slab {
    uint32_t object_bytes; /* a multiple of 8, at least 8 */
    void *free_list;
    char *chunk;
    size_t chunk_left_bytes;
};

void *gos_slab_take(struct gos_slab *slab); /* not zeroed */
void gos_slab_give(struct gos_slab *slab, void *object);

/* Permanent memory, 8-byte aligned, zeroed; locked inside. */
void *gos_arena_alloc(size_t bytes);

/* A permanent copy of the text, shared between equal texts.  NULL on failure. */
const char *gos_arena_intern(const char *text, size_t length);

/* For one owner at a time, not locked.  Zero it to start. */
struct gos_scratch {
    struct gos_scratch_chunk *chunk;
    size_t used_bytes;
};

void *gos_scratch_alloc(struct gos_scratch *scratch, size_t bytes); /* zeroed, 16-byte aligned */
char *gos_scratch_copy(struct gos_scratch *scratch, const char *text, size_t length);
void gos_scratch_release(struct gos_scratch *scratch);
/* The same for what is in it, but its memory stays for the next use, in one piece. */
void gos_scratch_rewind(struct gos_scratch *scratch);

/*
 * Address space that scratch memory may have where the system gives no more:
 * a report is needed where its memory has run out.  False: it was used, and
 * there is no room to have it again.
 */
bool gos_memory_keep_ballast(void);
/* Give it to the system, and so to whoever asks next.  False: there is none. */
bool gos_memory_drop_ballast(void);

/* Variable-sized tables; zeroed; locked inside; the size must be given back. */
void *gos_memory_alloc(size_t bytes);
void gos_memory_free(void *memory, size_t bytes);

/* Bytes of metadata mapped by all of the above (for the report and the budget). */
uint64_t gos_memory_mapped_bytes(void);

/* After fork, in the child: forget everything (the parent's copy is left behind). */
void gos_memory_reset_after_fork(void);

#endif
