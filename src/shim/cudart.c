#include "cudart.h"

#include <stdatomic.h>
#include <string.h>

#include "../base/module.h"
#include "../base/residence.h"
#include "../base/thread.h"
#include "state.h"

/*
 * A process may hold several libcudart (torchvision brings its own; CUDA 12
 * and 13 wheels mix), and pointers of one mean nothing to the other.  Which
 * one a caller reaches is decided by its DT_NEEDED entries, so the answer is
 * kept per calling module and row, as long as what it points into is loaded:
 * a plugin's libcudart goes with it and may come back somewhere else.
 */
#define CACHE_SIZE 1024
static struct {
    _Atomic uint32_t version; /* odd while it is written */
    _Atomic uint64_t key;     /* never 0 */
    _Atomic(void *) real;
    _Atomic uint64_t stamp;
} cache[CACHE_SIZE];

static uint64_t key_of(const struct gos_module *caller, enum gos_entrypoint entry)
{
    return ((uint64_t)(caller ? caller->index : 0xfffff) << 16 | (uint64_t)entry) + 1;
}

static size_t slot_of(uint64_t key)
{
    return (size_t)((key * 0x9e3779b97f4a7c15u) >> 48) % CACHE_SIZE;
}

static void *recall(uint64_t key)
{
    size_t slot = slot_of(key);
    uint32_t version = atomic_load_explicit(&cache[slot].version, memory_order_acquire);
    uint64_t kept = atomic_load_explicit(&cache[slot].key, memory_order_acquire);
    void *real = atomic_load_explicit(&cache[slot].real, memory_order_acquire);
    uint64_t stamp = atomic_load_explicit(&cache[slot].stamp, memory_order_acquire);
    uint32_t after = atomic_load_explicit(&cache[slot].version, memory_order_relaxed);

    if (kept != key || version % 2 || after != version)
        return NULL;
    return stamp && gos_residence_stamp(real) == stamp ? real : NULL;
}

static void remember(uint64_t key, void *real)
{
    size_t slot = slot_of(key);
    uint32_t version = atomic_load(&cache[slot].version);

    if (version % 2 || !atomic_compare_exchange_strong(&cache[slot].version, &version, version + 1))
        return;
    atomic_store(&cache[slot].key, key);
    atomic_store(&cache[slot].real, real);
    atomic_store(&cache[slot].stamp, gos_residence_stamp(real));
    atomic_store(&cache[slot].version, version + 2);
}

struct wanted {
    const struct gos_module *self;
    const struct gos_module *caller;
    const char *symbol;
    uintptr_t address;
};

static bool is_cudart(const struct gos_module *module)
{
    return strncmp(module->name, "libcudart", 9) == 0;
}

static bool is_needed_by_caller(const struct gos_module *module, void *arg)
{
    struct wanted *wanted = arg;

    if (is_cudart(module) && wanted->caller && gos_module_needs(wanted->caller, module))
        wanted->address = gos_module_symbol(module, wanted->symbol);
    return wanted->address != 0;
}

static bool is_any_cudart(const struct gos_module *module, void *arg)
{
    struct wanted *wanted = arg;

    if (is_cudart(module))
        wanted->address = gos_module_symbol(module, wanted->symbol);
    return wanted->address != 0;
}

/* A program that linked cudart statically and still exports its names. */
static bool is_any_other(const struct gos_module *module, void *arg)
{
    struct wanted *wanted = arg;

    if (module != wanted->self)
        wanted->address = gos_module_symbol(module, wanted->symbol);
    return wanted->address != 0;
}

static void *search(const struct gos_module *caller, const char *symbol)
{
    struct wanted wanted = {
        .self = gos_module_of((uintptr_t)&gos_api_enter), .caller = caller, .symbol = symbol};

    gos_module_search(is_needed_by_caller, &wanted);
    if (!wanted.address && caller && caller != wanted.self)
        wanted.address = gos_module_symbol(caller, symbol);
    if (!wanted.address)
        gos_module_search(is_any_cudart, &wanted);
    if (!wanted.address)
        gos_module_search(is_any_other, &wanted);
    return (void *)wanted.address;
}

/* What a host without any libcudart gets; it could not have been linked. */
static cudaError_t no_cudart(void)
{
    return cudaErrorSharedObjectSymbolNotFound;
}

static void *real_of(enum gos_entrypoint entry, const void *caller_address)
{
    const struct gos_module *caller = gos_module_of((uintptr_t)caller_address);
    uint64_t key = key_of(caller, entry);
    void *real = recall(key);

    if (real)
        return real;
    real = search(caller, gos_entrypoint_name(entry));
    if (!real)
        return (void *)no_cudart;
    remember(key, real);
    return real;
}

struct gos_api_mark gos_api_enter(enum gos_entrypoint entry, const void *caller)
{
    gos_shim_notice_fork();
    struct gos_api_mark mark = {gos_thread.api, gos_thread.api_caller, real_of(entry, caller)};

    if (!gos_thread.api) {
        gos_thread.api = gos_entrypoint_name(entry);
        gos_thread.api_caller = caller;
    }
    return mark;
}

void gos_api_leave(const struct gos_api_mark *mark)
{
    gos_thread.api = mark->outer_api;
    gos_thread.api_caller = mark->outer_caller;
}
