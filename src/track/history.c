#include "history.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "../base/lock.h"
#include "../base/loss.h"
#include "../base/memory.h"
#include "../base/options.h"
#include "birth.h"
#include "peak.h"
#include "sample.h"
#include "table.h"

#define SAMPLES GOS_HISTORY_SAMPLES
#define FIRST_DISTANCE 2
/* A walk takes every shard's lock, which costs as much as so many records. */
#define WALK_VISITS GOS_SHARD_COUNT
/* 1 % of a millisecond, at 30 ns a visit. */
#define VISITS_PER_MS 320

#define ROW_MAX (GOS_HISTORY_SITES + GOS_DEVICE_MAX)
#define SLOT_COUNT 16384u /* at least twice ROW_MAX, so that chains end */
#define CHUNK_ROWS 64u
#define CHUNK_COUNT ((ROW_MAX + CHUNK_ROWS - 1) / CHUNK_ROWS)

struct row {
    uint32_t site;
    uint32_t device;
    uint64_t bytes; /* of the walk that is going on */
    uint32_t live_kib[SAMPLES];
};

static struct gos_lock lock = GOS_LOCK_INIT(GOS_RANK_HISTORY);
static _Atomic uint64_t due = FIRST_DISTANCE; /* on the clock of gos_birth_drawn */

/* All of it under the lock. */
static struct {
    struct gos_moment moments[SAMPLES];
    uint32_t count;
    uint64_t distance; /* between samples, in the mean; 0: FIRST_DISTANCE */
    uint64_t spent_visits;
    uint64_t random;
    uint64_t visits; /* of the walk that is going on */
    bool is_full;    /* a site found no row in that walk */
    uint32_t row_count;
    struct row *chunks[CHUNK_COUNT];
    uint16_t slots[SLOT_COUNT]; /* open hash table of positions plus 1; 0: free */
} history;

static const struct row no_row;

bool gos_history_counts(enum gos_kind kind)
{
    return gos_peak_counts(kind);
}

/* --- rows ------------------------------------------------------------------------------------ */

static struct row *row_at(uint32_t position)
{
    return &history.chunks[position / CHUNK_ROWS][position % CHUNK_ROWS];
}

static uint16_t *slot_of(uint32_t site, uint32_t device)
{
    uint32_t slot = gos_table_hash(gos_table_mix((uint64_t)site << 8 | device)) % SLOT_COUNT;

    for (;; slot = (slot + 1) % SLOT_COUNT) {
        if (!history.slots[slot])
            return &history.slots[slot];
        const struct row *row = row_at(history.slots[slot] - 1u);
        if (row->site == site && row->device == device)
            return &history.slots[slot];
    }
}

static bool has_room(void)
{
    struct row **chunk = &history.chunks[history.row_count / CHUNK_ROWS];

    if (!*chunk)
        *chunk = gos_arena_alloc(CHUNK_ROWS * sizeof(struct row));
    return *chunk != NULL;
}

static struct row *add_row(uint32_t site, uint32_t device)
{
    if (history.row_count == ROW_MAX || !has_room())
        return NULL;
    struct row *row = row_at(history.row_count++);
    *row = (struct row){.site = site, .device = device};
    return row;
}

static struct row *row_of(uint32_t site, uint32_t device)
{
    uint16_t *slot = slot_of(site, device);

    if (*slot)
        return row_at(*slot - 1u);
    struct row *row = add_row(site, device);
    if (row)
        *slot = (uint16_t)history.row_count;
    return row;
}

static void make_slots(void)
{
    memset(history.slots, 0, sizeof(history.slots));
    for (uint32_t i = 0; i < history.row_count; i++)
        *slot_of(row_at(i)->site, row_at(i)->device) = (uint16_t)(i + 1);
}

static bool is_empty(const struct row *row)
{
    return memcmp(row->live_kib, no_row.live_kib, sizeof(row->live_kib)) == 0;
}

/* A site that held nothing in all samples that are left needs no row. */
static void drop_empty_rows(void)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < history.row_count; i++) {
        if (is_empty(row_at(i)))
            continue;
        if (kept != i)
            *row_at(kept) = *row_at(i);
        kept++;
    }
    history.row_count = kept;
    make_slots();
}

/* --- a walk ---------------------------------------------------------------------------------- */

static uint64_t bytes_of(const struct gos_allocation *allocation)
{
    bool is_sampled = allocation->kind == GOS_KIND_POOL && gos_options.stack_sample;

    return is_sampled ? gos_sample_estimate(allocation->bytes, gos_options.stack_sample)
                      : allocation->bytes;
}

static void add_to_row(uint32_t site, uint32_t device, uint64_t bytes)
{
    struct row *row = row_of(site, device);

    if (row)
        row->bytes += bytes;
    else
        history.is_full = true;
}

