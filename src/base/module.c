#include "module.h"

#include <link.h>
#include <stdatomic.h>
#include <string.h>

#include "hot.h"
#include "lock.h"
#include "loss.h"
#include "memory.h"
#include "module_facts.h"
#include "module_path.h"
#include "os.h"
#include "phdr_walk.h"
#include "text.h"

#define PATH_BYTES 4096

/*
 * The table only grows.  The loader counts the objects that came and went; the
 * sum of the two names a state of its list, our "generation".  An entry is
 * loaded when it was seen in the newest generation that we know.
 */
static struct gos_lock module_lock = GOS_LOCK_INIT(GOS_RANK_MODULE);
static _Atomic(struct gos_module *) table[GOS_MODULE_MAX];
static _Atomic uint32_t table_count;
static _Atomic uint64_t seen[GOS_MODULE_MAX];
static GOS_READ_MOSTLY _Atomic uint64_t known_generation;
GOS_READ_MOSTLY _Atomic uint64_t gos_module_unloads_known;

/*
 * The same entries by address, without overlaps: what was mapped later hides
 * what it overlaps.  Readers take no lock: they read `sequence`, search, and
 * trust the answer if it is still the same even number.  Every element below
 * sorted_count is a valid pointer at all times, so a search that is overtaken
 * finds something wrong, but nothing that hurts.
 */
static _Atomic uint32_t sequence;
static _Atomic(struct gos_module *) sorted[GOS_MODULE_MAX];
static _Atomic uint32_t sorted_count;

static struct gos_module *sorted_at(uint32_t position)
{
    return atomic_load_explicit(&sorted[position], memory_order_acquire);
}

static void sorted_set(uint32_t position, struct gos_module *module)
{
    atomic_store_explicit(&sorted[position], module, memory_order_release);
}

