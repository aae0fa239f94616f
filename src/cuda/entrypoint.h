/*
 * The real functions behind our hooks.
 *
 * Every row of entrypoints.def has a slot that holds the function our hook
 * forwards to: libcuda's own, or the same name in a preload library that comes
 * after us in LD_PRELOAD.  Slots are bound without the loader's lock (module.h
 * reads the symbol tables), any number of times, from any thread, always to
 * the same value.
 *
 * Runtime rows have no slot: which libcudart is meant depends on the caller.
 *
 * Hook context: everything here.
 */
#ifndef GOS_CUDA_ENTRYPOINT_H
#define GOS_CUDA_ENTRYPOINT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_types.h"

enum gos_entrypoint {
#define DRIVER(symbol, base, version, suffix, role) GOS_EP_##symbol,
#include "entrypoints.def"
    GOS_DRIVER_COUNT,
    GOS_RUNTIME_BEFORE_FIRST = GOS_DRIVER_COUNT - 1,
#define RUNTIME(symbol, role) GOS_EP_##symbol,
#include "entrypoints.def"
    GOS_ENTRYPOINT_COUNT
};

#define DRIVER(symbol, base, version, suffix, role)                                                \
    typedef PFN_##base##_v##version##suffix gos_pfn_##symbol;
#include "entrypoints.def"

/* The symbol as exported. */
const char *gos_entrypoint_name(enum gos_entrypoint entry);

/* Length without the endings that tell ABIs and streams apart: of "cuMemAlloc" in "cuMemAlloc_v2".
 */
size_t gos_entrypoint_base_length(const char *symbol);

/* The row with that symbol, or -1. */
int gos_entrypoint_find(const char *symbol);

extern _Atomic(void *) gos_real_slots[GOS_DRIVER_COUNT];

/* Bind every row that can be found; cheap once all are bound.  False without a driver. */
bool gos_entrypoint_bind(void);

/* The slot's function; when none can be found, one that returns CUDA_ERROR_NOT_FOUND. */
void *gos_entrypoint_real_slow(enum gos_entrypoint entry);

static inline void *gos_entrypoint_real(enum gos_entrypoint entry)
{
    void *real = atomic_load_explicit(&gos_real_slots[entry], memory_order_acquire);
    return __builtin_expect(real != NULL, 1) ? real : gos_entrypoint_real_slow(entry);
}

/* The typed real function of a row: GOS_REAL(cuMemFree_v2)(pointer). */
#define GOS_REAL(symbol) ((gos_pfn_##symbol)gos_entrypoint_real(GOS_EP_##symbol))

/*
 * Which row a pointer is the real function of, or -1.  Two names of one
 * function (same address) give the first row; their ABI is the same.
 */
int gos_entrypoint_of_pointer(const void *pointer);

/* The modules are as they are now; if the driver is not among them, it is not called again. */
void gos_entrypoint_check_driver(void);

/* Remember what the host's own look-up of this row found; the first one stays. */
void gos_entrypoint_offer(enum gos_entrypoint entry, void *real);

/* Does this module count as the driver? */
struct gos_module;
bool gos_module_is_driver(const struct gos_module *module);

/*
 * Is it the one that the slots are for?  Of several in one process (a wrapper
 * that bears the name and opens the real one by its path) that is the first:
 * what another one answers must stay its own, for handles of one mean nothing
 * to the other.
 */
bool gos_entrypoint_is_served(const struct gos_module *driver);

#endif
