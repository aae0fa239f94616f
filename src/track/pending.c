#include "pending.h"

#include <stdatomic.h>

#include "../base/lock.h"
#include "../base/loss.h"
#include "../base/thread.h"
#include "handle_map.h"
#include "slot_table.h"
#include "table.h"

/*
 * Half empty, with chains found by stream and thread: the slots of one stream
 * under several contexts are in one chain.
 */
#define SLOT_COUNT (2 * GOS_STREAM_MAX)

#define STRIPE_COUNT 16
#define SHARED_STRIPE (STRIPE_COUNT - 1)

struct slot {
    _Alignas(64) _Atomic uint32_t state;
    _Atomic uint32_t device;
    _Atomic uint32_t thread; /* owner of a per-thread stream, else 0 */
    _Atomic uint64_t stream;
    _Atomic uint64_t context;
    struct gos_pending_stripe stripes[STRIPE_COUNT];
};

struct key {
    uint64_t stream;
    uint64_t context;
    uint32_t thread;
};

static struct slot slots[SLOT_COUNT];
static const struct gos_slot_table table = {slots, sizeof(slots[0]), SLOT_COUNT};
static struct gos_lock lock = GOS_LOCK_INIT(GOS_RANK_POOL);
static uint32_t in_use;         /* under the lock */
static _Atomic bool is_touched; /* some slot was used since the process began */
static _Atomic bool is_crowded; /* full, and every stream has something pending */

__thread struct gos_pending_last gos_pending_last __attribute__((tls_model("initial-exec")));

#define LOAD(field) atomic_load_explicit(&(field), memory_order_relaxed)
#define STORE(field, value) atomic_store_explicit(&(field), (value), memory_order_relaxed)

enum { LEGACY_STREAM = 1, PER_THREAD_STREAM = 2, LAST_SPECIAL_STREAM = PER_THREAD_STREAM };

static struct key key_of(uint64_t stream, uint64_t context, bool per_thread)
{
    if (stream > LAST_SPECIAL_STREAM)
        return (struct key){stream, context, 0};
    if (stream == PER_THREAD_STREAM || (stream == 0 && per_thread))
        return (struct key){0, context, gos_thread_index()};
    return (struct key){0, context, 0};
}

static bool is_used(const struct slot *slot)
{
    return gos_slot_is_used(&table, (uint32_t)(slot - slots));
}

static bool matches(const struct slot *slot, const struct key *key)
{
    return is_used(slot) && LOAD(slot->stream) == key->stream &&
           LOAD(slot->context) == key->context && LOAD(slot->thread) == key->thread;
}

static uint32_t chain_start(uint64_t stream, uint32_t thread)
{
    return (uint32_t)gos_table_mix(stream + ((uint64_t)thread << 48)) % SLOT_COUNT;
}

/* The next slot of a chain, or NULL behind its end; *step counts from 0. */
static struct slot *next_in_chain(uint32_t start, uint32_t *step)
{
    uint32_t at;

    return gos_slot_next(&table, start, step, &at) ? &slots[at] : NULL;
}

static struct slot *find(const struct key *key)
{
    uint32_t start = chain_start(key->stream, key->thread);
    uint32_t step = 0;
    struct slot *slot;

    while ((slot = next_in_chain(start, &step)) && !matches(slot, key))
        ;
    return slot;
}

static void give_up(struct slot *slot)
{
    gos_slot_give_up(&table, (uint32_t)(slot - slots));
    in_use--;
    STORE(is_crowded, false);
}

static uint64_t count_of(const struct slot *slot)
{
    uint64_t count = 0;

    for (int i = 0; i < STRIPE_COUNT; i++)
        count += LOAD(slot->stripes[i].count) - LOAD(slot->stripes[i].drained_count);
    return count;
}

static uint64_t bytes_of(const struct slot *slot)
{
    uint64_t bytes = 0;

    for (int i = 0; i < STRIPE_COUNT; i++)
        bytes += LOAD(slot->stripes[i].bytes) - LOAD(slot->stripes[i].drained_bytes);
    return bytes;
}

/* A free that comes in between is left with a count and no bytes, never the other way round. */
static void drain(struct slot *slot)
{
    for (int i = 0; i < STRIPE_COUNT; i++) {
        struct gos_pending_stripe *stripe = &slot->stripes[i];

        STORE(stripe->drained_count, LOAD(stripe->count));
        STORE(stripe->drained_bytes, LOAD(stripe->bytes));
    }
    STORE(is_crowded, false);
}

static void clear(struct slot *slot)
{
    for (int i = 0; i < STRIPE_COUNT; i++) {
        struct gos_pending_stripe *stripe = &slot->stripes[i];

        STORE(stripe->owner, 0);
        STORE(stripe->count, 0);
        STORE(stripe->bytes, 0);
        STORE(stripe->drained_count, 0);
        STORE(stripe->drained_bytes, 0);
    }
}

static void give_up_drained(void)
{
    for (uint32_t i = 0; i < SLOT_COUNT; i++) {
        if (is_used(&slots[i]) && !count_of(&slots[i]))
            give_up(&slots[i]);
    }
    STORE(is_crowded, in_use == GOS_STREAM_MAX);
    gos_handle_invalidate();
}

static struct slot *create(const struct key *key, uint32_t device)
{
    struct slot *slot = find(key);