/* Position of the first entry that ends after the address. */
static uint32_t position_of(uintptr_t address)
{
    uint32_t low = 0, high = atomic_load_explicit(&sorted_count, memory_order_acquire);

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (sorted_at(middle)->end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct gos_module *search(uintptr_t address)
{
    uint32_t position = position_of(address);
    struct gos_module *module;

    if (position >= atomic_load_explicit(&sorted_count, memory_order_acquire))
        return NULL;
    module = sorted_at(position);
    return module->start <= address && address < module->end ? module : NULL;
}

/* False when a writer came between. */
static bool search_unlocked(uintptr_t address, struct gos_module **module)
{
    uint32_t before = atomic_load_explicit(&sequence, memory_order_acquire);

    if (before & 1)
        return false;
    *module = search(address);
    return atomic_load_explicit(&sequence, memory_order_relaxed) == before;
}

static struct gos_module *find(uintptr_t address)
{
    struct gos_module *module;

    if (search_unlocked(address, &module))
        return module;
    gos_lock_acquire(&module_lock);
    module = search(address);
    gos_lock_release(&module_lock);
    return module;
}

/* Put the module in place of the entries [begin, end). */
static void replace(uint32_t begin, uint32_t end, struct gos_module *module)
{
    uint32_t count = atomic_load_explicit(&sorted_count, memory_order_relaxed);

    if (begin == end) {
        for (uint32_t i = count; i > begin; i--)
            sorted_set(i, sorted_at(i - 1));
        atomic_store_explicit(&sorted_count, count + 1, memory_order_release);
    }
    sorted_set(begin, module);
    if (end > begin + 1) {
        for (uint32_t i = end; i < count; i++)
            sorted_set(begin + 1 + i - end, sorted_at(i));
        atomic_store_explicit(&sorted_count, count - (end - begin - 1), memory_order_release);
    }
}

static void insert_sorted(struct gos_module *module)
{
    uint32_t count = atomic_load_explicit(&sorted_count, memory_order_relaxed);
    uint32_t begin = position_of(module->start), end = begin;
    uint32_t even = atomic_load_explicit(&sequence, memory_order_relaxed);

    while (end < count && sorted_at(end)->start < module->end)
        end++;
    atomic_store_explicit(&sequence, even + 1, memory_order_relaxed);
    replace(begin, end, module);
    atomic_store_explicit(&sequence, even + 2, memory_order_release);
}

/* --- from the loader's list to ours -------------------------------------------------------- */

struct found {
    struct found *next;
    struct gos_module module; /* path in scratch memory */
};

struct walk {
    struct gos_scratch scratch;
    struct found *first;
    struct found **last;
    uint64_t generation;
    uint64_t unloads;
    bool is_failed;
};

static const char *copy_path(struct walk *walk, const char *path)
{
    char program[PATH_BYTES];
    ssize_t length;

    if (*path != '\0')
        return gos_scratch_copy(&walk->scratch, path, strlen(path));
    if (walk->first)
        return gos_scratch_copy(&walk->scratch, "[unnamed]", strlen("[unnamed]"));
    length = gos_os.readlink("/proc/self/exe", program, sizeof(program));
    if (length <= 0)
        return gos_scratch_copy(&walk->scratch, "[program]", strlen("[program]"));
    return gos_scratch_copy(&walk->scratch, program, (size_t)length);
}

/* The names are copied while the loader's lock keeps the objects from going away. */
static int collect(struct dl_phdr_info *info, size_t info_bytes, void *arg)
{
    struct walk *walk = arg;
    struct found *found;
    const char *path;

    (void)info_bytes;
    walk->generation = info->dlpi_adds + info->dlpi_subs;
    walk->unloads = info->dlpi_subs;
    if (walk->generation == atomic_load_explicit(&known_generation, memory_order_acquire))
        return 1;
    found = gos_scratch_alloc(&walk->scratch, sizeof(*found));
    path = found ? copy_path(walk, info->dlpi_name) : NULL;
    if (!path) {
        walk->is_failed = true;
        return 1;
    }
    gos_module_describe(info, &found->module);
    found->module.path = path;
    *walk->last = found;
    walk->last = &found->next;
    return 0;
}

static struct gos_module *make_entry(const struct gos_module *facts, uint32_t index)
{
    struct gos_module *entry = gos_arena_alloc(sizeof(*entry));
    const char *path = gos_arena_intern(facts->path, strlen(facts->path));

    if (!entry || !path) {
        gos_loss_count(GOS_LOSS_MEMORY);
        return NULL;
    }
    *entry = *facts;
    entry->path = path;
    entry->name = gos_text_base_name(path);
    entry->index = index;
    return entry;
}

static struct gos_module *add_entry(const struct gos_module *facts)
{
    uint32_t index = atomic_load_explicit(&table_count, memory_order_relaxed);
    struct gos_module *entry;

    if (index == GOS_MODULE_MAX) {
        gos_loss_count(GOS_LOSS_TABLE);
        return NULL;
    }
    entry = make_entry(facts, index);
    if (!entry)
        return NULL;
    atomic_store_explicit(&table[index], entry, memory_order_release);
    atomic_store_explicit(&table_count, index + 1, memory_order_release);
    insert_sorted(entry);
    return entry;
}

static struct gos_module *entry_for(const struct gos_module *facts)
{
    struct gos_module *known = search(facts->start);

    if (known && gos_module_is_same(known, facts) && strcmp(known->path, facts->path) == 0)
        return known;
    return add_entry(facts);
}

/* Two threads may walk at once; the older walk's result is dropped. */
static bool merge(const struct walk *walk)
{
    bool is_newer;

    gos_lock_acquire(&module_lock);
    is_newer = walk->generation > atomic_load_explicit(&known_generation, memory_order_relaxed);
    for (const struct found *found = walk->first; found && is_newer; found = found->next) {
        const struct gos_module *entry = entry_for(&found->module);

        if (entry)
            atomic_store_explicit(&seen[entry->index], walk->generation, memory_order_release);
    }
    if (is_newer) {
        atomic_store_explicit(&known_generation, walk->generation, memory_order_release);
        atomic_store_explicit(&gos_module_unloads_known, walk->unloads, memory_order_release);
    }
    gos_lock_release(&module_lock);
    return is_newer;
}

/* What was looked up once is not looked up again each time something is loaded. */
static void make_paths_absolute(struct walk *walk)
{
    for (struct found *found = walk->first; found; found = found->next) {
        const struct gos_module *known;
        const char *path;

        if (found->module.path[0] == '/' || !strchr(found->module.path, '/'))
            continue;
        known = find(found->module.start);
        if (known && gos_module_is_same(known, &found->module))
            path = known->path;
        else
            path = gos_module_mapped_path(found->module.start, &walk->scratch);
        found->module.path = path ? path : found->module.path;
    }
}

/* Bring the table up to date; false when nothing was new. */
static bool refresh(void)
{
    struct walk walk = {.last = NULL};
    bool is_new = false;

    walk.last = &walk.first;
    gos_phdr_walk(collect, &walk);
    make_paths_absolute(&walk);
    if (walk.is_failed)
        gos_loss_count(GOS_LOSS_MEMORY);
    else if (walk.first)
        is_new = merge(&walk);
    gos_scratch_release(&walk.scratch);
    return is_new;
}

/* --- what others ask ------------------------------------------------------------------------ */

uint64_t gos_module_generation(void)
{
    return atomic_load_explicit(&known_generation, memory_order_acquire);
}

void gos_module_refresh(void)
{
    refresh();
}

bool gos_module_is_loaded(const struct gos_module *module)
{
    return atomic_load_explicit(&seen[module->index], memory_order_acquire) >=
           atomic_load_explicit(&known_generation, memory_order_acquire);
}

const struct gos_module *gos_module_of(uintptr_t address)
{
    const struct gos_module *module = find(address);

    return (module && gos_module_is_loaded(module)) || !refresh() ? module : find(address);
}

const struct gos_module *gos_module_at(uint32_t index)
{
    if (index >= atomic_load_explicit(&table_count, memory_order_acquire))
        return NULL;
    return atomic_load_explicit(&table[index], memory_order_acquire);
}

const struct gos_module *gos_module_search(bool (*visit)(const struct gos_module *, void *),
                                           void *arg)
{
    const struct gos_module *module;

    refresh();
    for (uint32_t i = 0; (module = gos_module_at(i)) != NULL; i++) {
        if (gos_module_is_loaded(module) && visit(module, arg))
            return module;
    }
    return NULL;
}

static bool has_prefix(const struct gos_module *module, void *prefix)
{
    return strncmp(module->name, prefix, strlen(prefix)) == 0;
}

const struct gos_module *gos_module_named(const char *prefix)
{
    return gos_module_search(has_prefix, (void *)(uintptr_t)prefix);
}

/* Another thread may have been in the middle of a change when this one forked. */
void gos_module_reset_after_fork(void)
{
    const struct gos_module *module;

    gos_lock_reset(&module_lock);
    atomic_store_explicit(&sequence, 0, memory_order_relaxed);
    atomic_store_explicit(&sorted_count, 0, memory_order_relaxed);
    for (uint32_t i = 0; (module = gos_module_at(i)) != NULL; i++)
        insert_sorted(atomic_load_explicit(&table[i], memory_order_relaxed));
}