static void visit(const struct gos_allocation *allocation, void *unused)
{
    (void)unused;
    history.visits++;
    if (allocation->device >= GOS_DEVICE_MAX || !gos_history_counts(allocation->kind))
        return;
    add_to_row(0, allocation->device, allocation->bytes);
    if (allocation->site)
        add_to_row(allocation->site, allocation->device, bytes_of(allocation));
}

static uint32_t whole_kib(uint64_t bytes)
{
    return bytes >> 10 < UINT32_MAX ? (uint32_t)(bytes >> 10) : UINT32_MAX;
}

static void enter_walk(void)
{
    for (uint32_t i = 0; i < history.row_count; i++) {
        row_at(i)->live_kib[history.count] = whole_kib(row_at(i)->bytes);
        row_at(i)->bytes = 0;
    }
}

static void walk(void)
{
    history.visits = 0;
    history.is_full = false;
    gos_registry_walk(visit, NULL);
    enter_walk();
    history.spent_visits += history.visits + WALK_VISITS;
    if (history.is_full)
        gos_loss_count(GOS_LOSS_TABLE);
}

/* --- samples --------------------------------------------------------------------------------- */

static void thin_row(struct row *row)
{
    for (uint32_t i = 0; i < SAMPLES / 2; i++)
        row->live_kib[i] = row->live_kib[2 * i + 1];
    memset(&row->live_kib[SAMPLES / 2], 0, sizeof(row->live_kib) / 2);
}

/* The newest stays, so that the distance to the next one is as drawn. */
static void thin(void)
{
    for (uint32_t i = 0; i < SAMPLES / 2; i++)
        history.moments[i] = history.moments[2 * i + 1];
    for (uint32_t i = 0; i < history.row_count; i++)
        thin_row(row_at(i));
    history.count = SAMPLES / 2;
    history.distance *= 2;
    drop_empty_rows();
}

/* What was allocated and is in no table was freed; others go on meanwhile. */
static void take_sample(void)
{
    struct gos_moment *moment;

    if (history.count == SAMPLES)
        thin();
    moment = &history.moments[history.count];
    moment->age_ms = gos_birth_age_ms();
    moment->allocated_count = gos_registry_allocated_count();
    walk();
    moment->freed_count =
        moment->allocated_count > history.visits ? moment->allocated_count - history.visits : 0;
    history.count++;
}

static bool may_walk(void)
{
    uint64_t earned = (uint64_t)gos_birth_age_ms() * VISITS_PER_MS;

    return history.spent_visits <= GOS_HISTORY_GRANT + earned;
}

static uint64_t next_random(void)
{
    uint64_t x = history.random ? history.random : UINT64_C(0x9e3779b97f4a7c15);

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return history.random = x;
}

/* The same distances in each run: no clock decides what a report says. */
static uint64_t draw_distance(void)
{
    uint64_t half = history.distance / 2;

    return half + next_random() % (history.distance + 1);
}

static void sample_if_due(void)
{
    uint64_t now = gos_birth_drawn();

    if (now < atomic_load_explicit(&due, memory_order_relaxed))
        return;
    if (!history.distance)
        history.distance = FIRST_DISTANCE;
    if (may_walk())
        take_sample();
    atomic_store_explicit(&due, now + draw_distance(), memory_order_relaxed);
}

void gos_history_look(void)
{
    if (gos_birth_drawn() < atomic_load_explicit(&due, memory_order_relaxed))
        return;
    if (!gos_lock_try(&lock))
        return;
    sample_if_due();
    gos_lock_release(&lock);
}

/* --- copies ---------------------------------------------------------------------------------- */

static void copy_series(struct gos_history_series *series)
{
    uint16_t slot = *slot_of(series->site, series->device);
    const struct row *row = slot ? row_at(slot - 1u) : &no_row;

    memcpy(series->live_kib, row->live_kib, sizeof(series->live_kib));
}

uint32_t gos_history_copy(struct gos_moment moments[SAMPLES], struct gos_history_series *series,
                          size_t count)
{
    uint32_t samples;

    gos_lock_acquire(&lock);
    samples = history.count;
    memcpy(moments, history.moments, sizeof(history.moments));
    for (size_t i = 0; i < count; i++)
        copy_series(&series[i]);
    gos_lock_release(&lock);
    return samples;
}

/* The parent's rows may be in the middle of a walk: they are left behind. */
void gos_history_reset_after_fork(void)
{
    gos_lock_reset(&lock);
    if (history.distance)
        memset(&history, 0, sizeof(history));
    atomic_store_explicit(&due, FIRST_DISTANCE, memory_order_relaxed);
}
