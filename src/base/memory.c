#include "memory.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "intern.h"
#include "lock.h"
#include "os.h"

#define PAGE_BYTES 4096u
#define REGION_BYTES (1u << 20)
#define SLAB_CHUNK_BYTES (16u << 10)
#define SCRATCH_CHUNK_BYTES (256u << 10)

/* Nothing touches it.  Evidence, stacks and both forms of a small report take half of that. */
#define BALLAST_BYTES (4u << 20)

/* Tables of up to 64 KiB come from size classes, powers of two from 64 bytes. */
#define CLASS_FIRST_SHIFT 6
#define CLASS_COUNT 11
#define CLASS_MAX_BYTES (1u << (CLASS_FIRST_SHIFT + CLASS_COUNT - 1))

static struct gos_lock memory_lock = GOS_LOCK_INIT(GOS_RANK_MEMORY);
static _Atomic uint64_t mapped_bytes;
static void *_Atomic ballast;

/* What is left of the newest region; slab chunks, small tables and the arena share it. */
static char *region;
static size_t region_left_bytes;
static void *class_free_lists[CLASS_COUNT];

static size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) & ~(unit - 1);
}

static void *map(size_t bytes)
{
    void *memory = gos_os.map(bytes);

    if (memory)
        atomic_fetch_add_explicit(&mapped_bytes, bytes, memory_order_relaxed);
    return memory;
}

static void unmap(void *memory, size_t bytes)
{
    gos_os.unmap(memory, bytes);
    atomic_fetch_sub_explicit(&mapped_bytes, bytes, memory_order_relaxed);
}

/* Near a limit on address space a small mapping may still succeed where a large one fails. */
static bool refill(size_t needed_bytes)
{
    size_t bytes = REGION_BYTES;
    char *fresh = needed_bytes <= bytes ? map(bytes) : NULL;

    if (!fresh) {
        bytes = round_up(needed_bytes, PAGE_BYTES);
        fresh = map(bytes);
    }
    if (!fresh)
        return false;
    region = fresh;
    region_left_bytes = bytes;
    return true;
}

/* Zeroed, 16-byte aligned; the memory lock is held. */
static void *carve(size_t bytes)
{
    void *carved;

    if (bytes > SIZE_MAX - PAGE_BYTES)
        return NULL;
    bytes = round_up(bytes, 16);
    /* A large piece gets a mapping of its own rather than waste the rest of the region. */
    if (bytes > REGION_BYTES / 4)
        return map(round_up(bytes, PAGE_BYTES));
    if (bytes > region_left_bytes && !refill(bytes))
        return NULL;
    carved = region;
    region += bytes;
    region_left_bytes -= bytes;
    return carved;
}

void *gos_arena_alloc(size_t bytes)
{
    void *memory;

    gos_lock_acquire(&memory_lock);
    memory = carve(bytes);
    gos_lock_release(&memory_lock);
    return memory;
}

/* --- slabs -------------------------------------------------------------------------------- */

static bool add_chunk(struct gos_slab *slab)
{
    size_t bytes = SLAB_CHUNK_BYTES;

    if (bytes < slab->object_bytes)
        bytes = slab->object_bytes;
    slab->chunk = gos_arena_alloc(bytes);
    slab->chunk_left_bytes = slab->chunk ? bytes : 0;
    return slab->chunk != NULL;
}

void *gos_slab_take(struct gos_slab *slab)
{
    void *object = slab->free_list;

    if (object) {
        memcpy(&slab->free_list, object, sizeof(void *));
        return object;
    }
    if (slab->chunk_left_bytes < slab->object_bytes && !add_chunk(slab))
        return NULL;
    object = slab->chunk;
    slab->chunk += slab->object_bytes;
    slab->chunk_left_bytes -= slab->object_bytes;
    return object;
}

/* A free object's first word leads to the next free one. */
void gos_slab_give(struct gos_slab *slab, void *object)
{
    memcpy(object, &slab->free_list, sizeof(void *));
    slab->free_list = object;
}

/* --- variable-sized tables ---------------------------------------------------------------- */

static unsigned class_of(size_t bytes)
{
    unsigned class = 0;

    while ((size_t)1 << (CLASS_FIRST_SHIFT + class) < bytes)
        class ++;
    return class;
}

static void *take_of_class(unsigned class)
{
    size_t bytes = (size_t)1 << (CLASS_FIRST_SHIFT + class);
    void *memory = class_free_lists[class];

    if (!memory)
        return carve(bytes);
    memcpy(&class_free_lists[class], memory, sizeof(void *));
    memset(memory, 0, bytes);
    return memory;
}

