#include "torch_word.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "../base/hot.h"
#include "../base/libc_symbol.h"
#include "../base/loss.h"
#include "../base/module.h"
#include "../base/phdr_walk.h"
#include "../base/thread.h"
#include "../track/registry.h"
#include "place.h"
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
 * Where calls from one return address, or one module, go.  The three words are
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

    return then == stamp && stamp && (check ^ real ^ then) == key ? (void *)(uintptr_t)real : NULL;
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

struct wanted {
    const struct gos_module *caller; /* NULL: unknown */
    const struct gos_module *self;
    const char *symbol;
    uintptr_t address;
};

static bool has_symbol(const struct gos_module *module, struct wanted *wanted)
{
    wanted->address = gos_module_symbol(module, wanted->symbol);
    return wanted->address != 0;
}

static bool is_callers_own(const struct gos_module *module, void *arg)
{
    struct wanted *wanted = arg;

    return module == wanted->caller && has_symbol(module, wanted);
}

static bool is_beside_caller(const struct gos_module *module, void *arg)
{
    struct wanted *wanted = arg;
    size_t folder = (size_t)(module->name - module->path);

    return wanted->caller && folder > 0 && module != wanted->self &&
           (size_t)(wanted->caller->name - wanted->caller->path) == folder &&
           memcmp(wanted->caller->path, module->path, folder) == 0 && has_symbol(module, wanted);
}

static bool is_libc10(const struct gos_module *module, void *arg)
{
    return strcmp(module->name, "libc10.so") == 0 && has_symbol(module, arg);
}

/* torch as part of another library. */
static bool is_any_other(const struct gos_module *module, void *arg)
{
    struct wanted *wanted = arg;

    return module != wanted->self && has_symbol(module, wanted);
}

static void *search(const struct gos_module *caller, enum word word)
{
    static bool (*const nearest_first[])(const struct gos_module *, void *) = {
        is_callers_own, is_beside_caller, is_libc10, is_any_other};
    struct wanted wanted = {
        .caller = caller, .self = gos_module_of((uintptr_t)names), .symbol = names[word]};

    for (size_t i = 0; i < sizeof nearest_first / sizeof *nearest_first && !wanted.address; i++)
        gos_module_search(nearest_first[i], &wanted);
    return (void *)wanted.address;
}

/* A program without torch that calls the name all the same. */
static void nothing(void)
{
}

static void *found_or_nothing(void *found)
{
    if (found)
        return found;
    gos_loss_count(GOS_LOSS_WORD);
    return (void *)nothing;
}

static void *look_up(enum word word, const void *caller, uint64_t stamp)
{
    gos_module_refresh();
    const struct gos_module *module = gos_module_of((uintptr_t)caller);
    uint64_t key = key_of(module ? module->index : GOS_MODULE_MAX, word);
    void *real = recall(key, stamp);

    if (!real && !gos_phdr_is_stopped()) {
        real = found_or_nothing(search(module, word));
        if (stamp)
            remember(key, real, stamp);
    }
    return real;
}

/*
 * A forked child does not ask the loader, and a signal handler may have come
 * upon this thread in the middle of asking: there its list is read as it is.
 */
static __attribute__((cold, noinline)) void *find_real(enum word word, const void *caller)
{
    int saved = errno;

    gos_shim_notice_fork();
    uint64_t stamp = stamp_now();
    void *real = gos_thread.depth++ == 0 ? look_up(word, caller, stamp) : NULL;
    gos_thread.depth--;
    if (!real)
        real = found_or_nothing((void *)gos_listed_symbol("libc10.so", names[word]));
    if (stamp)
        remember(key_of((uintptr_t)caller, word), real, stamp);
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

/* Every tensor comes through here: no lock, no call, nothing that an unlucky signal could break. */
static inline void on_block(uint64_t block, int64_t bytes, uint64_t allocated_bytes,
                            uint64_t reserved_bytes, int device)
{
    (void)block;
    (void)bytes;
    if (device < 0 || device >= GOS_DEVICE_MAX)
        return;
    atomic_store_explicit(&totals[device].allocated_bytes, allocated_bytes, memory_order_relaxed);
    atomic_store_explicit(&totals[device].reserved_bytes, reserved_bytes, memory_order_relaxed);
    atomic_store_explicit(&totals[device].are_known, true, memory_order_relaxed);
    if (!gos_word_can_come())
        atomic_store_explicit(&can_come, true, memory_order_relaxed);
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
