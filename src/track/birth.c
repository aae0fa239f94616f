#include "birth.h"

#include <stdatomic.h>
#include <time.h>

#include "../base/clock.h"
#include "../base/hot.h"
#include "../base/os.h"
#include "../base/thread.h"
#include "registry.h"

/*
 * Taken from the shared counter at once, so that threads seldom meet there.  The
 * first ones come singly, so that a short run's history has samples (history.h).
 */
#define SEQUENCE_BLOCK 32
#define SEQUENCE_FIRST 256

/* Written now and then, so on a line of its own: the ones below are read at every allocation. */
static struct {
    _Alignas(64) _Atomic uint64_t last;
} sequence;

static GOS_READ_MOSTLY struct {
    _Atomic uint64_t wall_ns; /* 0: not started */
    _Atomic uint64_t ms;      /* of the clock below; 0: not started */
} begin;

/* The coarse clock: a tick of 1 to 4 ms is enough for an age and costs a third. */
static uint64_t now_ms(void)
{
    return gos_clock_read_ms(CLOCK_MONOTONIC_COARSE);
}

/* Whoever comes first sets both; a second one keeps what it finds. */
static uint64_t start(uint64_t now)
{
    uint64_t unset = 0;
    uint64_t begun = now ? now : 1;

    atomic_compare_exchange_strong(&begin.wall_ns, &unset, gos_os.wall_ns());
    unset = 0;
    return atomic_compare_exchange_strong(&begin.ms, &unset, begun) ? begun : unset;
}

GOS_HOT uint32_t gos_birth_age_ms(void)
{
    uint64_t now = now_ms();
    uint64_t begun = atomic_load_explicit(&begin.ms, memory_order_relaxed);

    if (!begun)
        begun = start(now);
    return now > begun ? (uint32_t)(now - begun) : 0;
}

static void draw_block(struct gos_thread *thread)
{
    uint64_t size = gos_birth_drawn() < SEQUENCE_FIRST ? 1 : SEQUENCE_BLOCK;

    thread->sequence_next =
        atomic_fetch_add_explicit(&sequence.last, size, memory_order_relaxed) + 1;
    thread->sequence_end = thread->sequence_next + size;
}

static uint32_t next_sequence(void)
{
    struct gos_thread *thread = &gos_thread;

    if (thread->sequence_next == thread->sequence_end)
        draw_block(thread);
    return (uint32_t)thread->sequence_next++;
}

uint64_t gos_birth_drawn(void)
{
    return atomic_load_explicit(&sequence.last, memory_order_relaxed);
}

static uint16_t thread_number(void)
{
    uint32_t index = gos_thread_index();

    return index <= UINT16_MAX ? (uint16_t)index : 0;
}

void gos_birth_now(struct gos_birth *birth)
{
    birth->sequence = next_sequence();
    birth->born_ms = gos_birth_age_ms();
    birth->thread = thread_number();
}

uint64_t gos_registry_start_wall_ns(void)
{
    if (!atomic_load_explicit(&begin.ms, memory_order_acquire))
        start(now_ms());
    return atomic_load_explicit(&begin.wall_ns, memory_order_relaxed);
}

void gos_birth_reset_after_fork(void)
{
    gos_thread.sequence_next = 0;
    gos_thread.sequence_end = 0;
    atomic_store(&sequence.last, 0);
    atomic_store(&begin.ms, 0);
    atomic_store(&begin.wall_ns, 0);
}
