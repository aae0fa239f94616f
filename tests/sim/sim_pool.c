#include "sim_pool.h"

#include <stdlib.h>

#include "sim_capacity.h"
#include "sim_context.h"
#include "sim_memory.h"
#include "sim_stream.h"

#define POOL_MAGIC 0x504f4f31u
#define ALIGNMENT 512u
/* Address space of a pool, in sizes of the device: holes cost nothing but this. */
#define SPACE_FACTOR 4u

struct sim_chunk {
    unsigned users; /* segments in use that reach into it */
    bool backed;
    bool busy; /* scratch: a free segment in it may not be touched yet */
};

struct sim_segment {
    struct sim_segment *before, *after;           /* by address */
    struct sim_segment *free_before, *free_after; /* no order */
    uint64_t offset, bytes;
    bool in_use;
    CUstream stream; /* of the free; NULL: observed, anybody's */
    uint64_t ticket;
};

static CUmemoryPool pools;

static uint64_t chunk_count(const struct CUmemPoolHandle_st *pool)
{
    return pool->space_bytes / SIM_CHUNK_BYTES;
}

CUmemoryPool sim_pool_make(int device)
{
    CUmemoryPool pool = calloc(1, sizeof(*pool));
    if (pool == NULL)
        return NULL;
    pool->device = device;
    pool->magic = POOL_MAGIC;
    pool->space_bytes =
        sim_round_up(sim_settings.memory_bytes * SPACE_FACTOR + SIM_CHUNK_BYTES, SIM_CHUNK_BYTES);
    pool->chunks = calloc(chunk_count(pool), sizeof(*pool->chunks));
    pool->base = pool->chunks != NULL ? sim_space_map(pool->space_bytes, true) : 0;
    if (pool->base == 0) {
        free(pool->chunks);
        free(pool);
        return NULL;
    }
    for (unsigned i = 0; i < 3; i++)
        pool->reuse[i] = 1;
    pool->next = pools;
    pools = pool;
    return pool;
}

bool sim_pool_is_live(CUmemoryPool pool)
{
    for (CUmemoryPool other = pools; other != NULL; other = other->next)
        if (other == pool)
            return !pool->doomed;
    return false;
}

static void list_free(CUmemoryPool pool, struct sim_segment *segment)
{
    segment->free_before = NULL;
    segment->free_after = pool->free_list;
    if (pool->free_list != NULL)
        pool->free_list->free_before = segment;
    pool->free_list = segment;
}

static void unlist_free(CUmemoryPool pool, struct sim_segment *segment)
{
    if (segment->free_before != NULL)
        segment->free_before->free_after = segment->free_after;
    else
        pool->free_list = segment->free_after;
    if (segment->free_after != NULL)
        segment->free_after->free_before = segment->free_before;
}

static void insert_after(CUmemoryPool pool, struct sim_segment *before, struct sim_segment *segment)
{
    segment->before = before;
    segment->after = before != NULL ? before->after : pool->first;
    if (before != NULL)
        before->after = segment;
    else
        pool->first = segment;
    if (segment->after != NULL)
        segment->after->before = segment;
    else
        pool->last = segment;
}

static void erase(CUmemoryPool pool, struct sim_segment *segment)
{
    if (segment->before != NULL)
        segment->before->after = segment->after;
    else
        pool->first = segment->after;
    if (segment->after != NULL)
        segment->after->before = segment->before;
    else
        pool->last = segment->before;
    free(segment);
}

/* Forgets whose free it was once the host has observed it. */
static void refresh(struct sim_segment *segment)
{
    if (segment->stream != NULL && segment->stream->observed >= segment->ticket)
        segment->stream = NULL;
}

static bool is_usable(struct sim_segment *segment, CUstream stream, bool may_wait)
{
    refresh(segment);
    return segment->stream == NULL || segment->stream == stream || may_wait ||
           sim_stream_reached(segment->stream, segment->ticket);
}

