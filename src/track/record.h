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

#include <stddef.h>
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

/* What the word says, read at once. */
struct gos_record_facts {
    uint64_t bytes;
    enum gos_kind kind;
    uint32_t device;
};
static inline struct gos_record_facts gos_record_facts(const struct gos_record *record)
{
    uint64_t word = record->word;

    return (struct gos_record_facts){word & ((UINT64_C(1) << GOS_RECORD_BYTES_BITS) - 1),
                                     (enum gos_kind)(word >> GOS_RECORD_BYTES_BITS & 0xff),
                                     (uint32_t)(word >> 56)};
}

/* Bytes that do not fit are kept as the highest number that does. */
static inline uint64_t gos_record_bytes(uint64_t bytes)
{
    const uint64_t widest = (UINT64_C(1) << GOS_RECORD_BYTES_BITS) - 1;

    return bytes < widest ? bytes : widest;
}

static inline uint64_t gos_record_word(uint64_t bytes, enum gos_kind kind, uint32_t device)
{
    return gos_record_bytes(bytes) | (uint64_t)kind << GOS_RECORD_BYTES_BITS |
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

void gos_record_reload(struct gos_magazine *magazine); /* of an empty one; NULL on failure */
void gos_record_unload(struct gos_magazine *magazine); /* of a full one */

/* Not zeroed; NULL on failure. */
static inline struct gos_record *gos_record_take(struct gos_magazine *magazine)
{
    struct gos_record *record;

    if (__builtin_expect(!magazine->loaded, 0))
        gos_record_reload(magazine);
    record = magazine->loaded;
    if (__builtin_expect(record != NULL, 1)) {
        magazine->loaded = record->next;
        magazine->loaded_count--;
    }
    return record;
}

static inline void gos_record_give(struct gos_magazine *magazine, struct gos_record *record)
{
    if (__builtin_expect(magazine->loaded_count == GOS_RECORD_BATCH, 0))
        gos_record_unload(magazine);
    record->next = magazine->loaded;
    magazine->loaded = record;
    magazine->loaded_count++;
}

void gos_record_reset_after_fork(void); /* the stock */

#endif
