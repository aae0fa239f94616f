#include "stack_cache.h"

#include <stddef.h>
#include <string.h>

#include "../base/memory.h"
#include "../base/module.h"
#include "../base/thread.h"

static _Atomic(struct gos_stack_cache *) caches[GOS_STACK_CACHES];

/* Two threads may make the same cache at once; the one that comes second gives its back. */
static struct gos_stack_cache *make_cache(uint32_t index)
{
    struct gos_stack_cache *made = gos_memory_alloc(sizeof *made);
    struct gos_stack_cache *existing = NULL;
    if (made)
        made->unloads = gos_module_unloads();
    if (!made || atomic_compare_exchange_strong(&caches[index], &existing, made))
        return made;
    gos_memory_free(made, sizeof *made);
    return existing;
}

static __attribute__((noinline)) void forget_all(struct gos_stack_cache *cache, uint64_t unloads)
{
    gos_recall_forget(&cache->recall);
    memset(&cache->frames, 0, sizeof cache->frames);
    gos_site_cache_forget(&cache->sites);
    cache->unloads = unloads;
}

struct gos_stack_cache *gos_stack_cache_claim(void)
{
    uint32_t index = gos_thread_index() % GOS_STACK_CACHES;
    struct gos_stack_cache *cache = atomic_load_explicit(&caches[index], memory_order_acquire);
    if (!cache)
        cache = make_cache(index);
    if (!cache || atomic_flag_test_and_set_explicit(&cache->claimed, memory_order_acquire))
        return NULL;
    uint64_t unloads = gos_module_unloads();
    if (cache->unloads != unloads)
        forget_all(cache, unloads);
    return cache;
}

void gos_stack_cache_release(struct gos_stack_cache *cache)
{
    if (cache)
        atomic_flag_clear_explicit(&cache->claimed, memory_order_release);
}

void gos_stack_cache_reset_after_fork(void)
{
    for (uint32_t i = 0; i < GOS_STACK_CACHES; i++)
        atomic_store_explicit(&caches[i], NULL, memory_order_relaxed);
}
