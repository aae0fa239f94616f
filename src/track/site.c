#include "site.h"

#include <stdatomic.h>
#include <string.h>

#include "../base/lock.h"
#include "../base/loss.h"
#include "../base/memory.h"
#include "../base/module.h"
#include "frame_table.h"
#include "number_table.h"
#include "site_intern.h"
#include "stack_hash.h"

/*
 * A site is kept as the numbers of its frames.  Room for the frames themselves
 * is set aside, but written only when somebody asks for the site: pages of sites
 * that nobody asks for are never touched, and whoever asks does not need memory.
 */
struct site_record {
    _Atomic(const struct gos_site *) shown; /* in the room, NULL: not written yet */
    struct gos_site *room;
    const char *tag;
    uint32_t native_count;
    uint32_t python_count;
    uint32_t numbers[]; /* native frames, then Python's (frame_table.h) */
};

#define ROOM_BYTES (1u << 20)

/* Numbers to records: a table of chunks that are made as needed and never move. */
#define CHUNK_SITES 1024u
#define CHUNK_COUNT 1024u

struct site_chunk {
    _Atomic(struct site_record *) records[CHUNK_SITES];
};

static struct gos_lock lock = GOS_LOCK_INIT(GOS_RANK_SITE);
static struct gos_number_table table; /* by content, this and the next two under the lock */
static char *room;
static size_t room_left_bytes;
static _Atomic(struct site_chunk *) chunks[CHUNK_COUNT];
static _Atomic uint32_t site_count;

static struct site_chunk *chunk_for(uint32_t id)
{
    uint32_t index = id / CHUNK_SITES;
    if (index >= CHUNK_COUNT)
        return NULL;
    struct site_chunk *chunk = atomic_load_explicit(&chunks[index], memory_order_relaxed);
    if (chunk)
        return chunk;
    chunk = gos_arena_alloc(sizeof *chunk);
    atomic_store_explicit(&chunks[index], chunk, memory_order_release);
    return chunk;
}

/* Near a limit on address space a small mapping may still succeed where a large one fails. */
static void *set_aside(size_t bytes)
{
    if (room_left_bytes < bytes) {
        char *fresh = gos_memory_alloc(ROOM_BYTES);
        if (!fresh)
            return gos_arena_alloc(bytes);
        room = fresh;
        room_left_bytes = ROOM_BYTES;
    }
    void *taken = room;
    room += bytes;
    room_left_bytes -= bytes;
    return taken;
}

static uint32_t frame_count(const struct gos_frame_numbers *frames)
{
    return frames->native_count + frames->python_count;
}

static struct site_record *make_record(const struct gos_frame_numbers *frames, const char *tag)
{
    uint32_t count = frame_count(frames);
    struct gos_site *site = set_aside(sizeof *site + count * sizeof(union gos_frame));
    struct site_record *record =
        site ? gos_arena_alloc(sizeof *record + count * sizeof frames->numbers[0]) : NULL;
    if (!record)
        return NULL;
    record->room = site;
    record->tag = tag;
    record->native_count = frames->native_count;
    record->python_count = frames->python_count;
    memcpy(record->numbers, frames->numbers, count * sizeof frames->numbers[0]);
    return record;
}

/* The record comes last, because it cannot be given back. */
static uint32_t add_site(const struct gos_frame_numbers *frames, const char *tag, uint32_t hash)
{
    uint32_t id = atomic_load_explicit(&site_count, memory_order_relaxed) + 1;
    struct site_chunk *chunk = chunk_for(id);
    bool has_room = chunk && gos_number_table_has_room(&table);
    struct site_record *record = has_room ? make_record(frames, tag) : NULL;
    if (!record) {
        gos_loss_count(GOS_LOSS_MEMORY);
        return 0;
    }
    gos_number_table_add(&table, hash, id);
    atomic_store_explicit(&chunk->records[id % CHUNK_SITES], record, memory_order_release);
    atomic_store_explicit(&site_count, id, memory_order_release);
    return id;
}

static struct site_record *record_of(uint32_t id)
{
    struct site_chunk *chunk =
        atomic_load_explicit(&chunks[id / CHUNK_SITES], memory_order_acquire);
    return chunk ? atomic_load_explicit(&chunk->records[id % CHUNK_SITES], memory_order_acquire)
                 : NULL;
}

static bool is_same(const struct site_record *record, const struct gos_frame_numbers *frames,
                    const char *tag)
{
    return record->native_count == frames->native_count &&
           record->python_count == frames->python_count && record->tag == tag &&
           memcmp(record->numbers, frames->numbers,
                  frame_count(frames) * sizeof frames->numbers[0]) == 0;
}

static uint32_t find_site(const struct gos_frame_numbers *frames, const char *tag, uint32_t hash)
{
    uint32_t step = 0;
    uint32_t id;
    do
        id = gos_number_table_next(&table, hash, &step);
    while (id && !is_same(record_of(id), frames, tag));
    return id;
}

/* Whole words; what is behind an odd number of frames is made even. */
static uint32_t hash_of_content(struct gos_frame_numbers *frames, const char *tag)
{
    uint32_t count = frame_count(frames);
    uint64_t seed = (uintptr_t)tag ^ (uint64_t)frames->native_count << 56;
    if (count % 2)
        frames->numbers[count++] = 0;
    return (uint32_t)gos_stack_hash(frames->numbers, count * sizeof frames->numbers[0], seed);
}