/* Bytes from this free segment on, over neighbours that are usable too. */
static uint64_t run_bytes(struct sim_segment *segment, CUstream stream, bool may_wait,
                          uint64_t enough)
{
    uint64_t bytes = 0;
    for (; segment != NULL && !segment->in_use && bytes < enough; segment = segment->after) {
        if (!is_usable(segment, stream, may_wait))
            break;
        bytes += segment->bytes;
    }
    return bytes;
}

/* First fit by address; NULL: only beyond the tail. */
static struct sim_segment *find_fit(CUmemoryPool pool, CUstream stream, uint64_t bytes,
                                    bool may_wait)
{
    struct sim_segment *best = NULL;
    for (struct sim_segment *segment = pool->free_list; segment != NULL;
         segment = segment->free_after)
        if ((best == NULL || segment->offset < best->offset) &&
            run_bytes(segment, stream, may_wait, bytes) >= bytes)
            best = segment;
    return best;
}

static uint64_t first_chunk(uint64_t offset)
{
    return offset / SIM_CHUNK_BYTES;
}

static uint64_t last_chunk(uint64_t offset, uint64_t bytes)
{
    return (offset + bytes - 1) / SIM_CHUNK_BYTES;
}

static void count_users(CUmemoryPool pool, uint64_t offset, uint64_t bytes, int change)
{
    for (uint64_t i = first_chunk(offset); i <= last_chunk(offset, bytes); i++)
        pool->chunks[i].users = (unsigned)((int)pool->chunks[i].users + change);
}

/* Marks the chunks that a stream (NULL: the device itself) may not have yet. */
static void mark_busy(CUmemoryPool pool, CUstream stream, bool may_wait)
{
    for (uint64_t i = 0; i < first_chunk(pool->tail + SIM_CHUNK_BYTES - 1); i++)
        pool->chunks[i].busy = false;
    for (struct sim_segment *segment = pool->free_list; segment != NULL;
         segment = segment->free_after) {
        refresh(segment);
        if (stream == NULL ? segment->stream == NULL : is_usable(segment, stream, may_wait))
            continue;
        for (uint64_t i = first_chunk(segment->offset);
             i <= last_chunk(segment->offset, segment->bytes); i++)
            pool->chunks[i].busy = true;
    }
}

static bool is_idle(const struct sim_chunk *chunk)
{
    return chunk->backed && chunk->users == 0 && !chunk->busy;
}

/* Memory of a host pool is not the device's. */
static bool take_chunks(CUmemoryPool pool, uint64_t count)
{
    return pool->on_host || sim_capacity_take(pool->device, count * SIM_CHUNK_BYTES);
}

static void give_chunk(CUmemoryPool pool)
{
    if (!pool->on_host)
        sim_capacity_give(pool->device, SIM_CHUNK_BYTES);
}

static void unback(CUmemoryPool pool, uint64_t index)
{
    pool->chunks[index].backed = false;
    pool->reserved_bytes -= SIM_CHUNK_BYTES;
    sim_space_drop(pool->base + index * SIM_CHUNK_BYTES, SIM_CHUNK_BYTES);
}

void sim_pool_trim(CUmemoryPool pool, uint64_t keep_bytes)
{
    mark_busy(pool, NULL, false);
    for (uint64_t i = first_chunk(pool->tail + SIM_CHUNK_BYTES - 1); i-- > 0;) {
        if (pool->reserved_bytes <= keep_bytes)
            return;
        if (!is_idle(&pool->chunks[i]))
            continue;
        unback(pool, i);
        give_chunk(pool);
    }
}

static uint64_t count_unbacked(const struct CUmemPoolHandle_st *pool, uint64_t first, uint64_t last)
{
    uint64_t count = 0;
    for (uint64_t i = first; i <= last; i++)
        count += !pool->chunks[i].backed;
    return count;
}

