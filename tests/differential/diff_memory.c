/* Memory of a context and of the host; and frees by the wrong function. */
#include <stdlib.h>
#include <string.h>

#include "diff_world.h"

static struct diff_memory *slot_of(const struct diff_step *step)
{
    return &world.memories[diff_slot(step->a, DIFF_MEMORIES)];
}

/* NULL, and a word in the log, where the slot is taken. */
static struct diff_memory *empty_slot(const struct diff_step *step)
{
    struct diff_memory *slot = slot_of(step);

    if (slot->family == DIFF_NOTHING)
        return slot;
    diff_say(" taken");
    return NULL;
}

static struct diff_memory *full_slot(const struct diff_step *step)
{
    struct diff_memory *slot = slot_of(step);

    if (slot->family != DIFF_NOTHING)
        return slot;
    diff_say(" empty");
    return NULL;
}

static struct diff_memory here(const struct diff_step *step, enum diff_family family,
                               uint64_t bytes)
{
    int context = world.current[step->thread];

    return (struct diff_memory){
        .family = family,
        .bytes = bytes,
        .context = context,
        .device =
            family == DIFF_HOST || context == DIFF_NO_CONTEXT ? -1 : world.contexts[context].device,
    };
}

static void alloc(const struct diff_step *step)
{
    struct diff_memory *slot = empty_slot(step);
    struct diff_memory made = here(step, DIFF_DEVICE, (uint64_t)step->b);

    if (slot != NULL)
        diff_made(cu.alloc(&made.address, (size_t)step->b), slot, made);
}

static void pitch(const struct diff_step *step)
{
    struct diff_memory *slot = empty_slot(step);
    struct diff_memory made = here(step, DIFF_DEVICE, 0);
    size_t row = 0;

    if (slot == NULL)
        return;
    CUresult result = cu.alloc_pitch(&made.address, &row, (size_t)step->b, (size_t)step->c, 4);
    made.bytes = row * (size_t)step->c;
    diff_say(" pitch %zu", row);
    diff_made(result, slot, made);
}

static void managed(const struct diff_step *step)
{
    struct diff_memory *slot = empty_slot(step);
    struct diff_memory made = here(step, DIFF_MANAGED, (uint64_t)step->b);

    if (slot != NULL)
        diff_made(cu.alloc_managed(&made.address, (size_t)step->b, CU_MEM_ATTACH_GLOBAL), slot,
                  made);
}

/* c: 0 cuMemAllocHost, else cuMemHostAlloc with a flag. */
static void host(const struct diff_step *step)
{
    struct diff_memory *slot = empty_slot(step);
    struct diff_memory made = here(step, DIFF_HOST, (uint64_t)step->b);
    void *address = NULL;

    if (slot == NULL)
        return;
    CUresult result = step->c == 0
                          ? cu.alloc_host(&address, (size_t)step->b)
                          : cu.host_alloc(&address, (size_t)step->b, CU_MEMHOSTALLOC_PORTABLE);
    made.address = (CUdeviceptr)(uintptr_t)address;
    diff_made(result, slot, made);
}

static void host_register(const struct diff_step *step)
{
    struct diff_memory *slot = empty_slot(step);
    struct diff_memory made = here(step, DIFF_REGISTERED, (uint64_t)step->b);
    void *own = slot != NULL ? aligned_alloc(4096, 1 << 20) : NULL;

    if (own == NULL)
        return;
    made.address = (CUdeviceptr)(uintptr_t)own;
    made.own = own;
    diff_made(cu.host_register(own, 1 << 20, 0), slot, made);
    if (slot->family == DIFF_NOTHING)
        free(own);
}

static void array(const struct diff_step *step)
{
    struct diff_memory *slot = empty_slot(step);
    CUDA_ARRAY3D_DESCRIPTOR descriptor = {.Width = (size_t)step->b,
                                          .Height = (size_t)step->c,
                                          .Format = CU_AD_FORMAT_FLOAT,
                                          .NumChannels = 2};
    struct diff_memory made = here(step, DIFF_ARRAY, (uint64_t)(step->b * step->c * 8));
    CUarray handle = NULL;

    if (slot == NULL)
        return;
    CUresult result = cu.array_create(&handle, &descriptor);
    made.address = (CUdeviceptr)(uintptr_t)handle;
    diff_made(result, slot, made);
}