static uint32_t intern_content(struct gos_frame_numbers *frames, const char *tag)
{
    uint32_t hash = hash_of_content(frames, tag);
    gos_lock_acquire(&lock);
    uint32_t id = find_site(frames, tag, hash);
    if (!id)
        id = add_site(frames, tag, hash);
    gos_lock_release(&lock);
    return id;
}

static uint64_t hash_of(const struct gos_stack *stack)
{
    uint64_t native = stack->native_hash;
    uint64_t python = stack->python_hash;
    if (!native)
        native = gos_stack_hash_native(stack->native, stack->native_count);
    if (!python)
        python = gos_stack_hash_python(stack->python, stack->python_count);
    uint64_t tag = (uintptr_t)stack->tag * UINT64_C(0xc2b2ae3d27d4eb4f);
    return gos_stack_hash_finish(native * UINT64_C(0x9e3779b97f4a7c15) ^ python ^ tag);
}

static uint32_t intern_slowly(struct gos_frame_cache *cache, const struct gos_stack *stack)
{
    struct gos_frame_numbers frames;
    if (!gos_frames_resolve(cache, stack, &frames)) {
        gos_loss_count(GOS_LOSS_MEMORY);
        return 0;
    }
    return frame_count(&frames) || stack->tag ? intern_content(&frames, stack->tag) : 0;
}

uint32_t gos_site_intern_with(struct gos_stack_cache *cache, const struct gos_stack *stack,
                              struct gos_site_hint *hint)
{
    if (!stack->native_count && !stack->python_count && !stack->tag)
        return 0;
    if (!cache)
        return intern_slowly(NULL, stack);
    uint64_t hash = hash_of(stack);
    uint32_t id = gos_site_cache_find(&cache->sites, stack, hash);
    if (!id) {
        id = intern_slowly(&cache->frames, stack);
        if (id && !cache->is_first_meeting)
            gos_site_cache_put(&cache->sites, stack, hash, id);
    }
    if (id && hint)
        gos_site_cache_hint(&cache->sites, hash, hint);
    return id;
}

uint32_t gos_site_intern(const struct gos_stack *stack)
{
    struct gos_stack_cache *cache = gos_stack_cache_claim();
    uint32_t id = gos_site_intern_with(cache, stack, NULL);
    gos_stack_cache_release(cache);
    return id;
}

static void write_frames(union gos_frame *frames, const uint32_t *numbers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        frames[i] = *gos_frame_table_get(numbers[i]);
}

static const struct gos_site *write_site(struct site_record *record, uint32_t id)
{
    struct gos_site *site = record->room;
    union gos_frame *frames = (void *)(site + 1);
    write_frames(frames, record->numbers, record->native_count + record->python_count);
    *site = (struct gos_site){
        .id = id,
        .native_count = record->native_count,
        .python_count = record->python_count,
        .tag = record->tag,
        .native = &frames->native,
        .python = &frames[record->native_count].python,
    };
    atomic_store_explicit(&record->shown, site, memory_order_release);
    return site;
}

static const struct gos_site *shown_site(struct site_record *record)
{
    return atomic_load_explicit(&record->shown, memory_order_acquire);
}

static const struct gos_site *show_site(struct site_record *record, uint32_t id)
{
    gos_lock_acquire(&lock);
    const struct gos_site *site = shown_site(record);
    if (!site)
        site = write_site(record, id);
    gos_lock_release(&lock);
    return site;
}

const struct gos_site *gos_site_get(uint32_t id)
{
    struct site_record *record = id && id <= gos_site_count() ? record_of(id) : NULL;
    const struct gos_site *site = record ? shown_site(record) : NULL;
    return record && !site ? show_site(record, id) : site;
}

uint32_t gos_site_count(void)
{
    return atomic_load_explicit(&site_count, memory_order_acquire);
}

/* --- who asked ------------------------------------------------------------------------------- */

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Passes requests on but never is the one that wants memory. */
static bool is_between(const struct gos_module *module)
{
    static const char *const prefixes[] = {"libcuda.so",    "libcudart", "libc.so", "libc-2",
                                           "libpthread",    "ld-linux",  "ld-2",    "libdl.so",
                                           "libdl-2",       "libffi",    "_ctypes", "_cffi_backend",
                                           "libgpuoomshim", "linux-vdso"};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (starts_with(module->name, prefixes[i]))
            return true;
    uintptr_t own = (uintptr_t)&gos_site_requester_module;
    return own >= module->start && own < module->end;
}

uint32_t gos_site_requester_module(const struct gos_site *site)
{
    for (uint32_t i = 0; site && i < site->native_count; i++) {
        const struct gos_module *module = gos_module_at(site->native[i].module);
        if (module && !is_between(module))
            return module->index;
    }
    return UINT32_MAX;
}

void gos_site_reset_after_fork(void)
{
    gos_lock_reset(&lock);
    table = (struct gos_number_table){0};
    room = NULL;
    room_left_bytes = 0;
    for (uint32_t i = 0; i < CHUNK_COUNT; i++)
        atomic_store_explicit(&chunks[i], NULL, memory_order_relaxed);
    atomic_store_explicit(&site_count, 0, memory_order_relaxed);
    gos_frame_table_reset_after_fork();
    gos_stack_cache_reset_after_fork();
}
