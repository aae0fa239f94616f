/*
 * Loaded ELF objects.  Walks dl_iterate_phdr (which takes only a short lock)
 * and reads the dynamic symbols itself, because dlsym, dladdr and dlopen take
 * the loader's big lock: a constructor that waits for an allocating thread
 * would hang.
 *
 * The table of modules is permanent: entries are never removed, so that an
 * address keeps its library's name after dlclose.
 */
#ifndef GOS_BASE_MODULE_H
#define GOS_BASE_MODULE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GOS_MODULE_MAX 8192 /* over the process' life: an object loaded elsewhere counts again */

struct gos_module {
    uintptr_t base;   /* load bias: address = base + virtual address */
    uintptr_t start;  /* lowest mapped address */
    uintptr_t end;    /* one past the highest */
    const char *path; /* absolute where it is known; the executable's is /proc/self/exe's target */
    const char *name; /* last component of path */
    const void *dynamic; /* ElfW(Dyn) array, or NULL */
    uint8_t build_id[20];
    uint8_t build_id_bytes; /* 0: none */
    uint32_t index;         /* position in the permanent table */
};

/*
 * The module that holds the address, or NULL.  The pointer is permanent.  Takes
 * no lock and does not ask the loader unless the address is unknown, or that of
 * a module that is known to be unloaded: another may lie there now.
 */
const struct gos_module *gos_module_of(uintptr_t address);

/*
 * How many objects had been unloaded when the loader's list was last looked at:
 * while it stays the same, so does what an address stands for.
 */
extern _Atomic uint64_t gos_module_unloads_known;
static inline uint64_t gos_module_unloads(void)
{
    return atomic_load_explicit(&gos_module_unloads_known, memory_order_acquire);
}

/* How the loader's list was when it was last looked at; changes with each object that comes. */
uint64_t gos_module_generation(void);

/* Look at it now.  Hook context: yes, but takes the loader's short lock. */
void gos_module_refresh(void);

/* Was it loaded when the list was last looked at? */
bool gos_module_is_loaded(const struct gos_module *module);

/* The module with that index, or NULL. */
const struct gos_module *gos_module_at(uint32_t index);

/*
 * Visit the modules that are loaded now, in load order, until visit returns
 * true; returns that module or NULL.  The table's lock is not held in visit.
 */
const struct gos_module *gos_module_search(bool (*visit)(const struct gos_module *, void *),
                                           void *arg);

/*
 * First loaded module whose name starts with prefix ("libcuda.so"), or NULL.
 * Like gos_module_search a walk of the loader's list: not for every call of a
 * hook.  Both work before constructors ran and inside dlsym.
 */
const struct gos_module *gos_module_named(const char *prefix);

/*
 * Address of an exported function or object of this module alone, in its
 * default version; 0 if there is none, if it is an IFUNC, or if the module is
 * no longer loaded.
 */
uintptr_t gos_module_symbol(const struct gos_module *module, const char *symbol);

/*
 * The exported function whose extent holds the address, as a permanent string;
 * NULL if there is none (a static function, for one), if memory is short or the
 * module is no longer loaded.  offset, from the function's start, may be NULL.
 * The first question about a module sorts its functions: milliseconds for a
 * large library.
 */
const char *gos_module_nearest(const struct gos_module *module, uintptr_t address,
                               uint64_t *offset);

/* Is the other, by its DT_SONAME or else its file's name, a DT_NEEDED entry of the module? */
bool gos_module_needs(const struct gos_module *module, const struct gos_module *other);

void gos_module_reset_after_fork(void);

#endif
