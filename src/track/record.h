/*
 * An allocation in memory, and where its memory comes from.
 *
 * Each shard keeps unused records in a magazine; full magazines that it does
 * not need go to a common stock, so that a program whose allocations move to
 * other addresses, and so to other shards, uses the same memory again.
 *
 * A magazine is protected by its owner's lock.  Hook context: yes.
 */
#ifndef GOS_TRACK_RECORD_H
#define GOS_TRACK_RECORD_H

#include <stdint.h>

#include "kind.h"

#define GOS_RECORD_BYTES_BITS 48

struct gos_record {
    struct gos_record *next; /* in its bucket (shard.c), or in the chain of unused ones */
    union {
        uint64_t address;              /* in the space of its kind */
        struct gos_record *next_chain; /* of an unused one that begins a chain in stock */
    };
    union {
        struct {
            uint64_t bytes : GOS_RECORD_BYTES_BITS;
            uint64_t kind : 8;
            uint64_t device : 8;
        };
        uint64_t word; /* all three at once (gos_record_word) */
    };
    uint32_t site;
    uint32_t sequence;
    uint32_t born_ms;
    uint16_t home;
    uint16_t thread;
};
_Static_assert(sizeof(struct gos_record) == 40, "the budget per live allocation is 96 bytes");
_Static_assert((int)GOS_KIND_COUNT <= 255, "the field is wide enough");

/* Bytes that do not fit are kept as the highest number that does. */
static inline uint64_t gos_record_word(uint64_t bytes, enum gos_kind kind, uint32_t device)
{
    const uint64_t widest = (UINT64_C(1) << GOS_RECORD_BYTES_BITS) - 1;

    return (bytes < widest ? bytes : widest) | (uint64_t)kind << GOS_RECORD_BYTES_BITS |
           (uint64_t)device << 56;
}

/* Records that change hands at once. */
#define GOS_RECORD_BATCH 48

/* Two chains: a shard that takes and gives around the edge of one stays by itself. */
struct gos_magazine {
    struct gos_record *loaded;
    struct gos_record *spare; /* NULL or a full batch */
    uint32_t loaded_count;
};

struct gos_record *gos_record_take(struct gos_magazine *magazine); /* not zeroed; NULL on failure */
void gos_record_give(struct gos_magazine *magazine, struct gos_record *record);
void gos_record_reset_after_fork(void); /* the stock */

#endif