/* Idle chunks outside [first, last] can move into it; up to `most` of them. */
static uint64_t move_idle(CUmemoryPool pool, uint64_t first, uint64_t last, uint64_t most,
                          bool really)
{
    uint64_t moved = 0;
    for (uint64_t i = 0; i < first_chunk(pool->tail + SIM_CHUNK_BYTES - 1) && moved < most; i++) {
        if ((i >= first && i <= last) || !is_idle(&pool->chunks[i]))
            continue;
        moved++;
        if (really)
            unback(pool, i);
    }
    return moved;
}

/* Puts memory behind a stretch: from the pool's own idle chunks, then from the device. */
static bool back(CUmemoryPool pool, CUstream stream, uint64_t offset, uint64_t bytes, bool may_wait)
{
    uint64_t first = first_chunk(offset);
    uint64_t last = last_chunk(offset, bytes);
    uint64_t missing = count_unbacked(pool, first, last);
    if (missing == 0)
        return true;
    mark_busy(pool, stream, may_wait);
    uint64_t movable = move_idle(pool, first, last, missing, false);
    if (!take_chunks(pool, missing - movable))
        return false;
    move_idle(pool, first, last, movable, true);
    for (uint64_t i = first; i <= last; i++)
        pool->chunks[i].backed = true;
    pool->reserved_bytes += missing * SIM_CHUNK_BYTES;
    if (pool->reserved_high_bytes < pool->reserved_bytes)
        pool->reserved_high_bytes = pool->reserved_bytes;
    return true;
}

static struct sim_segment *add_segment(CUmemoryPool pool, struct sim_segment *before,
                                       uint64_t offset, uint64_t bytes)
{
    struct sim_segment *segment = calloc(1, sizeof(*segment));
    if (segment == NULL)
        return NULL;
    segment->offset = offset;
    segment->bytes = bytes;
    insert_after(pool, before, segment);
    return segment;
}

/* Makes the stream wait for the frees that it takes over before they are done. */
static void wait_for_free(CUstream stream, const struct sim_segment *segment)
{
    if (segment->stream != NULL && segment->stream != stream)
        sim_stream_after(stream, segment->stream, segment->ticket);
}

/* Uses up free segments from `segment` on; returns the bytes that lie beyond the last one. */
static uint64_t consume(CUmemoryPool pool, CUstream stream, struct sim_segment *segment,
                        uint64_t bytes)
{
    while (bytes != 0 && segment != NULL) {
        struct sim_segment *after = segment->after;
        wait_for_free(stream, segment);
        if (segment->bytes > bytes) {
            segment->offset += bytes;
            segment->bytes -= bytes;
            return 0;
        }
        bytes -= segment->bytes;
        unlist_free(pool, segment);
        erase(pool, segment);
        segment = after;
    }
    return bytes;
}

/* Where the free segments before the tail begin, if they are usable. */
static struct sim_segment *find_end(CUmemoryPool pool, CUstream stream, bool may_wait)
{
    struct sim_segment *end = NULL;
    for (struct sim_segment *segment = pool->last;
         segment != NULL && !segment->in_use && is_usable(segment, stream, may_wait);
         segment = segment->before)
        end = segment;
    return end;
}

static bool place(CUmemoryPool pool, CUstream stream, uint64_t bytes, bool may_wait,
                  struct sim_segment **out)
{
    struct sim_segment *fit = find_fit(pool, stream, bytes, may_wait);
    fit = fit != NULL ? fit : find_end(pool, stream, may_wait);
    struct sim_segment *before = fit != NULL ? fit->before : pool->last;
    uint64_t offset = fit != NULL ? fit->offset : pool->tail;
    if (offset + bytes > pool->space_bytes || !back(pool, stream, offset, bytes, may_wait))
        return false;
    pool->tail += consume(pool, stream, fit, bytes);
    *out = add_segment(pool, before, offset, bytes);
    return *out != NULL;
}

/*
 * What the driver tries, in this order: what is there; what other pools hold
 * idle; what this pool will get back when earlier frees are done.
 */
static struct sim_segment *find_place(CUmemoryPool pool, CUstream stream, uint64_t bytes)
{
    struct sim_segment *segment = NULL;
    if (place(pool, stream, bytes, false, &segment))
        return segment;
    sim_pools_give_back(pool->device);
    if (!place(pool, stream, bytes, false, &segment))
        place(pool, stream, bytes, true, &segment);
    return segment;
}

