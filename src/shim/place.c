#include "place.h"

#include "../base/hot.h"
#include "../cuda/driver.h"
#include "../track/pool.h"
#include "../track/registry.h"

#define THREAD_LOCAL __thread __attribute__((tls_model("initial-exec")))

static THREAD_LOCAL struct {
    uint64_t generation;
    struct gos_place place;
} last_context;

/* On one line of cache, since every call on a stream reads all of it. */
static THREAD_LOCAL struct {
    _Alignas(64) bool is_valid;
    uint32_t trusted_count;
    uint64_t generation;
    uint64_t stream;
    uint64_t pool;
    uint64_t current; /* context at the time */
    struct gos_place place;
} last_stream;

/* How often a thread makes sure that there is still only one context. */
#define TRUST_LIMIT 256

static uint64_t current_context(void)
{
    CUcontext context = NULL;

    if (!gos_driver.cuCtxGetCurrent || gos_driver.cuCtxGetCurrent(&context) != CUDA_SUCCESS)
        return 0;
    return (uint64_t)(uintptr_t)context;
}

static uint32_t device_of_current(void)
{
    CUdevice device = -1;

    if (!gos_driver.cuCtxGetDevice || gos_driver.cuCtxGetDevice(&device) != CUDA_SUCCESS ||
        device < 0 || device >= GOS_DEVICE_MAX)
        return GOS_DEVICE_HOST;
    return (uint32_t)device;
}

/* A context that is not current is made so for the question, and taken off again. */
static uint32_t device_of(uint64_t context)
{
    uint32_t device = GOS_DEVICE_HOST;
    CUcontext popped;

    if (gos_context_device(context, &device))
        return device;
    if (!gos_driver.cuCtxPushCurrent || !gos_driver.cuCtxPopCurrent ||
        gos_driver.cuCtxPushCurrent((CUcontext)(uintptr_t)context) != CUDA_SUCCESS)
        return GOS_DEVICE_HOST;
    device = device_of_current();
    gos_driver.cuCtxPopCurrent(&popped);
    return device;
}

__attribute__((noinline)) const struct gos_place *gos_place_of_context(void)
{
    uint64_t context = current_context();
    uint64_t generation = gos_handle_generation();

    if (context && last_context.place.context == context && last_context.generation == generation)
        return &last_context.place;

    struct gos_place place = {
        .context = context, .device = GOS_DEVICE_HOST, .home = GOS_HOME_UNKNOWN};
    if (context) {
        place.device = device_of_current();
        place.home = gos_home_intern(&(struct gos_home){.context = context});
        gos_context_seen(context, place.device);
    }
    last_context.place = place;
    last_context.generation = generation;
    return &last_context.place;
}

/*
 * The current context, after a call on a default stream that succeeded: such a
 * call needs a context, so as long as there is only one, it is that.  All
 * functions that make one are hooked; that none was missed is looked at now
 * and then.
 */
static inline __attribute__((always_inline)) uint64_t context_in_use(void)
{
    uint64_t only = gos_context_only();

    if (__builtin_expect(only && ++last_stream.trusted_count % TRUST_LIMIT != 0, 1))
        return only;
    return gos_place_of_context()->context;
}

/* The legacy and per-thread default streams have these fixed handles (cuda.h). */
static bool is_default(uint64_t stream)
{
    return stream <= 2;
}

/* The stream's own context; the current one for a default stream or where it cannot be asked. */
static uint64_t context_of_stream(uint64_t stream, const struct gos_place *current)
{
    CUcontext context = NULL;

    if (is_default(stream) || !gos_driver.cuStreamGetCtx ||
        gos_driver.cuStreamGetCtx((CUstream)(uintptr_t)stream, &context) != CUDA_SUCCESS)
        return current->context;
    return (uint64_t)(uintptr_t)context;
}

static uint64_t current_pool(uint32_t device)
{
    CUmemoryPool pool = NULL;
    CUmemoryPool standard = NULL;
    struct gos_pool_info info;

    if (device >= GOS_DEVICE_MAX || !gos_driver.cuDeviceGetMemPool ||
        gos_driver.cuDeviceGetMemPool(&pool, (CUdevice)device) != CUDA_SUCCESS)
        return 0;
    if (!gos_pool_find((uint64_t)(uintptr_t)pool, &info)) {
        if (gos_driver.cuDeviceGetDefaultMemPool)
            gos_driver.cuDeviceGetDefaultMemPool(&standard, (CUdevice)device);
        gos_pool_seen(&(struct gos_pool_info){
            .pool = (uint64_t)(uintptr_t)pool, .device = device, .is_default = pool == standard});
    }
    return (uint64_t)(uintptr_t)pool;
}

/* A created stream stays where it is; a default one is another in each context. */
static inline __attribute__((always_inline)) bool is_last_stream(uint64_t stream)
{
    return last_stream.is_valid && last_stream.stream == stream &&
           last_stream.generation == gos_handle_generation() &&
           (!is_default(stream) || last_stream.current == context_in_use());
}

/* A pool says where its memory is, unless it is managed and prefers no device. */
static bool tells_device(uint64_t pool, struct gos_pool_info *info)
{
    return pool && gos_pool_find(pool, info) &&
           !(info->is_managed && info->device >= GOS_DEVICE_MAX);
}

static struct gos_place place_of_stream(uint64_t stream, uint64_t pool,
                                        const struct gos_place *current)
{
    struct gos_place place = *current;
    struct gos_pool_info info = {.pool = pool};

    place.context = context_of_stream(stream, current);
    if (tells_device(pool, &info))
        place.device = info.device;
    else if (place.context != current->context)
        place.device = device_of(place.context);
    if (!pool)
        info.pool = current_pool(place.device);
    place.is_managed = info.is_managed;
    place.home = gos_home_intern(&(struct gos_home){.pool = info.pool});
    return place;
}

/* Without a context streams cannot be asked: then the answer is true for this once. */
static __attribute__((cold, noinline)) void ask_about(uint64_t stream, uint64_t pool)
{
    uint64_t generation = gos_handle_generation();
    const struct gos_place *current = gos_place_of_context();

    last_stream.place = place_of_stream(stream, pool, current);
    last_stream.stream = stream;
    last_stream.pool = pool;
    last_stream.current = current->context;
    last_stream.generation = generation;
    last_stream.is_valid = current->context && last_stream.place.home;
}

GOS_HOT const struct gos_place *gos_place_of_stream(uint64_t stream, uint64_t pool)
{
    if (last_stream.pool != pool || !is_last_stream(stream))
        ask_about(stream, pool);
    return &last_stream.place;
}

GOS_HOT uint64_t gos_place_context_of_stream(uint64_t stream)
{
    if (is_default(stream))
        return context_in_use();
    if (!is_last_stream(stream))
        ask_about(stream, 0);
    return last_stream.place.context;
}
