/*
 * The one call by which libraries go.  What is remembered by address, stacks
 * above all, would otherwise be taken for that of the next library that is
 * loaded at the same place; and an interpreter or a driver that is gone would be
 * called.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>

#include "../base/module.h"
#include "../base/thread.h"
#include "../cuda/entrypoint.h"
#include "../track/python_frames.h"
#include "behind.h"
#include "state.h"
#include "torch_word.h"

typedef int dlclose_function(void *);

static dlclose_function *real_dlclose(void)
{
    static _Atomic(void *) known;

    return (dlclose_function *)gos_behind_us(&known, "dlclose");
}

static int close_watched(dlclose_function *real, void *handle)
{
    gos_python_unload_begin();
    int result = real(handle);
    int saved = errno;

    gos_thread.depth++;
    gos_module_refresh();
    gos_entrypoint_check_driver();
    gos_python_unload_end();
    gos_thread.depth--;
    errno = saved;
    return result;
}

int dlclose(void *handle)
{
    dlclose_function *real = real_dlclose();

    if (!real)
        return -1;
    gos_torch_unload_begin();
    int result = gos_shim_active() ? close_watched(real, handle) : real(handle);
    gos_torch_unload_end();
    return result;
}
