#include "unwind.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "../base/hot.h"
#include "../base/log.h"
#include "../base/loss.h"
#include "../base/module.h"
#include "python_frames.h"
#include "recall.h"
#include "recall_learn.h"
#include "site_intern.h"
#include "stack_cache.h"
#include "stack_hash.h"
#include "unwinder.h"

/* Frames of the walking itself and of our hooks, above what is asked for. */
#define OWN_FRAMES_MAX 16

/* Stacks that a cache may learn: so many, and one more for so many that were recognised. */
#define LEARN_FREELY 1024
#define LEARN_EVERY 32

/* Mapped range of the object that contains us. */
static uintptr_t own_start;
static uintptr_t own_end;
static GOS_READ_MOSTLY _Atomic bool recall_is_off;

void gos_unwind_open(void)
{
    gos_module_refresh(); /* nobody has told us of unloads until now */
    const struct gos_module *own = gos_module_of((uintptr_t)&gos_unwind_open);
    own_start = own ? own->start : 0;
    own_end = own ? own->end : 0;
    gos_unwinder_open();
    gos_python_find();
}

const char *gos_unwind_name(void)
{
    static const char *const names[] = {"none", "libunwind", "libgcc"};
    return names[gos_unwinder_which()];
}

/* --- walking --------------------------------------------------------------------------------- */

static bool is_own(uintptr_t address)
{
    return address >= own_start && address < own_end;
}

static uint32_t count_own(const uintptr_t *addresses, uint32_t count)
{
    uint32_t own = 0;
    while (own < count && is_own(addresses[own]))
        own++;
    return own;
}

/* An unwound stack from the caller of the capturing function on. */
struct walk {
    uint32_t count;
    uint32_t own;
    uintptr_t *addresses; /* somewhere in all */
    uintptr_t all[GOS_FRAME_MAX + OWN_FRAMES_MAX];
};

/* The frames of the walking itself end where the capturing function returns to. */
static void walk(struct walk *walked, const struct gos_recall_key *key)
{
    size_t count = gos_unwinder_walk(walked->all, key->depth + OWN_FRAMES_MAX);
    size_t start = 0;
    while (start < count && walked->all[start] != key->caller)
        start++;
    walked->addresses = walked->all + start;
    walked->count = (uint32_t)(count - start);
    walked->own = count_own(walked->addresses, walked->count);
    if (walked->count > walked->own + key->depth)
        walked->count = walked->own + key->depth;
}

static uint64_t take_walk(struct gos_stack *stack, const struct walk *walked)
{
    const uintptr_t *kept = walked->addresses + walked->own;
    uint32_t count = walked->count - walked->own;
    memcpy(stack->native, kept, count * sizeof kept[0]);
    stack->native_count = count;
    stack->native_hash = gos_stack_hash_native(kept, count);
    return stack->native_hash;
}

/* --- recognising ----------------------------------------------------------------------------- */

static bool recall_is_usable(const struct gos_stack_cache *cache)
{
    return cache && !atomic_load_explicit(&recall_is_off, memory_order_relaxed);
}

/*
 * Learning takes long, so it has to pay: with more stacks than there is room for,
 * each would be forgotten before it is met again.
 */
static bool is_worth_learning(const struct gos_recall *recall)
{
    return recall->learned_count <= LEARN_FREELY + recall->recognised_count / LEARN_EVERY;
}

static void capture_by_walking(struct gos_stack_cache *cache, const struct gos_recall_key *key,
                               struct gos_stack *stack)
{
    struct walk walked;
    walk(&walked, key);
    uint64_t hash = take_walk(stack, &walked);
    if (!recall_is_usable(cache))
        return;
    cache->is_first_meeting = !gos_recall_note(&cache->recall, key, hash);
    if (cache->is_first_meeting || !is_worth_learning(&cache->recall))
        return;
    cache->recall.learned_count++;
    gos_recall_learn(&cache->recall, walked.addresses, walked.count, walked.own);
}

/* Every so often a recognised stack is unwound as well; one difference ends the shortcut. */
static void check_recognition(const struct gos_recall_key *key, struct gos_stack *stack)
{
    struct walk walked;
    uint64_t recognised = stack->native_hash;
    walk(&walked, key);
    if (take_walk(stack, &walked) == recognised)
        return;
    atomic_store_explicit(&recall_is_off, true, memory_order_relaxed);
    gos_loss_count(GOS_LOSS_STACK);
    gos_log(GOS_LOG_NOTICE, "a call stack was taken for another one; all are unwound from now on");
}

static bool is_check_due(const struct gos_recall *recall)
{
    return recall->recognised_count % GOS_RECALL_CHECK_EVERY == 0 || gos_options.stack_verify;
}

/* The stack that is there, or NULL when it is not known. */
static struct gos_recall_stack *recognise(struct gos_stack_cache *cache,
                                          const struct gos_recall_key *key)
{
    struct gos_recall_stack *known = gos_recall_find(&cache->recall, key);
    if (known)
        cache->recall.recognised_count++;
    return known;
}

static void capture_native(struct gos_stack_cache *cache, const struct gos_recall_key *key,
                           const struct gos_recall_stack *known, struct gos_stack *stack)
{
    if (!known) {
        capture_by_walking(cache, key, stack);
        return;
    }
    stack->native_count = gos_recall_frames(&cache->recall, key, stack->native);
    stack->native_hash = known->hash;
    if (is_check_due(&cache->recall))
        check_recognition(key, stack);
}