    if (slot)
        return slot;
    if (in_use == GOS_STREAM_MAX)
        give_up_drained();
    if (in_use == GOS_STREAM_MAX)
        return NULL;
    STORE(is_touched, true);
    slot = &slots[gos_slot_vacant(&table, chain_start(key->stream, key->thread))];
    STORE(slot->stream, key->stream);
    STORE(slot->context, key->context);
    STORE(slot->thread, key->thread);
    STORE(slot->device, device);
    clear(slot);
    gos_slot_publish(&table, (uint32_t)(slot - slots));
    in_use++;
    return slot;
}

static struct slot *find_or_create(const struct key *key, uint32_t device)
{
    struct slot *slot = find(key);

    if (slot || LOAD(is_crowded))
        return slot;
    gos_lock_acquire(&lock);
    slot = create(key, device);
    gos_lock_release(&lock);
    return slot;
}

/* The thread's own stripe, or NULL when another thread has it. */
static struct gos_pending_stripe *own_stripe(struct slot *slot)
{
    uint32_t index = gos_thread_index();
    struct gos_pending_stripe *stripe = &slot->stripes[index % SHARED_STRIPE];
    uint32_t nobody = 0;

    if (LOAD(stripe->owner) == index ||
        atomic_compare_exchange_strong_explicit(&stripe->owner, &nobody, index,
                                                memory_order_relaxed, memory_order_relaxed))
        return stripe;
    return NULL;
}

static void add_shared(struct gos_pending_stripe *stripe, const struct gos_pending *one)
{
    atomic_fetch_add_explicit(&stripe->bytes, one->bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&stripe->count, one->count, memory_order_relaxed);
}

/* The generation is read before the slot is looked for: what dies in between is noticed. */
void gos_pending_add(const struct gos_pending *one)
{
    uint64_t generation = gos_handle_generation();
    struct key key = key_of(one->stream, one->context, one->per_thread);
    struct slot *slot = find_or_create(&key, one->device);
    struct gos_pending_stripe *own = slot ? own_stripe(slot) : NULL;

    gos_pending_last = (struct gos_pending_last){
        own, generation, one->stream, one->context, one->per_thread,
    };
    if (own)
        gos_pending_add_own(own, one->bytes, one->count);
    else if (slot)
        add_shared(&slot->stripes[SHARED_STRIPE], one);
    else
        gos_loss_count(GOS_LOSS_TABLE);
}

static void drain_default(uint64_t context, uint32_t thread)
{
    struct key key = {0, context, thread};
    struct slot *slot = find(&key);

    if (slot)
        drain(slot);
}

/* A stream that was created is the same under whichever context it was used. */
static void visit_stream(uint64_t stream, void (*visit)(struct slot *))
{
    uint32_t start = chain_start(stream, 0);
    uint32_t step = 0;
    struct slot *slot;

    while ((slot = next_in_chain(start, &step))) {
        if (is_used(slot) && LOAD(slot->stream) == stream && !LOAD(slot->thread))
            visit(slot);
    }
}

void gos_pending_drained(uint64_t stream, uint64_t context)
{
    gos_lock_acquire(&lock);
    if (stream > LAST_SPECIAL_STREAM)
        visit_stream(stream, drain);
    if (stream == 0 || stream == LEGACY_STREAM)
        drain_default(context, 0);
    if (stream == 0 || stream == PER_THREAD_STREAM)
        drain_default(context, gos_thread_index());
    gos_lock_release(&lock);
}

void gos_pending_stream_destroyed(uint64_t stream)
{
    if (stream <= LAST_SPECIAL_STREAM)
        return;
    gos_lock_acquire(&lock);
    visit_stream(stream, give_up);
    gos_lock_release(&lock);
    gos_handle_invalidate();
}

bool gos_pending_knows(uint64_t stream)
{
    uint32_t start = chain_start(stream, 0);
    uint32_t step = 0;
    struct slot *slot;

    if (stream <= LAST_SPECIAL_STREAM)
        return true;
    while ((slot = next_in_chain(start, &step))) {
        if (is_used(slot) && LOAD(slot->stream) == stream)
            return true;
    }
    return false;
}

void gos_pending_context_destroyed(uint64_t context)
{
    gos_lock_acquire(&lock);
    for (uint32_t i = 0; in_use && i < SLOT_COUNT; i++) {
        if (is_used(&slots[i]) && LOAD(slots[i].context) == context)
            give_up(&slots[i]);
    }
    gos_lock_release(&lock);
    gos_handle_invalidate();
}

static struct gos_pending values(const struct slot *slot)
{
    return (struct gos_pending){
        .stream = LOAD(slot->stream),
        .context = LOAD(slot->context),
        .device = LOAD(slot->device),
        .per_thread = LOAD(slot->thread) != 0,
        .thread = LOAD(slot->thread),
        .bytes = bytes_of(slot),
        .count = count_of(slot),
    };
}

size_t gos_pending_list(struct gos_pending *pending, size_t max)
{
    size_t count = 0;

    gos_lock_acquire(&lock);
    for (uint32_t i = 0; count < max && i < SLOT_COUNT; i++) {
        if (is_used(&slots[i]) && count_of(&slots[i]))
            pending[count++] = values(&slots[i]);
    }
    gos_lock_release(&lock);
    return count;
}

void gos_pending_reset_after_fork(void)
{
    gos_lock_reset(&lock);
    if (LOAD(is_touched))
        gos_slot_reset_after_fork(&table);
    in_use = 0;
    STORE(is_crowded, false);
    gos_pending_last.stripe = NULL;
}
