#include "python_api.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/lock.h"
#include "../base/memory.h"
#include "../base/module.h"
#include "../track/python_frames.h"

static _Atomic(const struct gos_python_api *) found;
static struct gos_lock publishing = GOS_LOCK_INIT(GOS_RANK_FLUSH);

/* A process may load a libpython that nobody uses: only an initialised one counts. */
static bool holds_interpreter(const struct gos_module *module, void *unused)
{
    int (*is_initialized)(void);

    (void)unused;
    if (!gos_module_symbol(module, "PyGILState_Ensure"))
        return false;
    is_initialized = (int (*)(void))gos_module_symbol(module, "Py_IsInitialized");
    return is_initialized && is_initialized();
}

/* Nothing depends on these two. */
static void fill_interpreter(struct gos_python_api *api, const struct gos_module *module)
{
    uintptr_t current = gos_module_symbol(module, "PyInterpreterState_Get");

    if (!current)
        current = gos_module_symbol(module, "_PyInterpreterState_Get"); /* 3.8 */
    api->current_interpreter = (void *(*)(void))current;
    api->interpreter_dict =
        (void *(*)(void *))gos_module_symbol(module, "PyInterpreterState_GetDict");
}

static bool fill(struct gos_python_api *api, const struct gos_module *module)
{
    api->module = module;
    uintptr_t finalizing = gos_module_symbol(module, "Py_IsFinalizing");
    uintptr_t current = gos_module_symbol(module, "PyThreadState_GetUnchecked");

    if (!finalizing)
        finalizing = gos_module_symbol(module, "_Py_IsFinalizing");
    if (!current)
        current = gos_module_symbol(module, "_PyThreadState_UncheckedGet");
    api->is_finalizing = (int (*)(void))finalizing;
    api->current_thread_state = (void *(*)(void))current;
    fill_interpreter(api, module);
    bool complete = finalizing && current, *all;
    api->sees_exceptions = true;
#define FILL(name, result, arguments)                                                              \
    api->name = (result(*) arguments)gos_module_symbol(module, #name);                             \
    *all = *all && api->name;
    all = &complete;
    GOS_PYTHON_CALLS(FILL)
    all = &api->sees_exceptions;
    GOS_PYTHON_EXCEPTION_CALLS(FILL)
#undef FILL
    return complete;
}

/* Asked of `track` first, which remembers that there is none. */
static bool may_be_there(void)
{
    return gos_python_find() || gos_python_unsupported();
}

const struct gos_python_api *gos_python_api_found(void)
{
    return atomic_load_explicit(&found, memory_order_acquire);
}

/* NULL: there is none, or its library was unloaded. */
static const struct gos_python_api *loaded(void)
{
    const struct gos_python_api *api = gos_python_api_found();

    return api && gos_module_is_loaded(api->module) ? api : NULL;
}

/* In a place of its own: another thread may still be reading that of one that was unloaded. */
static void publish(const struct gos_python_api *api)
{
    struct gos_python_api *kept = gos_arena_alloc(sizeof(*kept));

    if (!kept)
        return;
    *kept = *api;
    gos_lock_acquire(&publishing);
    if (!loaded())
        atomic_store_explicit(&found, kept, memory_order_release);
    gos_lock_release(&publishing);
}

/* Several threads may search at once: none may wait for another, or go on as if there was none. */
static const struct gos_python_api *search(void)
{
    struct gos_python_api api;
    const struct gos_module *module = gos_module_search(holds_interpreter, NULL);

    if (module && fill(&api, module))
        publish(&api);
    return loaded();
}

const struct gos_python_api *gos_python_api(void)
{
    const struct gos_python_api *api = loaded();

    if (!api && may_be_there())
        api = search();
    return api && api->Py_IsInitialized() && !api->is_finalizing() ? api : NULL;
}

void gos_python_api_reset_after_fork(void)
{
    gos_lock_reset(&publishing);
    atomic_store(&found, NULL); /* it was in memory that the child has forgotten */
}
