#include "frame_table.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "../base/lock.h"
#include "../base/memory.h"
#include "number_table.h"
#include "stack_hash.h"

/* Numbers to frames: chunks that are made as needed and never move. */
#define CHUNK_FRAMES 4096u
#define CHUNK_COUNT 4096u

struct chunk {
    union gos_frame frames[CHUNK_FRAMES];
};

static struct gos_lock lock = GOS_LOCK_INIT(GOS_RANK_SITE);
static struct gos_number_table table; /* this and the next under the lock */
static uint32_t frame_count;
static _Atomic(struct chunk *) chunks[CHUNK_COUNT];

static struct chunk *chunk_for(uint32_t number)
{
    uint32_t index = number / CHUNK_FRAMES;
    if (index >= CHUNK_COUNT)
        return NULL;
    struct chunk *chunk = atomic_load_explicit(&chunks[index], memory_order_relaxed);
    if (chunk)
        return chunk;
    chunk = gos_arena_alloc(sizeof *chunk);
    atomic_store_explicit(&chunks[index], chunk, memory_order_release);
    return chunk;
}

static uint32_t find(const union gos_frame *frame, uint32_t hash)
{
    uint32_t step = 0;
    uint32_t number;
    do
        number = gos_number_table_next(&table, hash, &step);
    while (number && memcmp(gos_frame_table_get(number), frame, sizeof *frame) != 0);
    return number;
}

static uint32_t add(const union gos_frame *frame, uint32_t hash)
{
    uint32_t number = frame_count + 1;
    struct chunk *chunk = chunk_for(number);
    if (!chunk || !gos_number_table_has_room(&table))
        return 0;
    gos_number_table_add(&table, hash, number);
    chunk->frames[number % CHUNK_FRAMES] = *frame;
    frame_count = number;
    return number;
}

uint32_t gos_frame_table_number(const union gos_frame *frame)
{
    uint32_t hash = (uint32_t)gos_stack_hash(frame->words, sizeof frame->words, 0);
    gos_lock_acquire(&lock);
    uint32_t number = find(frame, hash);
    if (!number)
        number = add(frame, hash);
    gos_lock_release(&lock);
    return number;
}

const union gos_frame *gos_frame_table_get(uint32_t number)
{
    const struct chunk *chunk =
        atomic_load_explicit(&chunks[number / CHUNK_FRAMES], memory_order_acquire);
    return &chunk->frames[number % CHUNK_FRAMES];
}

void gos_frame_table_reset_after_fork(void)
{
    gos_lock_reset(&lock);
    table = (struct gos_number_table){0};
    frame_count = 0;
    for (uint32_t i = 0; i < CHUNK_COUNT; i++)
        atomic_store_explicit(&chunks[i], NULL, memory_order_relaxed);
}
