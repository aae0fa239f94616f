#include "site_cache.h"

#include <string.h>

#define WORDS_PER_REF (sizeof(struct gos_python_ref) / sizeof(uint64_t))

_Static_assert(sizeof(struct gos_python_ref) % sizeof(uint64_t) == 0, "references are whole words");
_Static_assert(sizeof(uintptr_t) == sizeof(uint64_t), "addresses are words");

static bool holds(const struct gos_site_cache *cache, const struct gos_site_cache_entry *entry,
                  const struct gos_stack *stack)
{
    return entry->native_count == stack->native_count &&
           entry->python_count == stack->python_count && entry->tag == stack->tag &&
           memcmp(&cache->words[entry->native_at], stack->native,
                  stack->native_count * sizeof stack->native[0]) == 0 &&
           memcmp(&cache->words[entry->python_at], stack->python,
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
    memset(cache->pythons, 0, sizeof cache->pythons);
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
        .python_at = entry->python_at,
        .python_count = entry->python_count,
        .tag = entry->tag,
    };
}

static uint32_t add_words(struct gos_site_cache *cache, const void *words, size_t bytes)
{
    uint32_t at = cache->word_count;
    memcpy(&cache->words[at], words, bytes);
    cache->word_count += (uint32_t)(bytes / sizeof cache->words[0]);
    return at;
}

static uint32_t share_python(struct gos_site_cache *cache, const struct gos_stack *stack)
{
    size_t bytes = stack->python_count * sizeof stack->python[0];
    struct gos_site_cache_python *shared =
        &cache->pythons[stack->python_hash % GOS_SITE_CACHE_PYTHONS];
    if (shared->count != stack->python_count ||
        memcmp(&cache->words[shared->at], stack->python, bytes) != 0)
        *shared = (struct gos_site_cache_python){add_words(cache, stack->python, bytes),
                                                 stack->python_count};
    return shared->at;
}

void gos_site_cache_put(struct gos_site_cache *cache, const struct gos_stack *stack, uint64_t hash,
                        uint32_t id)
{
    uint32_t python_words = stack->python_count * (uint32_t)WORDS_PER_REF;
    if (cache->word_count + stack->native_count + python_words > GOS_SITE_CACHE_WORDS)
        gos_site_cache_forget(cache);
    struct gos_site_cache_entry *set = cache->sets[set_number(hash)];
    set[way_of(cache, set, hash)] = (struct gos_site_cache_entry){
        .hash = hash,
        .id = id,
        .native_at = add_words(cache, stack->native, stack->native_count * sizeof stack->native[0]),
        .python_at = share_python(cache, stack),
        .native_count = (uint16_t)stack->native_count,
        .python_count = (uint16_t)stack->python_count,
        .tag = stack->tag,
    };
}
