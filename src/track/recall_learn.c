#include "recall_learn.h"

#include <string.h>

#include "unwinder.h"

/* A realigned frame keeps the address of its end this close below its frame pointer. */
#define REALIGNED_BYTES 64

struct walk {
    struct gos_recall_lesson *lesson;
    const uintptr_t *addresses;
    uint32_t count;
    uint32_t own;
    uint32_t done; /* frames that were found so far */
    bool has_failed;
    struct gos_unwinder_frame last;
};

/* Places between variables are what this is about, so the address sanitizer has no say here. */
__attribute__((no_sanitize("address"))) static uintptr_t word_at(uintptr_t place)
{
    uintptr_t word;
    memcpy(&word, (const void *)place, sizeof word);
    return word;
}

/* The saved registers of frames inside the capture lie in no place that stays. */
static bool is_kept(const struct gos_recall_lesson *lesson, uintptr_t place)
{
    return place % sizeof(uintptr_t) == 0 && place >= lesson->key.slot - GOS_RECALL_SAVED_BYTES;
}

static bool expect(struct gos_recall_lesson *lesson, uintptr_t place, uintptr_t value,
                   enum gos_recall_kind kind)
{
    return is_kept(lesson, place) && word_at(place) == value &&
           gos_recall_expect(lesson, place, value, kind);
}

/* Where a realigned frame noted its end, that is part of what decides where it ends. */
static bool expect_noted_end(struct gos_recall_lesson *lesson,
                             const struct gos_unwinder_frame *frame, uintptr_t pointer,
                             uintptr_t end)
{
    for (uintptr_t back = sizeof pointer; back <= REALIGNED_BYTES; back += sizeof pointer) {
        uintptr_t place = pointer - back;
        if (place >= frame->stack && place % sizeof place == 0 && word_at(place) == end &&
            !expect(lesson, place, end, GOS_RECALL_PLACE))
            return false;
    }
    return true;
}

/*
 * A register that points into the frame may be what its end is computed from.
 * If it only points to a variable, comparing it as well does no harm: at the
 * same place, the frame has its variables at the same places.
 */
static bool expect_frame_pointers(struct gos_recall_lesson *lesson,
                                  const struct gos_unwinder_frame *frame, uintptr_t end)
{
    for (size_t i = 0; i < GOS_UNWINDER_SAVED; i++) {
        uintptr_t pointer = frame->saved[i].value;
        if (pointer < frame->stack || pointer > end)
            continue;
        if (!expect(lesson, frame->saved[i].place, pointer, GOS_RECALL_PLACE) ||
            !expect_noted_end(lesson, frame, pointer, end))
            return false;
    }
    return true;
}

static bool is_start(const struct gos_recall_key *key, const struct gos_unwinder_frame *frame)
{
    return frame->address == key->caller && frame->stack == key->slot + sizeof(uintptr_t);
}

/* One frame further out: the frame before it ends where this one's stack pointer was. */
static bool add_frame(struct walk *walk, const struct gos_unwinder_frame *frame)
{
    uintptr_t end = frame->stack;
    if (frame->is_signal || frame->address != walk->addresses[walk->done])
        return false;
    if (walk->done &&
        (end <= walk->last.stack || !expect_frame_pointers(walk->lesson, &walk->last, end)))
        return false;
    return expect(walk->lesson, end - sizeof end, frame->address,
                  walk->done < walk->own ? GOS_RECALL_PLACE : GOS_RECALL_FRAME);
}

static bool visit(const struct gos_unwinder_frame *frame, void *arg)
{
    struct walk *walk = arg;
    if (!walk->done && !is_start(&walk->lesson->key, frame))
        return true;
    if (!add_frame(walk, frame)) {
        walk->has_failed = true;
        return false;
    }
    walk->last = *frame;
    walk->done++;
    return walk->done < walk->count;
}

void gos_recall_learn(struct gos_recall *recall, const uintptr_t *addresses, uint32_t count,
                      uint32_t own)
{
    struct walk walk = {
        .lesson = &recall->lesson, .addresses = addresses, .count = count, .own = own};
    if (!count || count - own > GOS_FRAME_MAX)
        return;
    gos_unwinder_visit(visit, &walk);
    if (!walk.has_failed && walk.done == count)
        gos_recall_keep(recall);
}
