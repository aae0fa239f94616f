/*
 * The file of a draft: a report that is not told yet, in both of its forms.
 *
 * A header of one page, then two slots of equal length.  What is new goes to
 * the slot that is not valid, and one store makes it valid, so that whatever
 * ends the process leaves the old words or the new ones, never a mixture, and
 * so that another process can read while the first one writes.  Numbers are
 * the machine's own: a draft is read where it was made.
 */
#ifndef GOS_REPORT_DRAFT_FILE_H
#define GOS_REPORT_DRAFT_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/memory.h"
#include "owner.h"

#define GOS_DRAFT_MAGIC "gosdraft"
#define GOS_DRAFT_FORMAT 1u
#define GOS_DRAFT_HEADER_BYTES 4096u
#define GOS_DRAFT_SLOT_MAX_BYTES (4u << 20)

/* Text is the first of the two, JSON the second, everywhere below. */
#define GOS_DRAFT_FORMS 2

struct gos_draft_slot {
    uint64_t bytes[GOS_DRAFT_FORMS]; /* the JSON lies directly behind the text */
    uint32_t forms;       /* GOS_REPORT_TEXT, GOS_REPORT_JSON: the files it is to become */
    uint32_t told_number; /* of the report that this one makes newer; 0: not told yet */
    /* While the files of the report get their names: under which number, and who they are. */
    _Atomic uint32_t is_publishing;
    uint32_t new_number;
    uint64_t inodes[GOS_DRAFT_FORMS];
};

struct gos_draft_header {
    char magic[8];
    uint32_t format;
    uint32_t unused;
    uint64_t slot_bytes;
    struct gos_owner owner;
    uint64_t probe; /* written to see whether the page is there */
    /* Bit 0: which slot; bit 1: whether it says anything; above: how often that changed. */
    _Atomic uint64_t state;
    struct gos_draft_slot slots[2];
};

static inline unsigned gos_draft_slot_of(uint64_t state)
{
    return (unsigned)(state & 1);
}

static inline bool gos_draft_says_something(uint64_t state)
{
    return (state & 2) != 0;
}

static inline uint64_t gos_draft_next_state(uint64_t state, unsigned slot, bool says_something)
{
    return ((state >> 2) + 1) << 2 | (says_something ? 2u : 0u) | slot;
}

/* As it was read. */
struct gos_draft {
    struct gos_draft_header header;
    const struct gos_draft_slot *slot; /* the valid one, in the header */
    const char *data[GOS_DRAFT_FORMS]; /* in scratch, not terminated */
};

/*
 * Read a draft, which may be being changed, and whatever else the file may be:
 *   -EINVAL    no draft, or a damaged one
 *   -EPROTO    of a version that writes them otherwise
 *   -ENODATA   it says nothing any more; the header is filled
 *   -EAGAIN    it changes too fast
 * or what the system said.  Hook context: yes.
 */
__attribute__((warn_unused_result)) int gos_draft_read(int fd, struct gos_draft *draft,
                                                       struct gos_scratch *scratch);

#endif
