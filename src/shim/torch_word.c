#include "torch_word.h"

#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "../base/elf_image.h"
#include "../base/hot.h"
#include "../base/loss.h"
#include "../base/phdr_walk.h"
#include "../base/readable.h"
#include "../base/text.h"
#include "../base/thread.h"
#include "../track/registry.h"
#include "place.h"
#include "story.h"
#include "state.h"

enum word {
#define TORCH_WORD(row, symbol, tells) WORD_##row,
#include "torch_word.def"
#undef TORCH_WORD
    WORD_COUNT
};

static const char *const names[WORD_COUNT] = {
#define TORCH_WORD(row, symbol, tells) [WORD_##row] = #symbol,
#include "torch_word.def"
#undef TORCH_WORD
};

/* Ours, in assembly. */
#define TORCH_WORD(row, symbol, tells) void symbol(void);
#include "torch_word.def"
#undef TORCH_WORD

static void (*const wrappers[WORD_COUNT])(void) = {
#define TORCH_WORD(row, symbol, tells) [WORD_##row] = symbol,
#include "torch_word.def"
#undef TORCH_WORD
};

/* --- the real function ------------------------------------------------------------------------ */

/*
 * Where calls from one return address, or one object, go.  The three words are
 * written without a lock: `check` fits only the two that were written with it,
 * so what two writers mixed up is no answer.
 */
struct remembered {
    _Atomic uint64_t check; /* key ^ real ^ stamp */
    _Atomic uint64_t real;
    _Atomic uint64_t stamp;
};

#define REMEMBERED 1024 /* torch has some ten places that call */
static struct remembered remembered[REMEMBERED];

/* Unloads that began and that ended; while one runs nothing is remembered, nor believed. */
static GOS_READ_MOSTLY _Atomic uint64_t unloads_begun = 1;
static GOS_READ_MOSTLY _Atomic uint64_t unloads_ended = 1;

/* What is known now bears this stamp; 0: nothing is. */
static inline uint64_t stamp_now(void)
{
    uint64_t ended = atomic_load_explicit(&unloads_ended, memory_order_acquire);
    uint64_t begun = atomic_load_explicit(&unloads_begun, memory_order_acquire);

    return begun <= ended ? begun : 0;
}

static inline uint64_t key_of(uint64_t where, enum word word)
{
    return where * WORD_COUNT + (uint64_t)word + 1;
}

static inline struct remembered *slot_of(uint64_t key)
{
    return &remembered[key * 0x9e3779b97f4a7c15u >> 54];
}
_Static_assert(REMEMBERED == 1 << (64 - 54), "the highest bits of a hash number all slots");

static inline void *recall(uint64_t key, uint64_t stamp)
{
    const struct remembered *slot = slot_of(key);
    uint64_t check = atomic_load_explicit(&slot->check, memory_order_relaxed);
    uint64_t real = atomic_load_explicit(&slot->real, memory_order_relaxed);
    uint64_t then = atomic_load_explicit(&slot->stamp, memory_order_relaxed);

    return then == stamp && (check ^ real ^ then) == key ? (void *)(uintptr_t)real : NULL;
}

static void remember(uint64_t key, void *real, uint64_t stamp)
{
    struct remembered *slot = slot_of(key);

    atomic_store_explicit(&slot->check, key ^ (uint64_t)(uintptr_t)real ^ stamp,
                          memory_order_relaxed);
    atomic_store_explicit(&slot->real, (uint64_t)(uintptr_t)real, memory_order_relaxed);
    atomic_store_explicit(&slot->stamp, stamp, memory_order_relaxed);
}

void gos_torch_unload_begin(void)
{
    atomic_fetch_add(&unloads_begun, 1);
}

void gos_torch_unload_end(void)
{
    atomic_fetch_add(&unloads_ended, 1);
}

/* The child has no other thread that could end what it began. */
void gos_torch_reset_after_fork(void)
{
    atomic_store(&unloads_ended, atomic_load(&unloads_begun));
}

/* One loaded object, as the loader lists it. */
struct object {
    const char *path;
    uintptr_t base;
    const ElfW(Dyn) * dynamic;
};

struct search {
    enum word word;
    uintptr_t caller;
    struct object callers; /* the object that the call comes from */
    int nearness;          /* of what was found; 0: nothing */
    uintptr_t found;
};

typedef void visit_object(struct search *search, const struct object *object);

/* An object's addresses are all above its base, and none of another's lies between. */
static void find_caller(struct search *search, const struct object *object)
{
    if (object->base <= search->caller && object->base >= search->callers.base)
        search->callers = *object;
}