/* --- capturing ------------------------------------------------------------------------------- */

static bool wants_native(void)
{
    return (gos_options.stack == GOS_STACK_NATIVE || gos_options.stack == GOS_STACK_BOTH) &&
           gos_unwinder_which() != GOS_UNWINDER_NONE;
}

static bool wants_python(void)
{
    return gos_options.stack == GOS_STACK_PYTHON || gos_options.stack == GOS_STACK_BOTH;
}

static uint32_t bounded_depth(uint64_t depth)
{
    return depth < GOS_FRAME_MAX ? (uint32_t)depth : GOS_FRAME_MAX;
}

static struct gos_recall_stack *known_stack(struct gos_stack_cache *cache,
                                            const struct gos_recall_key *key)
{
    if (!key->depth || !cache)
        return NULL;
    if (wants_native())
        return recall_is_usable(cache) ? recognise(cache, key) : NULL;
    cache->recall.recognised_count++;
    return &cache->without_native;
}

static void capture(struct gos_stack_cache *cache, const struct gos_recall_key *key,
                    const struct gos_recall_stack *known, struct gos_stack *stack)
{
    stack->native_count = 0;
    stack->native_hash = 0;
    stack->python_count = 0;
    stack->python_hash = 0;
    stack->tag = gos_tag_current();
    if (cache)
        cache->is_first_meeting = false;
    if (key->depth && wants_native())
        capture_native(cache, key, known, stack);
    if (key->depth && wants_python())
        gos_python_capture(stack, key->depth);
}

/* --- sites of recognised stacks ----------------------------------------------------------------
 */

static bool is_still_there(struct gos_stack_cache *cache, const struct gos_site_hint *hint,
                           uint32_t depth)
{
    const struct gos_python_ref *python = gos_site_cache_python(&cache->sites, hint);
    if (!python || hint->tag != gos_tag_current())
        return false;
    return wants_python() ? gos_python_matches(python, hint->python_count, depth, &cache->places)
                          : hint->python_count == 0;
}

/* The number that this stack had with the same Python frames, or 0. */
static uint32_t site_as_before(struct gos_stack_cache *cache, const struct gos_recall_stack *known,
                               uint32_t depth)
{
    if (is_check_due(&cache->recall))
        return 0;
    for (size_t i = 0; i < GOS_RECALL_SITES; i++)
        if (is_still_there(cache, &known->sites[i], depth))
            return known->sites[i].id;
    return 0;
}

/* Code that was on no stack before may have come with an interpreter. */
static bool has_brought_python(uint64_t generation, struct gos_stack *stack, uint32_t depth)
{
    if (stack->python_count || !wants_python() || gos_module_generation() == generation)
        return false;
    gos_python_capture(stack, depth);
    return stack->python_count > 0;
}

/* Not inlined: it wants room for a whole stack, which a recognised one does without. */
static __attribute__((noinline)) uint32_t capture_site(struct gos_stack_cache *cache,
                                                       const struct gos_recall_key *key,
                                                       struct gos_recall_stack *known)
{
    struct gos_stack stack;
    uint64_t generation = gos_module_generation();
    capture(cache, key, known, &stack);
    struct gos_site_hint *hint =
        known ? &known->sites[known->next_site++ % GOS_RECALL_SITES] : NULL;
    uint32_t id = gos_site_intern_with(cache, &stack, hint);
    return has_brought_python(generation, &stack, key->depth)
               ? gos_site_intern_with(cache, &stack, hint)
               : id;
}

static inline uint32_t site_now(struct gos_stack_cache *cache, const struct gos_recall_key *key)
{
    struct gos_recall_stack *known = known_stack(cache, key);
    uint32_t id = known ? site_as_before(cache, known, key->depth) : 0;
    return id ? id : capture_site(cache, key, known);
}

/*
 * Each of the two entries below gives its own frame: right above the frame
 * address lies the return address, the key's slot; right below it, by
 * __builtin_unwind_init, the registers that the frames outside must get back.
 * Neither may be inlined.
 */
static struct gos_recall_key key_of(void *frame_address, void *caller, uint64_t depth)
{
    return (struct gos_recall_key){
        .slot = (uintptr_t)frame_address + sizeof(uintptr_t),
        .caller = (uintptr_t)caller,
        .depth = bounded_depth(depth),
    };
}

__attribute__((noinline)) void gos_unwind_capture(struct gos_stack *stack, uint32_t depth)
{
    __builtin_unwind_init();
    struct gos_recall_key key =
        key_of(__builtin_frame_address(0), __builtin_return_address(0), depth);
    struct gos_stack_cache *cache = gos_stack_cache_claim();
    capture(cache, &key, known_stack(cache, &key), stack);
    gos_stack_cache_release(cache);
}

GOS_HOT __attribute__((noinline)) uint32_t gos_unwind_site_now(void)
{
    __builtin_unwind_init();
    struct gos_recall_key key =
        key_of(__builtin_frame_address(0), __builtin_return_address(0), gos_options.stack_depth);
    struct gos_stack_cache *cache = gos_stack_cache_claim();
    uint32_t id = site_now(cache, &key);
    gos_stack_cache_release(cache);
    return id;
}

void gos_unwind_reset_after_fork(void)
{
    gos_unwinder_reset_after_fork();
    atomic_store(&recall_is_off, false);
}
