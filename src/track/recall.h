/*
 * Native stacks that are recognised instead of unwound again.
 *
 * On x86-64 a return address lies just below its frame's CFA.  Once a stack
 * has been unwound and the place of each return address noted, the next
 * capture from the same place, at the same stack pointer, has the same frames
 * when those places still hold the same addresses - provided that the frames
 * have the same sizes.  The size of most frames follows from where they are in
 * their code.  Where a frame's end is found through a register (alloca, frame
 * pointers, realigned stacks), the place where an inner frame saved that
 * register is compared as well.
 *
 * The comparison goes from the newest frame outward and stops at the first
 * difference, so that it only reads what is a frame of this very stack.
 *
 * As a net below that reasoning, every GOS_RECALL_CHECK_EVERY-th recognition
 * is checked by unwinding, and one wrong answer switches the shortcut off.
 *
 * Not locked: it belongs to whoever claimed the stack cache around it.
 */
#ifndef GOS_TRACK_RECALL_H
#define GOS_TRACK_RECALL_H

#include <stdbool.h>
#include <stdint.h>

#include "site_cache.h"

#define GOS_RECALL_SETS 32 /* a power of two */
#define GOS_RECALL_WAYS 4
#define GOS_RECALL_CHECK_EVERY 1024
#define GOS_RECALL_CHECKS 160
#define GOS_RECALL_SITES 4 /* Python stacks, or tags, that are met on one native stack */

/* From where a stack is captured. */
struct gos_recall_key {
    uintptr_t slot;   /* where the capturing function's return address lies */
    uintptr_t caller; /* that return address */
    uint32_t depth;   /* frames wanted */
};

struct gos_recall_entry {
    struct gos_recall_key key;
    uint64_t hash; /* gos_stack_hash_native of the addresses; 0: empty */
    bool is_learned;
    uint32_t count;
    uint32_t check_count;
    uint32_t next_site;
    struct gos_site_hint sites[GOS_RECALL_SITES]; /* with these native frames */
    uintptr_t addresses[GOS_FRAME_MAX];           /* as they go into gos_stack.native */
    /* What has to lie where, newest first; offsets are from key.slot. */
    int32_t offsets[GOS_RECALL_CHECKS];
    uintptr_t values[GOS_RECALL_CHECKS];
};

/* All zero is empty. */
struct gos_recall {
    uint32_t recognised_count;
    uint32_t learned_count;
    uint32_t next_way;
    struct gos_recall_entry entries[GOS_RECALL_SETS][GOS_RECALL_WAYS];
};

void gos_recall_forget(struct gos_recall *recall);

/* The remembered stack that lies there now, or NULL. */
struct gos_recall_entry *gos_recall_find(struct gos_recall *recall,
                                         const struct gos_recall_key *key);

/*
 * A stack was unwound from there.  When it has been seen before and is worth
 * learning, its entry, to be filled by gos_recall_learn; else NULL.
 */
struct gos_recall_entry *gos_recall_note(struct gos_recall *recall,
                                         const struct gos_recall_key *key, uint64_t hash);

/* What else must hold for the entry to be recognised.  False when it cannot be noted. */
bool gos_recall_expect(struct gos_recall_entry *entry, uintptr_t place, uintptr_t value);

#endif
