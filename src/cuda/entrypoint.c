#include "entrypoint.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "../base/module.h"
#include "../base/residence.h"
#include "driver.h"

static const char *const names[GOS_ENTRYPOINT_COUNT] = {
#define DRIVER(symbol, base, version, suffix, role) [GOS_EP_##symbol] = #symbol,
#define RUNTIME(symbol, role) [GOS_EP_##symbol] = #symbol,
#include "entrypoints.def"
};

/* The headers' prototype of every hook is the type of its slot. */
#define DRIVER(symbol, base, version, suffix, role)                                                \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&symbol), gos_pfn_##symbol),            \
                   #symbol " and its PFN type differ");
#include "entrypoints.def"

_Atomic(void *) gos_real_slots[GOS_DRIVER_COUNT];
static _Atomic bool all_bound;

/*
 * Pointer → row, open addressing.  Filled by any thread: an entry goes from
 * NULL to its final pointer once, and the row beside it is derived from the
 * slots, so there is nothing to tear.
 */
#define POINTER_MAP_SIZE 1024
_Static_assert(POINTER_MAP_SIZE > 2 * GOS_DRIVER_COUNT, "the pointer map must stay half empty");
static _Atomic(void *) map_pointers[POINTER_MAP_SIZE];
static _Atomic int map_rows[POINTER_MAP_SIZE];

const char *gos_entrypoint_name(enum gos_entrypoint entry)
{
    return (unsigned)entry < GOS_ENTRYPOINT_COUNT ? names[entry] : "?";
}

size_t gos_entrypoint_base_length(const char *symbol)
{
    return strcspn(symbol, "_");
}

int gos_entrypoint_find(const char *symbol)
{
    if (symbol[0] != 'c' || symbol[1] != 'u')
        return -1;
    for (int row = 0; row < GOS_ENTRYPOINT_COUNT; row++)
        if (strcmp(names[row], symbol) == 0)
            return row;
    return -1;
}

static size_t map_start(const void *pointer)
{
    return (size_t)(((uint64_t)(uintptr_t)pointer * 0x9e3779b97f4a7c15u) >> 48) % POINTER_MAP_SIZE;
}

static void map_insert(void *pointer, int row)
{
    for (size_t i = map_start(pointer), n = 0; n < POINTER_MAP_SIZE;
         i = (i + 1) % POINTER_MAP_SIZE, n++) {
        void *seen = NULL;
        if (atomic_compare_exchange_strong(&map_pointers[i], &seen, pointer)) {
            atomic_store(&map_rows[i], row + 1);
            return;
        }
        if (seen == pointer)
            return;
    }
}

/*
 * The writer is one instruction away from the row, but it may be a thread that
 * a forked child does not have.
 */
static int row_by_slot(const void *pointer)
{
    for (int row = 0; row < GOS_DRIVER_COUNT; row++)
        if (atomic_load(&gos_real_slots[row]) == pointer)
            return row;
    return -1;
}

int gos_entrypoint_of_pointer(const void *pointer)
{
    for (size_t i = map_start(pointer), n = 0; n < POINTER_MAP_SIZE;
         i = (i + 1) % POINTER_MAP_SIZE, n++) {
        const void *seen = atomic_load(&map_pointers[i]);
        if (!seen)
            return -1;
        if (seen == pointer) {
            int row = atomic_load(&map_rows[i]);
            return row ? row - 1 : row_by_slot(pointer);
        }
    }
    return -1;
}

/*
 * Programs that only look whether there is a driver open it and close it
 * again; the next one to open it may get it at another place.  So what the
 * slots point into is looked at whenever a name is looked up.
 */
static _Atomic(void *) residence;
static _Atomic uint64_t residence_stamp;

static void settle(void *address)
{
    atomic_store(&residence_stamp, gos_residence_stamp(address));
    atomic_store(&residence, address);
}

/* Readers that come in between find an empty slot and bind it themselves. */
static void forget_if_unloaded(void)
{
    void *address = atomic_load_explicit(&residence, memory_order_acquire);

    if (!address || gos_residence_stamp(address) == atomic_load(&residence_stamp))
        return;
    atomic_store(&residence, NULL);
    atomic_store(&all_bound, false);
    for (int row = 0; row < GOS_DRIVER_COUNT; row++)
        atomic_store(&gos_real_slots[row], NULL);
    for (size_t i = 0; i < POINTER_MAP_SIZE; i++) {
        atomic_store(&map_pointers[i], NULL);
        atomic_store(&map_rows[i], 0);
    }
    gos_driver_replaced();
}