void *gos_memory_alloc(size_t bytes)
{
    void *memory;

    if (bytes > SIZE_MAX - PAGE_BYTES)
        return NULL;
    if (bytes > CLASS_MAX_BYTES)
        return map(round_up(bytes, PAGE_BYTES));
    gos_lock_acquire(&memory_lock);
    memory = take_of_class(class_of(bytes));
    gos_lock_release(&memory_lock);
    return memory;
}

void gos_memory_free(void *memory, size_t bytes)
{
    unsigned class;

    if (!memory)
        return;
    if (bytes > CLASS_MAX_BYTES) {
        unmap(memory, round_up(bytes, PAGE_BYTES));
        return;
    }
    class = class_of(bytes);
    gos_lock_acquire(&memory_lock);
    memcpy(memory, &class_free_lists[class], sizeof(void *));
    class_free_lists[class] = memory;
    gos_lock_release(&memory_lock);
}

/* --- ballast ------------------------------------------------------------------------------ */

bool gos_memory_keep_ballast(void)
{
    void *none = NULL;
    void *fresh;

    if (atomic_load(&ballast))
        return true;
    fresh = gos_os.map(BALLAST_BYTES);
    if (fresh && !atomic_compare_exchange_strong(&ballast, &none, fresh))
        gos_os.unmap(fresh, BALLAST_BYTES);
    return fresh != NULL;
}

bool gos_memory_drop_ballast(void)
{
    void *dropped = atomic_exchange(&ballast, NULL);

    if (dropped)
        gos_os.unmap(dropped, BALLAST_BYTES);
    return dropped != NULL;
}

/* --- scratch ------------------------------------------------------------------------------ */

struct gos_scratch_chunk {
    struct gos_scratch_chunk *next;
    size_t bytes;
};

static struct gos_scratch_chunk *map_chunk(size_t needed_bytes)
{
    size_t bytes = round_up(needed_bytes, SCRATCH_CHUNK_BYTES);
    struct gos_scratch_chunk *chunk = map(bytes);

    if (!chunk && gos_memory_drop_ballast())
        chunk = map(bytes);
    if (!chunk) {
        bytes = round_up(needed_bytes, PAGE_BYTES);
        chunk = map(bytes);
    }
    if (chunk)
        chunk->bytes = bytes;
    return chunk;
}

static bool extend(struct gos_scratch *scratch, size_t bytes)
{
    struct gos_scratch_chunk *chunk = map_chunk(sizeof(*chunk) + bytes);

    if (!chunk)
        return false;
    chunk->next = scratch->chunk;
    scratch->chunk = chunk;
    scratch->used_bytes = sizeof(*chunk);
    return true;
}

void *gos_scratch_alloc(struct gos_scratch *scratch, size_t bytes)
{
    void *memory;

    if (bytes > SIZE_MAX / 2)
        return NULL;
    bytes = round_up(bytes, 16);
    if (!scratch->chunk || scratch->chunk->bytes - scratch->used_bytes < bytes) {
        if (!extend(scratch, bytes))
            return NULL;
    }
    memory = (char *)scratch->chunk + scratch->used_bytes;
    scratch->used_bytes += bytes;
    return memory;
}

char *gos_scratch_copy(struct gos_scratch *scratch, const char *text, size_t length)
{
    char *copy = gos_scratch_alloc(scratch, length + 1);

    if (copy)
        memcpy(copy, text, length);
    return copy;
}

void gos_scratch_release(struct gos_scratch *scratch)
{
    struct gos_scratch_chunk *chunk = scratch->chunk;

    while (chunk) {
        struct gos_scratch_chunk *next = chunk->next;

        unmap(chunk, chunk->bytes);
        chunk = next;
    }
    *scratch = (struct gos_scratch){0};
}

void gos_scratch_rewind(struct gos_scratch *scratch)
{
    struct gos_scratch_chunk *chunk = scratch->chunk;
    size_t bytes = 0;

    if (chunk && !chunk->next) {
        memset(chunk + 1, 0, scratch->used_bytes - sizeof(*chunk));
        scratch->used_bytes = sizeof(*chunk);
        return;
    }
    for (; chunk; chunk = chunk->next)
        bytes += chunk->bytes;
    gos_scratch_release(scratch);
    if (bytes > 0)
        (void)extend(scratch, bytes);
}

uint64_t gos_memory_mapped_bytes(void)
{
    return atomic_load_explicit(&mapped_bytes, memory_order_relaxed);
}

/* mapped_bytes stays: the child has a copy of all of it. */
void gos_memory_reset_after_fork(void)
{
    gos_lock_reset(&memory_lock);
    region = NULL;
    region_left_bytes = 0;
    memset(class_free_lists, 0, sizeof(class_free_lists));
    gos_intern_reset_after_fork();
}
