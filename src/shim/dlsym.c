/*
 * What dlsym and dlvsym answer.
 *
 * Rules of this file, all of which a host has broken once:
 *   - nothing here allocates, opens a library, or waits: an allocator that is
 *     starting may be the caller;
 *   - a name that is not in entrypoints.def leaves by a jump, whatever it
 *     begins with (under a limit, but for the two of nvml_hook.h);
 *   - the real look-up comes first, and its answer is replaced only when it is
 *     the driver's function;
 *   - RTLD_NEXT and RTLD_DEFAULT depend on who asks, so they leave by a jump.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "../base/libc_symbol.h"
#include "../base/module.h"
#include "../cuda/entrypoint.h"
#include "behind.h"
#include "nvml_hook.h"
#include "state.h"
#include "torch_word.h"
#include "wrapper.h"

/* Both in registers on the supported machines; the assembly knows the order. */
struct gos_lookup {
    void *result;
    void *target;
};

typedef void *dlsym_function(void *, const char *);
typedef void *(*dlvsym_function)(void *, const char *, const char *);

struct gos_lookup gos_dlsym_choose(void *handle, const char *name, const void *caller);
struct gos_lookup gos_dlvsym_choose(void *handle, const char *name, const char *version);

static _Atomic(void *) next_dlsym;
static _Atomic(void *) next_dlvsym;

/* A handle from dlopen is glibc's link_map; its name tells which library was asked. */
static bool is_driver_handle(void *handle)
{
    const char *path = ((const struct link_map *)handle)->l_name;
    const char *name = path ? strrchr(path, '/') : NULL;

    name = name ? name + 1 : path;
    return name && strncmp(name, "libcuda.so", 10) == 0;
}

/* A pointer into no known module is of another namespace (dlmopen), with a driver of its own. */
static bool is_drivers(void *handle, const void *pointer)
{
    const struct gos_module *module = gos_module_of((uintptr_t)pointer);

    if (module && gos_module_is_driver(module))
        return gos_entrypoint_is_served(module);
    return module && is_driver_handle(handle);
}

/* libc's, without a word to another preload library, which might draw its own conclusions. */
static void *look_up_silently(void *scope, const char *name)
{
    static _Atomic(void *) known;
    void *libcs = atomic_load_explicit(&known, memory_order_acquire);

    if (!libcs) {
        libcs = (void *)gos_libc_symbol("dlsym");
        atomic_store_explicit(&known, libcs, memory_order_release);
    }
    return libcs ? ((dlsym_function *)libcs)(scope, name) : NULL;
}

/*
 * We export the names, so the global scope has them even where the host, without
 * us, would have been told "no such symbol".
 */
static bool is_in_global_scope(const void *ours, const char *name)
{
    void *first = look_up_silently(RTLD_DEFAULT, name);

    return (first == ours ? look_up_silently(RTLD_NEXT, name) : first) != NULL;
}

static bool is_any_loaded(const char *const *libraries)
{
    while (*libraries && !gos_module_named(*libraries))
        libraries++;
    return *libraries != NULL;
}

/*
 * A library that was opened by itself sees what it is linked with, too.  Nobody
 * tells what that is, but it is nothing of CUDA's where no CUDA is loaded.
 */
static bool exists_for(const void *caller, const void *ours, const char *name,
                       const char *const *libraries)
{
    return is_in_global_scope(ours, name) ||
           (gos_module_of((uintptr_t)caller) != gos_module_at(0) && is_any_loaded(libraries));
}

static const char *const of_cuda[] = {"libcuda.so", "libcudart", NULL};
static const char *const of_torch[] = {"libc10.so", NULL};

/* Would the loader answer with our function of torch's where there is none without us? */
static bool is_invented(void *handle, const char *name, const void *caller, dlsym_function *real)
{
    const void *ours = name && handle != RTLD_NEXT ? gos_torch_wrapper(name) : NULL;

    if (!ours)
        return false;
    if (handle == RTLD_DEFAULT)
        return !exists_for(caller, ours, name, of_torch);
    return real(handle, name) == ours && !is_in_global_scope(ours, name);
}

static void *answer(int row, void *handle, void *found)
{
    if (!found || row >= GOS_DRIVER_COUNT || found == gos_wrapper(row) ||
        !is_drivers(handle, found))
        return found;
    gos_entrypoint_offer((enum gos_entrypoint)row, found);
    return gos_wrapper(row);
}

/* Row when we have to answer ourselves, -1 when the caller's own look-up is the answer. */
static int row_to_answer(void *handle, const char *name)
{
    int row = name && handle != RTLD_NEXT ? gos_entrypoint_find(name) : -1;

    return row >= 0 && gos_shim_enabled() ? row : -1;
}

static bool is_for_nvml(void *handle, const char *name)
{
    return name && name[0] == 'n' && handle != RTLD_NEXT && handle != RTLD_DEFAULT &&
           strncmp(name, "nvml", 4) == 0 && gos_shim_enabled() && gos_nvml_hook_wants(name);
}

struct gos_lookup gos_dlsym_choose(void *handle, const char *name, const void *caller)
{
    dlsym_function *real = (dlsym_function *)gos_behind_us(&next_dlsym, "dlsym");
    int row = row_to_answer(handle, name);

    if (row < 0 && is_for_nvml(handle, name))
        return (struct gos_lookup){gos_nvml_hook_substitute(name, real(handle, name)), NULL};
    if (row < 0 && is_invented(handle, name, caller, real))
        return (struct gos_lookup){NULL, NULL};
    if (row < 0 || (handle == RTLD_DEFAULT && exists_for(caller, gos_wrapper(row), name, of_cuda)))
        return (struct gos_lookup){NULL, (void *)real};
    if (handle == RTLD_DEFAULT)
        return (struct gos_lookup){NULL, NULL};

    void *found = real(handle, name);
    /* The program's own handle, dlopen(NULL), has our exports as the global scope has. */
    if (found && found == gos_wrapper(row) && !is_in_global_scope(found, name))
        return (struct gos_lookup){NULL, NULL};
    return (struct gos_lookup){answer(row, handle, found), NULL};
}

struct gos_lookup gos_dlvsym_choose(void *handle, const char *name, const char *version)
{
    dlvsym_function real = (dlvsym_function)gos_behind_us(&next_dlvsym, "dlvsym");
    int row = row_to_answer(handle, name);

    if (row < 0 || handle == RTLD_DEFAULT)
        return (struct gos_lookup){NULL, (void *)real};
    return (struct gos_lookup){answer(row, handle, real(handle, name, version)), NULL};
}
