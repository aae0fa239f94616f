#include "site_cache.h"

#include <string.h>

#define WORDS_PER_REF (sizeof(struct gos_python_ref) / sizeof(uint64_t))

_Static_assert(sizeof(struct gos_python_ref) % sizeof(uint64_t) == 0, "references are whole words");
_Static_assert(sizeof(uintptr_t) == sizeof(uint64_t), "addresses are words");

static bool holds(const struct gos_site_cache *cache, const struct gos_site_cache_entry *entry,
                  const struct gos_stack *stack)
{
    const uint64_t *words = &cache->words[entry->at];
    return entry->native_count == stack->native_count &&
           entry->python_count == stack->python_count && entry->tag == stack->tag &&
           memcmp(words, stack->native, stack->native_count * sizeof *words) == 0 &&
           memcmp(words + stack->native_count, stack->python,
                  stack->python_count * sizeof stack->python[0]) == 0;
}

/* With that hash; else one to be filled, an empty one first. */
static uint32_t way_of(const struct gos_site_cache *cache, const struct gos_site_cache_entry *set,
                       uint64_t hash)
{
    uint32_t way = 0;
    while (way < GOS_SITE_CACHE_WAYS && set[way].hash != hash && set[way].hash)
        way++;
    return way < GOS_SITE_CACHE_WAYS ? way : cache->word_count % GOS_SITE_CACHE_WAYS;
}

static uint64_t set_number(uint64_t hash)
{
    return hash % GOS_SITE_CACHE_SETS;
}

static const struct gos_site_cache_entry *entry_of(const struct gos_site_cache *cache,
                                                   uint64_t hash)
{
    const struct gos_site_cache_entry *set = cache->sets[set_number(hash)];
    return &set[way_of(cache, set, hash)];
}

uint32_t gos_site_cache_find(const struct gos_site_cache *cache, const struct gos_stack *stack,
                             uint64_t hash)
{
    const struct gos_site_cache_entry *entry = entry_of(cache, hash);
    return entry->hash == hash && holds(cache, entry, stack) ? entry->id : 0;
}

void gos_site_cache_forget(struct gos_site_cache *cache)
{
    memset(cache->sets, 0, sizeof cache->sets);
    cache->word_count = 0;
    cache->forgotten_count++;
}

void gos_site_cache_hint(const struct gos_site_cache *cache, uint64_t hash,
                         struct gos_site_hint *hint)
{
    const struct gos_site_cache_entry *entry = entry_of(cache, hash);
    *hint = (struct gos_site_hint){
        .id = entry->hash == hash ? entry->id : 0,
        .forgotten_count = cache->forgotten_count,
        .python_at = entry->at + entry->native_count,
        .python_count = entry->python_count,
        .tag = entry->tag,
    };
}

void gos_site_cache_put(struct gos_site_cache *cache, const struct gos_stack *stack, uint64_t hash,
                        uint32_t id)
{
    uint32_t python_words = stack->python_count * (uint32_t)WORDS_PER_REF;
    if (cache->word_count + stack->native_count + python_words > GOS_SITE_CACHE_WORDS)
        gos_site_cache_forget(cache);
    uint64_t *words = &cache->words[cache->word_count];
    memcpy(words, stack->native, stack->native_count * sizeof *words);
    memcpy(words + stack->native_count, stack->python, python_words * sizeof *words);
    struct gos_site_cache_entry *set = cache->sets[set_number(hash)];
    set[way_of(cache, set, hash)] = (struct gos_site_cache_entry){
        .hash = hash,
        .id = id,
        .at = cache->word_count,
        .tag = stack->tag,
        .native_count = (uint16_t)stack->native_count,
        .python_count = (uint16_t)stack->python_count,
    };
    cache->word_count += stack->native_count + python_words;
}
