#include "allocator_stack.h"

#include <stddef.h>
#include <string.h>

#include "../base/module.h"
#include "../track/site.h"
#include "../track/unwinder.h"

static bool begins(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool is_of_torch(const struct gos_module *module)
{
    return begins(module->name, "libtorch") || begins(module->name, "libc10") ||
           strstr(module->path, "/torch/");
}

static void note_module(struct gos_allocator_stack *stack, const struct gos_module *module)
{
    if (!module || !module->path)
        return;
    stack->has_torch = stack->has_torch || begins(module->name, "libc10_cuda.so");
    stack->has_cupy = stack->has_cupy || strstr(module->path, "cupy/cuda/memory");
    stack->has_torch_frame = stack->has_torch_frame || is_of_torch(module);
    stack->has_cupy_frame = stack->has_cupy_frame || strstr(module->path, "/cupy");
    stack->has_jax = stack->has_jax || begins(module->name, "xla_cuda_plugin") ||
                     begins(module->name, "pjrt_c_api_gpu") ||
                     begins(module->name, "xla_extension");
}

/* CuPy's allocator is compiled, but may also stand on the Python stack. */
static void note_python(struct gos_allocator_stack *stack, uint32_t site_id)
{
    const struct gos_site *site = gos_site_get(site_id);

    for (uint32_t i = 0; site && i < site->python_count; i++)
        if (strstr(site->python[i].file, "cupy/cuda/memory"))
            stack->has_cupy = true;
}

/*
 * Walked anew instead of taken from the site: that one may be cut short by
 * GPUOOMSHIM_STACK_DEPTH, or not exist.
 */
struct gos_allocator_stack gos_allocator_stack(uint32_t site)
{
    struct gos_allocator_stack stack = {.is_known = false};
    uintptr_t addresses[GOS_UNWINDER_MAX];
    size_t count = gos_unwinder_walk(addresses, GOS_UNWINDER_MAX);

    stack.is_known = count > 0;
    for (size_t i = 0; i < count; i++)
        note_module(&stack, gos_module_of(addresses[i]));
    note_python(&stack, site);
    return stack;
}
