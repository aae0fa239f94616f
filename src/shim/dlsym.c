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

#include "../base/module.h"
#include "../cuda/entrypoint.h"
#include "behind.h"
#include "nvml_hook.h"
#include "state.h"
#include "wrapper.h"

/* Both in registers on the supported machines; the assembly knows the order. */
struct gos_lookup {
    void *result;
    void *target;
};

typedef void *(*dlsym_function)(void *, const char *);
typedef void *(*dlvsym_function)(void *, const char *, const char *);

struct gos_lookup gos_dlsym_choose(void *handle, const char *name);
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

static bool is_drivers(void *handle, const void *pointer)
{
    const struct gos_module *module = gos_module_of((uintptr_t)pointer);

    return (module && gos_module_is_driver(module)) || is_driver_handle(handle);
}

/*
 * We export the names, so RTLD_DEFAULT finds them even where no CUDA library
 * is loaded and the host, without us, would have been told "no such symbol".
 */
static bool exists_behind_us(const char *name)
{
    dlsym_function real = (dlsym_function)gos_behind_us(&next_dlsym, "dlsym");
    void *next = real ? real(RTLD_NEXT, name) : NULL;

    return next != NULL || gos_module_named("libcuda.so") || gos_module_named("libcudart");
}

/* The program's own handle, dlopen(NULL), finds our exports as RTLD_DEFAULT does. */
static bool is_only_ours(int row, const char *name, const void *found)
{
    return found && found == gos_wrapper(row) && !exists_behind_us(name);
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

struct gos_lookup gos_dlsym_choose(void *handle, const char *name)
{
    dlsym_function real = (dlsym_function)gos_behind_us(&next_dlsym, "dlsym");
    int row = row_to_answer(handle, name);

    if (row < 0 && is_for_nvml(handle, name))
        return (struct gos_lookup){gos_nvml_hook_substitute(name, real(handle, name)), NULL};
    if (row < 0 || (handle == RTLD_DEFAULT && exists_behind_us(name)))
        return (struct gos_lookup){NULL, (void *)real};
    if (handle == RTLD_DEFAULT)
        return (struct gos_lookup){NULL, NULL};

    void *found = real(handle, name);
    if (is_only_ours(row, name, found))
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
