/*
 * Stacks that were interned before, by their raw words: a table of small sets
 * in front of the locked one.  The words are kept beside it and compared, so a
 * hit is never a guess.
 *
 * Not locked: it belongs to whoever claimed the stack cache around it.
 */
#ifndef GOS_TRACK_SITE_CACHE_H
#define GOS_TRACK_SITE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "site.h"

#define GOS_SITE_CACHE_SETS 512 /* a power of two */
#define GOS_SITE_CACHE_WAYS 4
#define GOS_SITE_CACHE_PYTHONS 256
#define GOS_SITE_CACHE_WORDS (128 * 1024)

/* All zero is empty. */
struct gos_site_cache {
    struct gos_site_cache_entry {
        uint64_t hash; /* 0: empty */
        uint32_t id;
        uint32_t native_at; /* first word of its native frames, and of its Python frames */
        uint32_t python_at;
        uint16_t native_count;
        uint16_t python_count;
        const char *tag;
    } sets[GOS_SITE_CACHE_SETS][GOS_SITE_CACHE_WAYS];
    /* One line of Python leads to several native stacks, which share its frames. */
    struct gos_site_cache_python {
        uint32_t at;
        uint32_t count;
    } pythons[GOS_SITE_CACHE_PYTHONS];
    uint32_t forgotten_count; /* how often everything was */
    /* Filled from the start; when it is full everything is forgotten. */
    uint32_t word_count;
    uint64_t words[GOS_SITE_CACHE_WORDS];
};

/* A stack in the cache, for whoever knows its native frames already.  id 0: none. */
struct gos_site_hint {
    uint32_t id;
    uint32_t forgotten_count; /* as the cache's when this was filled in */
    uint32_t python_at;       /* first word of its Python frames */
    uint32_t python_count;
    const char *tag;
};

void gos_site_cache_forget(struct gos_site_cache *cache);

/* Fill it in for a stack that was found, or put, just now. */
void gos_site_cache_hint(const struct gos_site_cache *cache, uint64_t hash,
                         struct gos_site_hint *hint);
/* Its Python frames; NULL when the cache has forgotten it. */
static inline const struct gos_python_ref *gos_site_cache_python(const struct gos_site_cache *cache,
                                                                 const struct gos_site_hint *hint)
{
    bool is_there = hint->id && hint->forgotten_count == cache->forgotten_count;

    return is_there ? (const void *)&cache->words[hint->python_at] : NULL;
}

/* The number of that stack, or 0.  hash is of all its words. */
uint32_t gos_site_cache_find(const struct gos_site_cache *cache, const struct gos_stack *stack,
                             uint64_t hash);
void gos_site_cache_put(struct gos_site_cache *cache, const struct gos_stack *stack, uint64_t hash,
                        uint32_t id);

#endif
