/* Contexts: made, current, and gone with all that was in them. */
#include <string.h>

#include "diff_world.h"

static void create(const struct diff_step *step)
{
    int slot = diff_slot(step->a, DIFF_CONTEXTS);
    CUcontext popped = NULL;

    if (world.contexts[slot].handle != NULL)
        return;
    CUresult result = cu.context_create(&world.contexts[slot].handle, 0, diff_device(step->b));
    diff_result(result);
    if (result != CUDA_SUCCESS) {
        world.contexts[slot].handle = NULL;
        return;
    }
    world.contexts[slot].device = diff_device(step->b);
    diff_result(cu.context_pop(&popped));
    diff_say(" own %d", popped == world.contexts[slot].handle);
}

static bool is_current_somewhere(int slot)
{
    for (int i = 0; i < DIFF_THREADS; i++)
        if (world.current[i] == slot)
            return true;
    return false;
}

static void destroy_one(int slot)
{
    CUresult result = cu.context_destroy(world.contexts[slot].handle);

    diff_result(result);
    if (result != CUDA_SUCCESS)
        return;
    diff_context_gone(slot);
    diff_streams_of_context_gone(slot);
    memset(&world.contexts[slot], 0, sizeof(world.contexts[slot]));
}

static void destroy(const struct diff_step *step)
{
    int slot = diff_slot(step->a, DIFF_CONTEXTS);

    if (slot < 2 || world.contexts[slot].handle == NULL || is_current_somewhere(slot) ||
        world.anything_held || world.capturing >= 0)
        return;
    destroy_one(slot);
}

/* The slot behind the last one is "no context". */
static void set(const struct diff_step *step)
{
    int slot = diff_slot(step->a, DIFF_CONTEXTS + 1);
    CUcontext context = slot == DIFF_NO_CONTEXT ? NULL : world.contexts[slot].handle;

    if (slot != DIFF_NO_CONTEXT && context == NULL)
        return;
    CUresult result = cu.context_set(context);
    diff_result(result);
    if (result == CUDA_SUCCESS)
        world.current[step->thread] = slot;
}

static void synchronize(const struct diff_step *step)
{
    (void)step;
    if (!world.anything_held)
        diff_result(cu.context_synchronize());
}

void diff_clean_contexts(void)
{
    for (int i = 2; i < DIFF_CONTEXTS; i++)
        if (world.contexts[i].handle != NULL)
            destroy_one(i);
}

const struct diff_operation diff_context_operations[] = {
    {"context_create", create},
    {"context_destroy", destroy},
    {"context_set", set},
    {"context_sync", synchronize},
    {NULL, NULL},
};