static bool is_needed(const struct object *user, const char *library)
{
    struct gos_elf_image image;

    if (!gos_elf_image_make(user->base, user->dynamic, &image))
        return false;
    for (const ElfW(Dyn) *entry = user->dynamic; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_NEEDED &&
            strcmp(gos_elf_string(&image, entry->d_un.d_val), library) == 0)
            return true;
    return false;
}

static bool is_same_folder(const char *one, const char *other)
{
    size_t folder = (size_t)(gos_text_base_name(one) - one);

    return folder == (size_t)(gos_text_base_name(other) - other) && memcmp(one, other, folder) == 0;
}

/* Torch may be part of the caller, or of a library with a name of its own. */
static int nearness_of(const struct object *callers, const struct object *object)
{
    const char *name = gos_text_base_name(object->path);

    if (object->base == callers->base)
        return 16;
    return 1 + (is_needed(callers, name) ? 8 : 0) +
           (is_same_folder(callers->path, object->path) ? 4 : 0) +
           (strcmp(name, "libc10.so") == 0 ? 2 : 0);
}

static void find_nearest(struct search *search, const struct object *object)
{
    struct gos_elf_image image;
    uintptr_t address = gos_elf_image_make(object->base, object->dynamic, &image)
                            ? gos_elf_symbol(&image, names[search->word])
                            : 0;

    if (!address || address == (uintptr_t)wrappers[search->word])
        return;
    int nearness = nearness_of(&search->callers, object);
    if (nearness <= search->nearness)
        return;
    search->nearness = nearness;
    search->found = address;
}

struct walk {
    struct search *search;
    visit_object *visit;
};