void gos_entrypoint_check_driver(void)
{
    void *address = atomic_load_explicit(&residence, memory_order_acquire);
    const struct gos_module *module = address ? gos_module_of((uintptr_t)address) : NULL;

    if (module && !gos_module_is_loaded(module))
        forget_if_unloaded();
}

static void offer(enum gos_entrypoint entry, void *real)
{
    void *none = NULL;

    atomic_compare_exchange_strong(&gos_real_slots[entry], &none, real);
    map_insert(real, (int)entry);
}

void gos_entrypoint_offer(enum gos_entrypoint entry, void *real)
{
    if ((unsigned)entry >= GOS_DRIVER_COUNT)
        return;
    forget_if_unloaded();
    if (!atomic_load(&residence))
        settle(real);
    offer(entry, real);
}

bool gos_module_is_driver(const struct gos_module *module)
{
    return strncmp(module->name, "libcuda.so", 10) == 0;
}

/* Asked at each look-up, so the loader's list is walked only where that is not the usual one. */
bool gos_entrypoint_is_served(const struct gos_module *driver)
{
    uintptr_t address = (uintptr_t)atomic_load_explicit(&residence, memory_order_acquire);

    return (address >= driver->start && address < driver->end) ||
           gos_module_named("libcuda.so") == driver;
}

/* Is name one of the words of LD_PRELOAD (whole path or last component)? */
static bool is_preloaded(const struct gos_module *module)
{
    const char *list = NULL;

    for (char **e = environ; e && *e && !list; e++)
        if (strncmp(*e, "LD_PRELOAD=", 11) == 0)
            list = *e + 11;
    while (list && *list) {
        size_t length = strcspn(list, ": ");
        const char *word = list + length;
        while (word > list && word[-1] != '/')
            word--;
        size_t bytes = (size_t)(list + length - word);
        if (bytes > 0 && strncmp(word, module->name, bytes) == 0 && module->name[bytes] == '\0')
            return true;
        list += length + (list[length] != '\0');
    }
    return false;
}

struct chain {
    const struct gos_module *self;
    bool past_self;
    const struct gos_module *behind[8]; /* preload libraries after us, in order */
    size_t behind_count;
    const struct gos_module *driver;
};

static bool collect(const struct gos_module *module, void *arg)
{
    struct chain *chain = arg;

    if (module == chain->self)
        chain->past_self = true;
    else if (gos_module_is_driver(module))
        chain->driver = chain->driver ? chain->driver : module;
    else if (chain->past_self && chain->behind_count < 8 && is_preloaded(module))
        chain->behind[chain->behind_count++] = module;
    return false;
}

static void *next_in_chain(const struct chain *chain, const char *symbol)
{
    for (size_t i = 0; i < chain->behind_count; i++) {
        uintptr_t address = gos_module_symbol(chain->behind[i], symbol);
        if (address)
            return (void *)address;
    }
    return (void *)gos_module_symbol(chain->driver, symbol);
}

/*
 * The driver's own pointer goes into the map as well when another preload
 * library answers for the name: the resolver hands out the driver's.
 */
static void bind_row(const struct chain *chain, int row)
{
    void *next = next_in_chain(chain, names[row]);
    void *own = (void *)gos_module_symbol(chain->driver, names[row]);

    if (next)
        offer((enum gos_entrypoint)row, next);
    if (own)
        map_insert(own, row);
}

bool gos_entrypoint_bind(void)
{
    struct chain chain = {.self = gos_module_of((uintptr_t)&gos_entrypoint_bind)};

    forget_if_unloaded();
    if (atomic_load_explicit(&all_bound, memory_order_acquire))
        return true;
    gos_module_search(collect, &chain);
    if (!chain.driver)
        return false;
    if (!atomic_load(&residence))
        settle((void *)chain.driver->start);
    for (int row = 0; row < GOS_DRIVER_COUNT; row++)
        bind_row(&chain, row);
    atomic_store_explicit(&all_bound, true, memory_order_release);
    return true;
}

static CUresult not_found(void)
{
    return CUDA_ERROR_NOT_FOUND;
}

void *gos_entrypoint_real_slow(enum gos_entrypoint entry)
{
    gos_entrypoint_bind();
    void *real = atomic_load_explicit(&gos_real_slots[entry], memory_order_acquire);
    return real ? real : (void *)not_found;
}
