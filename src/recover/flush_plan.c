#include "flush_plan.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../base/module.h"
#include "../base/options.h"
#include "../track/site.h"
#include "../track/unwinder.h"
#include "flush_callback.h"
#include "python_api.h"

/* --- the failing stack -------------------------------------------------------------------------
 */

struct stack {
    bool is_known;
    bool has_torch; /* allocators, not the frameworks as a whole */
    bool has_cupy;
    bool has_torch_frame; /* anywhere in it */
    bool has_cupy_frame;
};

static void note_module(struct stack *stack, const struct gos_module *module)
{
    if (!module || !module->path)
        return;
    if (strncmp(module->name, "libc10_cuda.so", strlen("libc10_cuda.so")) == 0)
        stack->has_torch = true;
    if (strstr(module->path, "cupy/cuda/memory"))
        stack->has_cupy = true;
    const char *library = gos_library_name(module->path);
    stack->has_torch_frame |= strcmp(library, "torch") == 0;
    stack->has_cupy_frame |= strcmp(library, "cupy") == 0;
}

/*
 * Walked anew instead of taken from the site: that one may be cut short by
 * GPUOOMSHIM_STACK_DEPTH, or not exist.
 */
static struct stack look_at_stack(void)
{
    struct stack stack = {.is_known = false};
    uintptr_t addresses[GOS_UNWINDER_MAX];
    size_t count = gos_unwinder_walk(addresses, GOS_UNWINDER_MAX);

    stack.is_known = count > 0;
    for (size_t i = 0; i < count; i++)
        note_module(&stack, gos_module_of(addresses[i]));
    return stack;
}

/* CuPy's allocator is compiled, but may also stand on the Python stack. */
static void note_python(struct stack *stack, uint32_t site_id)
{
    const struct gos_site *site = gos_site_get(site_id);

    for (uint32_t i = 0; site && i < site->python_count; i++)
        if (strstr(site->python[i].file, "cupy/cuda/memory"))
            stack->has_cupy = true;
}

bool gos_flush_caller_is_in_allocator(void)
{
    struct stack stack = look_at_stack();

    return stack.has_torch || stack.has_cupy;
}

/* --- who holds something -----------------------------------------------------------------------
 */

static uint64_t held_by(const struct gos_diagnosis *diagnosis, const char *name)
{
    for (size_t i = 0; i < diagnosis->holder_count; i++)
        if (strcmp(diagnosis->holders[i].name, name) == 0)
            return diagnosis->holders[i].live_bytes;
    return 0;
}

/* What nobody is named for, without native stacks, may be anybody's. */
static uint64_t may_be_held_by(const struct gos_diagnosis *diagnosis, const char *name)
{
    return held_by(diagnosis, name) + held_by(diagnosis, "");
}

static uint64_t askable_bytes(const struct gos_diagnosis *diagnosis,
                              const struct gos_flush_plan *plan)
{
    uint64_t bytes = held_by(diagnosis, "");

    if (plan->torch)
        bytes += held_by(diagnosis, "torch");
    if (plan->cupy)
        bytes += held_by(diagnosis, "cupy");
    return bytes;
}

/* Emptying a cache costs its owner time, so not where all of it would be too little. */
static bool is_enough(const struct gos_diagnosis *diagnosis, const struct gos_flush_plan *plan)
{
    const struct gos_verdict *verdict = &diagnosis->verdict;

    return plan->named || plan->callbacks ||
           verdict->short_bytes <=
               askable_bytes(diagnosis, plan) + verdict->idle_bytes + verdict->pending_bytes;
}

/* --- the plan ----------------------------------------------------------------------------------
 */

/* Why none of the frameworks is asked; NULL when one is, or when no reason is better than none. */
static const char *plan_frameworks(const struct gos_diagnosis *diagnosis,
                                   struct gos_flush_plan *plan)
{
    bool torch = may_be_held_by(diagnosis, "torch") > 0;
    bool cupy = may_be_held_by(diagnosis, "cupy") > 0;

    if (!torch && !cupy)
        return NULL;
    struct stack stack = look_at_stack();
    note_python(&stack, diagnosis->evidence->request.site);
    if (!stack.is_known)
        return "the failing stack could not be read, so nobody knows whose locks it holds";
    plan->torch = torch && !stack.has_torch;
    plan->cupy = cupy && !stack.has_cupy;
    if (!plan->torch && !plan->cupy)
        return "the failing call is inside the framework's own allocator";
    return NULL;
}

static bool is_enough_pinned(const struct gos_diagnosis *diagnosis)
{
    const struct gos_evidence *evidence = diagnosis->evidence;
    uint64_t held_bytes = may_be_held_by(diagnosis, "torch") + may_be_held_by(diagnosis, "cupy");

    return evidence->request.bytes <= evidence->host.memory_available_bytes + held_bytes;
}

/* Python frames do not matter here: what locks is below them. */
static const char *plan_pinned(const struct gos_diagnosis *diagnosis, struct gos_flush_plan *plan)
{
    bool torch = gos_python_api() && may_be_held_by(diagnosis, "torch") > 0;
    bool cupy = gos_python_api() && may_be_held_by(diagnosis, "cupy") > 0;

    if (!torch && !cupy)
        return "nobody who could be asked keeps pinned memory";
    struct stack stack = look_at_stack();
    if (!stack.is_known)
        return "the failing stack could not be read, so nobody knows whose locks it holds";
    plan->pinned = true;
    plan->torch = torch && !stack.has_torch_frame;
    plan->cupy = cupy && !stack.has_cupy_frame;
    if (!plan->torch && !plan->cupy)
        return "the failing call is the framework's own";
    return is_enough_pinned(diagnosis) ? NULL : "all that could be asked for would be too little";
}

const char *gos_flush_plan_make(const struct gos_diagnosis *diagnosis, struct gos_flush_plan *plan)
{
    const char *why_not = NULL;

    if (diagnosis->device < 0) {
        *plan = (struct gos_flush_plan){.pinned = false};
        return plan_pinned(diagnosis, plan);
    }

    *plan = (struct gos_flush_plan){.callbacks = gos_flush_callback_count() > 0};
    if (gos_python_api()) {
        plan->named = gos_options.flush != NULL;
        why_not = plan_frameworks(diagnosis, plan);
    }
    if (!plan->torch && !plan->cupy && !plan->named && !plan->callbacks)
        return why_not ? why_not : "nobody who could be asked holds memory of this device";
    return is_enough(diagnosis, plan) ? NULL : "all that could be asked for would be too little";
}
