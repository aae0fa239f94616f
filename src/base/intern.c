#include "intern.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "lock.h"
#include "memory.h"

#define SLOTS_FIRST 256u

struct word {
    uint32_t hash;
    uint32_t length;
    char text[]; /* terminated */
};

/* Open addressing, at most two thirds full.  The memory lock is taken inside this one. */
static struct gos_lock words_lock = GOS_LOCK_INIT(GOS_RANK_INTERN);
static struct word **slots;
static uint32_t slot_count; /* a power of two, or 0 */
static uint32_t word_count;

static uint32_t hash_of(const char *text, size_t length)
{
    uint64_t hash = 14695981039346656037ull;

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * 1099511628211ull;
    return (uint32_t)(hash ^ hash >> 32);
}

static bool is_same(const struct word *word, uint32_t hash, const char *text, size_t length)
{
    return word->hash == hash && word->length == length && memcmp(word->text, text, length) == 0;
}

/* The word's slot, or the free one where it belongs. */
static struct word **slot_for(uint32_t hash, const char *text, size_t length)
{
    uint32_t i = hash & (slot_count - 1);

    while (slots[i] && !is_same(slots[i], hash, text, length))
        i = (i + 1) & (slot_count - 1);
    return &slots[i];
}

static bool grow(void)
{
    struct word **old = slots;
    uint32_t old_count = slot_count, new_count = old_count ? old_count * 2 : SLOTS_FIRST;
    struct word **fresh = gos_memory_alloc(new_count * sizeof(*fresh));

    if (!fresh)
        return false;
    slots = fresh;
    slot_count = new_count;
    for (uint32_t i = 0; i < old_count; i++) {
        if (old[i])
            *slot_for(old[i]->hash, old[i]->text, old[i]->length) = old[i];
    }
    gos_memory_free(old, old_count * sizeof(*old));
    return true;
}

/* Without memory for a larger table the old one serves until its last slot but one. */
static bool has_room(void)
{
    return word_count + 1 <= slot_count / 3 * 2 || grow() || word_count + 2 <= slot_count;
}

static struct word *make(uint32_t hash, const char *text, size_t length)
{
    struct word *word = gos_arena_alloc(sizeof(*word) + length + 1);

    if (!word)
        return NULL;
    word->hash = hash;
    word->length = (uint32_t)length;
    memcpy(word->text, text, length);
    return word;
}

static const char *intern(uint32_t hash, const char *text, size_t length)
{
    struct word **slot;

    if (!has_room())
        return NULL;
    slot = slot_for(hash, text, length);
    if (!*slot) {
        *slot = make(hash, text, length);
        word_count += *slot != NULL;
    }
    return *slot ? (*slot)->text : NULL;
}

const char *gos_arena_intern(const char *text, size_t length)
{
    const char *kept;

    if (length > UINT32_MAX / 2)
        return NULL;
    gos_lock_acquire(&words_lock);
    kept = intern(hash_of(text, length), text, length);
    gos_lock_release(&words_lock);
    return kept;
}

/* The words stay where they are; the child only no longer finds them. */
void gos_intern_reset_after_fork(void)
{
    gos_lock_reset(&words_lock);
    slots = NULL;
    slot_count = 0;
    word_count = 0;
}