static CUresult unregister(const struct diff_memory *memory)
{
    void *own = memory->own;
    CUresult result = cu.host_unregister(own);

    if (result == CUDA_SUCCESS)
        free(own);
    return result;
}

static void free_rightly(struct diff_memory *memory)
{
    CUdeviceptr address = memory->address;
    CUresult result;

    if (memory->family == DIFF_HOST)
        result = cu.free_host((void *)(uintptr_t)address);
    else if (memory->family == DIFF_REGISTERED)
        result = unregister(memory);
    else if (memory->family == DIFF_ARRAY)
        result = cu.array_destroy((CUarray)(uintptr_t)address);
    else
        result = cu.free(address);
    diff_gone(result, address);
}

static void free_one(const struct diff_step *step)
{
    struct diff_memory *memory = full_slot(step);

    if (memory != NULL)
        free_rightly(memory);
}

/* The second free comes before anybody can own the address again. */
static void free_twice(const struct diff_step *step)
{
    struct diff_memory *memory = full_slot(step);

    if (memory == NULL || memory->family == DIFF_ARRAY || memory->family == DIFF_REGISTERED)
        return;
    CUdeviceptr address = memory->address;
    bool is_host = memory->family == DIFF_HOST;
    free_rightly(memory);
    diff_result(is_host ? cu.free_host((void *)(uintptr_t)address) : cu.free(address));
}

/* By the function of another family, or from the middle. */
static void free_wrongly(const struct diff_step *step)
{
    struct diff_memory *memory = full_slot(step);

    if (memory == NULL || memory->family == DIFF_ARRAY)
        return;
    CUdeviceptr address = memory->address + (step->b == 1 ? 256 : 0);
    CUresult result = memory->family == DIFF_HOST || memory->family == DIFF_REGISTERED
                          ? cu.free(address)
                          : cu.free_host((void *)(uintptr_t)address);
    diff_gone(result, address);
}

static void free_nothing(const struct diff_step *step)
{
    (void)step;
    diff_result(cu.free(0));
    diff_result(cu.free(4096 + 512));
    diff_result(cu.free_host(NULL));
}

static void describe(const struct diff_step *step)
{
    const struct diff_memory *memory = full_slot(step);
    CUdeviceptr base = 0;
    size_t bytes = 0;
    unsigned type = 0;

    if (memory == NULL || memory->family == DIFF_ARRAY)
        return;
    CUdeviceptr asked = memory->address + (memory->bytes > 1 ? 1 : 0);
    diff_result(cu.address_range(&base, &bytes, asked));
    diff_say(" at %d bytes %zu", base == memory->address, bytes);
    diff_result(cu.pointer_attribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, asked));
    diff_say(" type %u", type);
}

/* Done at once: a write behind a gate could come after the free. */
static void fill(const struct diff_step *step)
{
    const struct diff_stream *stream = &world.streams[diff_slot(step->b, DIFF_STREAMS)];
    const struct diff_memory *memory = full_slot(step);
    bool fits = memory != NULL && (memory->family == DIFF_DEVICE || memory->family == DIFF_MANAGED);

    if (fits && memory->context == world.current[step->thread] && !world.anything_held &&
        !stream->in_capture)
        diff_result(cu.memset_async(memory->address, 7, memory->bytes > 512 ? 512 : memory->bytes,
                                    diff_stream_of(step->b)));
}

/* A primary context is current on the thread that cleans up. */
void diff_clean_memories(void)
{
    for (int i = 0; i < DIFF_MEMORIES; i++) {
        struct diff_memory *memory = &world.memories[i];
        if (memory->family == DIFF_NOTHING)
            continue;
        if (memory->context < DIFF_NO_CONTEXT)
            cu.context_set(world.contexts[memory->context].handle);
        free_rightly(memory);
        memory->family = DIFF_NOTHING;
    }
}

const struct diff_operation diff_memory_operations[] = {
    {"alloc", alloc},
    {"pitch", pitch},
    {"managed", managed},
    {"host", host},
    {"register", host_register},
    {"array", array},
    {"free", free_one},
    {"free_twice", free_twice},
    {"free_wrongly", free_wrongly},
    {"free_nothing", free_nothing},
    {"describe", describe},
    {"fill", fill},
    {NULL, NULL},
};
