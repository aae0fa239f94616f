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
 * The comparison goes from the newest frame outward, so that it only reads what
 * is a frame of this very stack.  Stacks of one place that begin alike share
 * their beginning: what has to lie where is a list of nodes, one after the
 * other in memory, and where another value leads to another stack, an edge goes
 * from the node to where that one goes on.
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

#define GOS_RECALL_CHECK_EVERY 1024
#define GOS_RECALL_CHECKS 160 /* of one stack */
#define GOS_RECALL_SITES 4    /* Python stacks, or tags, that are met on one native stack */

/* Room; when one of them is full, everything is forgotten. */
#define GOS_RECALL_NODES 65536
#define GOS_RECALL_EDGES 4096 /* a power of two */
#define GOS_RECALL_STACKS 1024
#define GOS_RECALL_SEEN_SETS 1024 /* a power of two */
#define GOS_RECALL_SEEN_WAYS 4    /* another */

/* From where a stack is captured. */
struct gos_recall_key {
    uintptr_t slot;   /* where the capturing function's return address lies */
    uintptr_t caller; /* that return address */
    uint32_t depth;   /* frames wanted */
};

enum gos_recall_kind {
    GOS_RECALL_PLACE, /* the value has to lie there */
    GOS_RECALL_FRAME, /* and is one of gos_stack.native */
    GOS_RECALL_FIRST, /* of a key: its slot, and its depth */
    GOS_RECALL_END,   /* of a stack, with its number; no such value lies at key.slot */
};

/* What has to lie where; the next node follows in memory. */
struct gos_recall_node {
    uintptr_t value;
    int32_t offset; /* of the place, from key.slot */
    uint32_t kind;
};

/* From a node, when this value lies there instead of its own. */
struct gos_recall_edge {
    uintptr_t value;
    uint32_t from; /* with `to` 0: no edge */
    uint32_t to;
};

/* A stack that can be recognised. */
struct gos_recall_stack {
    uint64_t hash; /* gos_stack_hash_native of its frames */
    uint32_t next_site;
    struct gos_site_hint sites[GOS_RECALL_SITES]; /* with these native frames */
};

/* What a stack is to be recognised by, newest first; the first check is of key.slot itself. */
struct gos_recall_lesson {
    struct gos_recall_key key;
    uint64_t hash;
    uint32_t check_count;
    struct gos_recall_node checks[GOS_RECALL_CHECKS];
};

/* All zero is empty. */
struct gos_recall {
    uint32_t recognised_count;
    uint32_t learned_count;
    uint32_t next_way;   /* of a set in seen */
    uint32_t last_first; /* node of the key that was asked for last */
    uint32_t node_count; /* the first is none */
    uint32_t edge_count;
    uint32_t stack_count;
    struct gos_recall_edge edges[GOS_RECALL_EDGES];
    uint64_t seen[GOS_RECALL_SEEN_SETS][GOS_RECALL_SEEN_WAYS]; /* what was met once */
    struct gos_recall_lesson lesson;
    struct gos_recall_stack stacks[GOS_RECALL_STACKS];
    struct gos_recall_node nodes[GOS_RECALL_NODES];
};

void gos_recall_forget(struct gos_recall *recall);

/* The remembered stack that lies there now, or NULL. */
struct gos_recall_stack *gos_recall_find(struct gos_recall *recall,
                                         const struct gos_recall_key *key);

/*
 * The frames of the stack that was found just now, as they go into
 * gos_stack.native, which has room for key.depth of them.  How many.
 */
uint32_t gos_recall_frames(struct gos_recall *recall, const struct gos_recall_key *key,
                           uintptr_t *addresses);

/*
 * A stack was unwound from there.  True when it has been seen before: then
 * recall.lesson is begun, for gos_recall_learn.
 */
bool gos_recall_note(struct gos_recall *recall, const struct gos_recall_key *key, uint64_t hash);

/* What else must hold for the stack to be recognised.  False when it cannot be noted. */
bool gos_recall_expect(struct gos_recall_lesson *lesson, uintptr_t place, uintptr_t value,
                       enum gos_recall_kind kind);

/* From now on the lesson's stack is recognised. */
void gos_recall_keep(struct gos_recall *recall);

/* When code is no longer where it was. */
void gos_recall_forget(struct gos_recall *recall);

#endif
