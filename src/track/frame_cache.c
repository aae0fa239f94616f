#include "frame_cache.h"

#include <string.h>

#include "../base/module.h"
#include "frame_table.h"
#include "python_frames.h"

static size_t set_of(uint64_t key)
{
    return key * UINT64_C(0x9e3779b97f4a7c15) >> 48 & (GOS_FRAME_CACHE_SETS - 1);
}

/* --- native ---------------------------------------------------------------------------------- */

/* A return address may be one past its function's end, so the call itself is looked up. */
static uint32_t resolve_address(uintptr_t address)
{
    const struct gos_module *module = gos_module_of(address - 1);
    union gos_frame frame = {.words = {0}};
    frame.native.module = module ? module->index : UINT32_MAX;
    frame.native.offset = module ? address - module->base : address;
    frame.native.address = address;
    return gos_frame_table_number(&frame);
}

static __attribute__((noinline)) uint32_t resolve_anew(struct gos_native_cache_entry *set,
                                                       uintptr_t address)
{
    uint32_t number = resolve_address(address);
    if (set && number) {
        set[1] = set[0];
        set[0] = (struct gos_native_cache_entry){address, number};
    }
    return number;
}

static uint32_t number_of(struct gos_frame_cache *cache, uintptr_t address)
{
    struct gos_native_cache_entry *set = cache ? cache->native[set_of(address)] : NULL;
    for (size_t way = 0; set && way < GOS_FRAME_CACHE_WAYS; way++)
        if (set[way].address == address && set[way].number)
            return set[way].number;
    return resolve_anew(set, address);
}

static bool resolve_native(struct gos_frame_cache *cache, const struct gos_stack *stack,
                           struct gos_frame_numbers *frames)
{
    frames->native_count = stack->native_count;
    for (uint32_t i = 0; i < stack->native_count; i++)
        if (!(frames->numbers[i] = number_of(cache, stack->native[i])))
            return false;
    return true;
}

/* --- Python ---------------------------------------------------------------------------------- */

static bool same_ref(const struct gos_python_ref *a, const struct gos_python_ref *b)
{
    return a->code == b->code && a->offset == b->offset && a->guard == b->guard;
}

static bool decode(const struct gos_python_ref *ref, struct gos_python_frame *frame)
{
    if (ref->code)
        return gos_python_decode(ref, frame);
    frame->file = GOS_PYTHON_CUT;
    frame->function = "";
    return true;
}

/* False when memory ran out; number 0: it cannot be decoded. */
static __attribute__((noinline)) bool
decode_anew(struct gos_python_cache_entry *set, const struct gos_python_ref *ref, uint32_t *number)
{
    union gos_frame frame = {.words = {0}};
    *number = 0;
    if (!decode(ref, &frame.python))
        return true;
    *number = gos_frame_table_number(&frame);
    if (set && *number) {
        set[1] = set[0];
        set[0] = (struct gos_python_cache_entry){*ref, *number};
    }
    return *number != 0;
}

static bool number_of_ref(struct gos_frame_cache *cache, const struct gos_python_ref *ref,
                          uint32_t *number)
{
    uint64_t key = (uint64_t)ref->code ^ (uint64_t)ref->offset << 40;
    struct gos_python_cache_entry *set = cache ? cache->python[set_of(key)] : NULL;
    for (size_t way = 0; set && way < GOS_FRAME_CACHE_WAYS; way++) {
        if (set[way].number && same_ref(&set[way].ref, ref)) {
            *number = set[way].number;
            return true;
        }
    }
    return decode_anew(set, ref, number);
}

static bool resolve_python(struct gos_frame_cache *cache, const struct gos_stack *stack,
                           struct gos_frame_numbers *frames)
{
    uint32_t *numbers = frames->numbers + frames->native_count;
    uint32_t count = 0;
    for (uint32_t i = 0; i < stack->python_count; i++) {
        if (!number_of_ref(cache, &stack->python[i], &numbers[count]))
            return false;
        count += numbers[count] != 0;
    }
    frames->python_count = count;
    return true;
}

bool gos_frames_resolve(struct gos_frame_cache *cache, const struct gos_stack *stack,
                        struct gos_frame_numbers *frames)
{
    return resolve_native(cache, stack, frames) && resolve_python(cache, stack, frames);
}
