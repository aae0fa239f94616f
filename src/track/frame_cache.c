#include "frame_cache.h"

#include <stdbool.h>
#include <string.h>

#include "../base/module.h"
#include "python_frames.h"

static size_t slot_of(uint64_t key)
{
    return key * UINT64_C(0x9e3779b97f4a7c15) >> 48 & (GOS_FRAME_CACHE_ENTRIES - 1);
}

/* --- native ---------------------------------------------------------------------------------- */

/* A return address may be one past its function's end, so the call itself is looked up. */
static void resolve_address(uintptr_t address, struct gos_native_frame *frame)
{
    const struct gos_module *module = gos_module_of(address - 1);
    frame->module = module ? module->index : UINT32_MAX;
    frame->offset = module ? address - module->base : address;
    frame->address = address;
}

void gos_frames_resolve_native(struct gos_frame_cache *cache, const struct gos_stack *stack,
                               struct gos_native_frame *frames)
{
    memset(frames, 0, stack->native_count * sizeof *frames);
    for (uint32_t i = 0; i < stack->native_count; i++) {
        uintptr_t address = stack->native[i];
        struct gos_native_frame *known = cache ? &cache->native[slot_of(address)] : &frames[i];
        if (known->address != address)
            resolve_address(address, known);
        if (known != &frames[i])
            memcpy(&frames[i], known, sizeof *known);
    }
}

/* --- Python ---------------------------------------------------------------------------------- */

static bool same_ref(const struct gos_python_ref *a, const struct gos_python_ref *b)
{
    return a->code == b->code && a->offset == b->offset && a->guard == b->guard;
}

static bool decode(struct gos_frame_cache *cache, const struct gos_python_ref *ref,
                   struct gos_python_frame *frame)
{
    if (!ref->code) {
        frame->file = GOS_PYTHON_CUT;
        frame->function = "";
        return true;
    }
    if (!cache)
        return gos_python_decode(ref, frame);
    size_t slot = slot_of((uint64_t)ref->code ^ (uint64_t)ref->offset << 40);
    struct gos_python_cache_entry *entry = &cache->python[slot];
    if (same_ref(&entry->ref, ref)) {
        memcpy(frame, &entry->frame, sizeof *frame);
        return true;
    }
    if (!gos_python_decode(ref, frame))
        return false;
    entry->ref = *ref;
    memcpy(&entry->frame, frame, sizeof *frame);
    return true;
}

uint32_t gos_frames_resolve_python(struct gos_frame_cache *cache, const struct gos_stack *stack,
                                   struct gos_python_frame *frames)
{
    uint32_t count = 0;
    memset(frames, 0, stack->python_count * sizeof *frames);
    for (uint32_t i = 0; i < stack->python_count; i++)
        count += decode(cache, &stack->python[i], &frames[count]);
    return count;
}
