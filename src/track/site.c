#include "site.h"

#include <stdatomic.h>
#include <string.h>

#include "../base/lock.h"
#include "../base/loss.h"
#include "../base/memory.h"
#include "../base/module.h"
#include "site_intern.h"
#include "stack_hash.h"

#define HASH_NONFATAL_OOM 1
#define uthash_malloc(bytes) gos_memory_alloc(bytes)
#define uthash_free(memory, bytes) gos_memory_free(memory, bytes)
#define uthash_nonfatal_oom(record) (gos_loss_count(GOS_LOSS_MEMORY))
#include <uthash.h>

/* A new stack looks through its whole chain, and each step may be a cache miss. */
#undef HASH_BKT_CAPACITY_THRESH
#define HASH_BKT_CAPACITY_THRESH 5U

/* A record is followed in memory by its native frames, its Python frames and its tag's address. */
struct site_record {
    struct gos_site site;
    UT_hash_handle hh; /* by all these */
};

/* Numbers to records: a table of chunks that are made as needed and never move. */
#define CHUNK_SITES 1024u
#define CHUNK_COUNT 1024u

struct site_chunk {
    _Atomic(const struct site_record *) records[CHUNK_SITES];
};

static struct gos_lock lock = GOS_LOCK_INIT(GOS_RANK_SITE);
static struct site_record *table; /* by content, under the lock */
static _Atomic(struct site_chunk *) chunks[CHUNK_COUNT];
static _Atomic uint32_t site_count;

/* Resolved frames and tag as one block of bytes, without holes: what a record is found by. */
struct content {
    uint32_t native_count;
    uint32_t python_count;
    const char *tag;
    size_t bytes;
    uint64_t frames[GOS_FRAME_MAX *
                        (sizeof(struct gos_native_frame) + sizeof(struct gos_python_frame)) /
                        sizeof(uint64_t) +
                    1];
};

static void resolve(struct gos_frame_cache *cache, const struct gos_stack *stack,
                    struct content *content)
{
    struct gos_native_frame *native = (void *)content->frames;
    struct gos_python_frame *python = (void *)(native + stack->native_count);
    gos_frames_resolve_native(cache, stack, native);
    content->native_count = stack->native_count;
    content->python_count = gos_frames_resolve_python(cache, stack, python);
    content->tag = stack->tag;
    memcpy(python + content->python_count, &stack->tag, sizeof stack->tag);
    content->bytes = content->native_count * sizeof *native +
                     content->python_count * sizeof *python + sizeof stack->tag;
}

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

static struct site_record *make_record(const struct content *content, uint32_t id)
{
    struct site_record *record = gos_arena_alloc(sizeof *record + content->bytes);
    if (!record)
        return NULL;
    memcpy(record + 1, content->frames, content->bytes);
    const struct gos_native_frame *native = (const void *)(record + 1);
    record->site = (struct gos_site){
        .id = id,
        .native_count = content->native_count,
        .python_count = content->python_count,
        .tag = content->tag,
        .native = native,
        .python = (const void *)(native + content->native_count),
    };
    return record;
}

/* uthash leaves the handle's table NULL when it could not grow. */
static bool add_to_table(struct site_record *record, size_t bytes, unsigned hash)
{
    HASH_ADD_KEYPTR_BYHASHVALUE(hh, table, (const char *)(record + 1), (unsigned)bytes, hash,
                                record);
    return record->hh.tbl != NULL;
}

static uint32_t add_site(const struct content *content, unsigned hash)
{
    uint32_t id = atomic_load_explicit(&site_count, memory_order_relaxed) + 1;
    struct site_chunk *chunk = chunk_for(id);
    struct site_record *record = chunk ? make_record(content, id) : NULL;
    if (!record || !add_to_table(record, content->bytes, hash)) {
        gos_loss_count(GOS_LOSS_MEMORY);
        return 0;
    }
    atomic_store_explicit(&chunk->records[id % CHUNK_SITES], record, memory_order_release);
    atomic_store_explicit(&site_count, id, memory_order_release);
    return id;
}

static uint32_t intern_content(const struct content *content)
{
    struct site_record *record = NULL;
    unsigned hash =
        (unsigned)gos_stack_hash(content->frames, content->bytes, content->native_count);
    gos_lock_acquire(&lock);
    HASH_FIND_BYHASHVALUE(hh, table, content->frames, (unsigned)content->bytes, hash, record);
    /* Frames of both kinds have one size: the same bytes may be another split. */
    bool is_same = record && record->site.native_count == content->native_count;
    uint32_t id = is_same ? record->site.id : add_site(content, hash);
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

static uint32_t intern_slowly(struct gos_frame_cache *frames, const struct gos_stack *stack)
{
    struct content content;
    resolve(frames, stack, &content);
    bool is_empty = !content.native_count && !content.python_count && !content.tag;
    return is_empty ? 0 : intern_content(&content);
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

const struct gos_site *gos_site_get(uint32_t id)
{
    if (id == 0 || id > gos_site_count())
        return NULL;
    struct site_chunk *chunk =
        atomic_load_explicit(&chunks[id / CHUNK_SITES], memory_order_acquire);
    const struct site_record *record =
        chunk ? atomic_load_explicit(&chunk->records[id % CHUNK_SITES], memory_order_acquire)
              : NULL;
    return record ? &record->site : NULL;
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
    table = NULL;
    for (uint32_t i = 0; i < CHUNK_COUNT; i++)
        atomic_store_explicit(&chunks[i], NULL, memory_order_relaxed);
    atomic_store_explicit(&site_count, 0, memory_order_relaxed);
    gos_stack_cache_reset_after_fork();
}