CUresult sim_pool_take(CUmemoryPool pool, CUstream stream, uint64_t bytes, uint64_t *address)
{
    uint64_t rounded = sim_round_up(bytes, ALIGNMENT);
    struct sim_segment *segment =
        rounded >= bytes && bytes <= pool->space_bytes ? find_place(pool, stream, rounded) : NULL;
    struct sim_range *range = NULL;
    if (segment == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    segment->in_use = true;
    count_users(pool, segment->offset, rounded, 1);
    range = sim_range_add(SIM_POOLED, pool->base + segment->offset, bytes, pool->device);
    if (range == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    range->owner = segment;
    sim_stream_mark(stream);
    pool->live_count++;
    pool->used_bytes += bytes;
    if (pool->used_high_bytes < pool->used_bytes)
        pool->used_high_bytes = pool->used_bytes;
    *address = range->base;
    return CUDA_SUCCESS;
}

static CUmemoryPool pool_of(const struct sim_range *range)
{
    for (CUmemoryPool pool = pools; pool != NULL; pool = pool->next)
        if (range->base - pool->base < pool->space_bytes)
            return pool;
    return NULL;
}

static bool can_join(struct sim_segment *left, struct sim_segment *right)
{
    if (left == NULL || right == NULL || left->in_use || right->in_use)
        return false;
    refresh(left);
    refresh(right);
    return left->stream == right->stream;
}

static void join(CUmemoryPool pool, struct sim_segment *left, struct sim_segment *right)
{
    if (!can_join(left, right))
        return;
    left->bytes += right->bytes;
    left->ticket = left->ticket > right->ticket ? left->ticket : right->ticket;
    unlist_free(pool, right);
    erase(pool, right);
}

static void free_segment(CUmemoryPool pool, struct sim_segment *segment, CUstream stream,
                         uint64_t ticket)
{
    count_users(pool, segment->offset, segment->bytes, -1);
    segment->in_use = false;
    segment->stream = stream;
    segment->ticket = ticket;
    list_free(pool, segment);
    join(pool, segment, segment->after);
    join(pool, segment->before, segment);
    pool->live_count--;
}

void sim_pool_free(struct sim_range *range, CUstream stream)
{
    CUmemoryPool pool = pool_of(range);
    free_segment(pool, range->owner, stream, sim_stream_mark(stream));
    pool->used_bytes -= range->bytes;
    sim_range_remove(range);
}

/* Leaves "used" as it is: so does the driver [H200]. */
void sim_pool_free_now(struct sim_range *range)
{
    CUmemoryPool pool = pool_of(range);
    free_segment(pool, range->owner, NULL, 0);
    sim_range_remove(range);
    sim_pools_settle();
}

static void dissolve(CUmemoryPool pool)
{
    CUmemoryPool *link = &pools;
    while (*link != pool)
        link = &(*link)->next;
    *link = pool->next;
    while (pool->first != NULL)
        erase(pool, pool->first);
    sim_space_unmap(pool->base, pool->space_bytes);
    free(pool->chunks);
    free(pool);
}

void sim_pool_destroy(CUmemoryPool pool)
{
    pool->doomed = true;
    pool->threshold_bytes = 0;
    sim_pools_settle();
}

void sim_pools_settle(void)
{
    sim_memory_sweep();
    for (CUmemoryPool pool = pools, next; pool != NULL; pool = next) {
        next = pool->next;
        if (pool->reserved_bytes > pool->threshold_bytes)
            sim_pool_trim(pool, pool->threshold_bytes);
        if (pool->doomed && pool->live_count == 0 && pool->reserved_bytes == 0)
            dissolve(pool);
    }
}

void sim_pools_give_back(int device)
{
    for (CUmemoryPool pool = pools; pool != NULL; pool = pool->next)
        if (pool->device == device)
            sim_pool_trim(pool, 0);
}