static int visit_walked(struct dl_phdr_info *info, size_t info_bytes, void *arg)
{
    const struct walk *walk = arg;
    struct object object = {.path = info->dlpi_name, .base = info->dlpi_addr};

    (void)info_bytes;
    for (ElfW(Half) i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            object.dynamic = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    walk->visit(walk->search, &object);
    return 0;
}

/*
 * As the list stands; an object that a thread was about to unload when the process
 * forked may be on it still, though its memory is gone.
 */
static void visit_listed(struct search *search, visit_object *visit)
{
    for (const struct link_map *listed = _r_debug.r_map; listed; listed = listed->l_next) {
        bool is_there = gos_is_readable((uintptr_t)listed->l_ld);

        visit(search, &(struct object){.path = listed->l_name,
                                       .base = listed->l_addr,
                                       .dynamic = is_there ? listed->l_ld : NULL});
    }
}

/*
 * A forked child does not ask the loader, and a signal handler may have come upon
 * this thread in the middle of asking.
 */
static void visit_all(struct search *search, visit_object *visit)
{
    if (gos_thread.depth == 1 && !gos_phdr_is_stopped())
        gos_phdr_walk(visit_walked, &(struct walk){search, visit});
    else
        visit_listed(search, visit);
}

/* What a program without torch calls all the same. */
static void nothing(void)
{
}

static void *look_up(enum word word, const void *caller, uint64_t stamp)
{
    struct search search = {.word = word, .caller = (uintptr_t)caller, .callers = {.path = ""}};

    visit_all(&search, find_caller);
    void *real = recall(key_of(search.callers.base, word), stamp);
    if (real)
        return real;
    visit_all(&search, find_nearest);
    if (!search.found)
        gos_loss_count(GOS_LOSS_WORD);
    real = search.found ? (void *)search.found : (void *)nothing;
    if (stamp)
        remember(key_of(search.callers.base, word), real, stamp);
    return real;
}

static __attribute__((cold, noinline)) void *find_real(enum word word, const void *caller)
{
    int saved = errno;

    gos_shim_notice_fork();
    gos_thread.depth++;
    uint64_t stamp = stamp_now();
    void *real = look_up(word, caller, stamp);
    if (stamp)
        remember(key_of((uintptr_t)caller, word), real, stamp);
    gos_thread.depth--;
    errno = saved;
    return real;
}

static inline void *real_of(enum word word, const void *caller)
{
    void *real = recall(key_of((uintptr_t)caller, word), stamp_now());

    return __builtin_expect(real != NULL, 1) ? real : find_real(word, caller);
}

void *gos_torch_wrapper(const char *name)
{
    if (strncmp(name, "_ZN3c10", 7) != 0)
        return NULL;
    for (int word = 0; word < WORD_COUNT; word++)
        if (strcmp(name, names[word]) == 0)
            return (void *)wrappers[word];
    return NULL;
}

/* --- what is told ----------------------------------------------------------------------------- */

/* c10::Device: two signed bytes in a register, whose other bits mean nothing. */
#define C10_CUDA 1

static inline bool is_cuda(uint64_t device)
{
    return (uint8_t)device == C10_CUDA;
}

static inline int index_of(uint64_t device)
{
    return (int8_t)(uint8_t)(device >> 8);
}

/* Each device on a line of cache of its own: its threads write here. */
struct totals {
    _Alignas(64) _Atomic uint64_t allocated_bytes;
    _Atomic uint64_t reserved_bytes;
    _Atomic bool are_known;
};

static struct totals totals[GOS_DEVICE_MAX];
static GOS_READ_MOSTLY _Atomic bool can_come;

bool gos_word_can_come(void)
{
    return atomic_load_explicit(&can_come, memory_order_relaxed);
}

bool gos_torch_totals(int device, uint64_t *allocated_bytes, uint64_t *reserved_bytes)
{
    if (device < 0 || device >= GOS_DEVICE_MAX ||
        !atomic_load_explicit(&totals[device].are_known, memory_order_relaxed))
        return false;
    *allocated_bytes = atomic_load_explicit(&totals[device].allocated_bytes, memory_order_relaxed);
    *reserved_bytes = atomic_load_explicit(&totals[device].reserved_bytes, memory_order_relaxed);
    return true;
}

/* A refusal of this thread may be answered by it, from torch's cache, without a call of CUDA. */
static __attribute__((cold, noinline)) void on_block_amid_story(uint64_t bytes)
{
    int saved = errno;

    gos_thread.depth++;
    gos_story_block(bytes);
    gos_thread.depth--;
    errno = saved;
}

/* Every tensor comes through here: no lock, no call, nothing that an unlucky signal could break. */
static inline void on_block(uint64_t block, int64_t bytes, uint64_t allocated_bytes,
                            uint64_t reserved_bytes, int device)
{
    (void)block;
    if (device < 0 || device >= GOS_DEVICE_MAX)
        return;
    atomic_store_explicit(&totals[device].allocated_bytes, allocated_bytes, memory_order_relaxed);
    atomic_store_explicit(&totals[device].reserved_bytes, reserved_bytes, memory_order_relaxed);
    atomic_store_explicit(&totals[device].are_known, true, memory_order_relaxed);
    if (!gos_word_can_come())
        atomic_store_explicit(&can_come, true, memory_order_relaxed);
    if (__builtin_expect(gos_story_open != 0, 0) && bytes > 0 && gos_thread.depth == 0)
        on_block_amid_story((uint64_t)bytes);
}

/* An index below 0 is the device of the thread's context. */
static int ordinal_of(int index)
{
    uint32_t current;

    if (index >= 0)
        return index;
    current = gos_place_of_context()->device;
    return current < GOS_DEVICE_MAX ? (int)current : -1;
}

static __attribute__((cold, noinline)) void
on_out_of_memory(uint64_t asked_bytes, uint64_t allocated_bytes, uint64_t reserved_bytes, int index)
{
    int saved = errno;

    atomic_store_explicit(&can_come, true, memory_order_relaxed);
    gos_thread.depth++;
    gos_failure_word(&(struct gos_word){.asked_bytes = asked_bytes,
                                        .allocated_bytes = allocated_bytes,
                                        .reserved_bytes = reserved_bytes,
                                        .device = ordinal_of(index)});
    gos_thread.depth--;
    errno = saved;
}

/* What a flush of ours makes torch free is told with depth raised, and counts like the rest. */
static inline void block(uint64_t address, uint64_t bytes, uint64_t allocated, uint64_t reserved,
                         uint64_t device)
{
    if (is_cuda(device) && gos_shim_active())
        on_block(address, (int64_t)bytes, allocated, reserved, index_of(device));
}

static inline void out_of_memory(uint64_t asked, uint64_t allocated, uint64_t reserved,
                                 uint64_t device, uint64_t no_argument)
{
    (void)no_argument;
    if (is_cuda(device) && gos_shim_active() && gos_thread.depth == 0)
        on_out_of_memory(asked, allocated, reserved, index_of(device));
}

/* The assembly calls these with torch's arguments, and enters what they return. */
#define TORCH_WORD(row, symbol, tells)                                                             \
    void *gos_torch_choose_##row(uint64_t first, uint64_t second, uint64_t third, uint64_t fourth, \
                                 uint64_t fifth, const void *caller);                              \
    GOS_HOT void *gos_torch_choose_##row(uint64_t first, uint64_t second, uint64_t third,          \
                                         uint64_t fourth, uint64_t fifth, const void *caller)      \
    {                                                                                              \
        tells(first, second, third, fourth, fifth);                                                \
        return real_of(WORD_##row, caller);                                                        \
    }
#include "torch_word.def"
