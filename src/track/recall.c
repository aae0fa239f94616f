#include "recall.h"

#include <stddef.h>
#include <string.h>

static struct gos_recall_entry *set_of(struct gos_recall *recall, const struct gos_recall_key *key)
{
    uint64_t mixed = (key->slot ^ key->caller << 7) * UINT64_C(0x9e3779b97f4a7c15);
    return recall->entries[mixed >> 40 & (GOS_RECALL_SETS - 1)];
}

static bool same_key(const struct gos_recall_key *a, const struct gos_recall_key *b)
{
    return a->slot == b->slot && a->caller == b->caller && a->depth == b->depth;
}

/* From the newest outward: a place is read only when all frames inside it are as remembered. */
__attribute__((no_sanitize("address"))) static bool lies_there(const struct gos_recall_entry *entry)
{
    const char *base = (const char *)entry->key.slot;
    for (uint32_t i = 0; i < entry->check_count; i++) {
        uintptr_t value;
        memcpy(&value, base + entry->offsets[i], sizeof value);
        if (value != entry->values[i])
            return false;
    }
    return true;
}

struct gos_recall_entry *gos_recall_find(struct gos_recall *recall,
                                         const struct gos_recall_key *key)
{
    struct gos_recall_entry *set = set_of(recall, key);
    for (size_t way = 0; way < GOS_RECALL_WAYS; way++)
        if (set[way].is_learned && same_key(&set[way].key, key) && lies_there(&set[way]))
            return &set[way];
    return NULL;
}

/* The counts stay: who unloads all the time may not learn all the time. */
void gos_recall_forget(struct gos_recall *recall)
{
    for (size_t set = 0; set < GOS_RECALL_SETS; set++) {
        for (size_t way = 0; way < GOS_RECALL_WAYS; way++) {
            recall->entries[set][way].hash = 0;
            recall->entries[set][way].is_learned = false;
        }
    }
}

static struct gos_recall_entry *entry_of(struct gos_recall *recall,
                                         const struct gos_recall_key *key, uint64_t hash)
{
    struct gos_recall_entry *set = set_of(recall, key);
    for (size_t way = 0; way < GOS_RECALL_WAYS; way++)
        if (set[way].hash == hash && same_key(&set[way].key, key))
            return &set[way];
    return NULL;
}

/*
 * Only a stack's second sighting is worth the slow walk that finds its slots;
 * most stacks of a program that starts up are never seen again.
 */
struct gos_recall_entry *gos_recall_note(struct gos_recall *recall,
                                         const struct gos_recall_key *key, uint64_t hash)
{
    struct gos_recall_entry *known = entry_of(recall, key, hash);
    if (known)
        return known;
    struct gos_recall_entry *oldest = &set_of(recall, key)[recall->next_way++ % GOS_RECALL_WAYS];
    oldest->key = *key;
    oldest->hash = hash;
    oldest->is_learned = false;
    return NULL;
}

bool gos_recall_expect(struct gos_recall_entry *entry, uintptr_t place, uintptr_t value)
{
    intptr_t offset = (intptr_t)(place - entry->key.slot);
    if (entry->check_count == GOS_RECALL_CHECKS || offset < INT32_MIN || offset > INT32_MAX)
        return false;
    entry->offsets[entry->check_count] = (int32_t)offset;
    entry->values[entry->check_count] = value;
    entry->check_count++;
    return true;
}
