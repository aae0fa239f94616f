#include "flush_plan.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../base/options.h"
#include "../diagnose/framework.h"
#include "../diagnose/saturate.h"
#include "../observe/allocator_stack.h"
#include "../observe/python_api.h"
#include "flush_callback.h"

bool gos_flush_caller_is_in_allocator(void)
{
    struct gos_allocator_stack stack = gos_allocator_stack(0);

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

static const struct gos_framework_evidence *word_of(const struct gos_diagnosis *diagnosis,
                                                    const char *name)
{
    return diagnosis->device >= 0
               ? gos_framework_find(diagnosis->evidence, name, (uint32_t)diagnosis->device)
               : NULL;
}

/* All that it does not use, by its own word; else the most that it may not use. */
static uint64_t most_unused_by(const struct gos_diagnosis *diagnosis, const char *name)
{
    const struct gos_framework_evidence *framework = word_of(diagnosis, name);

    return framework ? gos_framework_idle_bytes(framework)
                     : gos_framework_opaque_bytes(diagnosis->evidence, name, diagnosis->device,
                                                  held_by(diagnosis, name));
}

/* What it says it has, though no stack shows that it asked for it. */
static uint64_t claimed_by(const struct gos_diagnosis *diagnosis, const char *name)
{
    const struct gos_framework_evidence *framework = word_of(diagnosis, name);

    return framework ? gos_beyond(framework->reserved_bytes, held_by(diagnosis, name)) : 0;
}

/* May be anybody's. */
static uint64_t unclaimed_bytes(const struct gos_diagnosis *diagnosis)
{
    return gos_beyond(diagnosis->unseen_bytes,
                      gos_plus(claimed_by(diagnosis, "torch"), claimed_by(diagnosis, "cupy")));
}

static uint64_t may_be_held_by(const struct gos_diagnosis *diagnosis, const char *name)
{
    return held_by(diagnosis, name) + claimed_by(diagnosis, name) + unclaimed_bytes(diagnosis);
}

static uint64_t askable_bytes(const struct gos_diagnosis *diagnosis,
                              const struct gos_flush_plan *plan)
{
    uint64_t bytes = unclaimed_bytes(diagnosis);

    if (plan->torch)
        bytes += most_unused_by(diagnosis, "torch");
    if (plan->cupy)
        bytes += most_unused_by(diagnosis, "cupy");
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
    struct gos_allocator_stack stack = gos_allocator_stack(diagnosis->evidence->request.site);
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
    struct gos_allocator_stack stack = gos_allocator_stack(0);
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
