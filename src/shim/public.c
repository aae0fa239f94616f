/* The functions of include/gpuoomshim.h. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "../../include/gpuoomshim.h"
#include "../base/thread.h"
#include "../recover/flush_callback.h"
#include "../track/registry.h"
#include "../track/tag.h"
#include "story.h"
#include "failure.h"
#include "state.h"

#define EXPORT __attribute__((visibility("default")))

/* "" and what ends in '/' would make hidden files called ".txt" and ".json". */
static bool names_files(const char *prefix)
{
    size_t length = strlen(prefix);

    return length > 0 && prefix[length - 1] != '/';
}

EXPORT int gpuoomshim_snapshot(const char *prefix)
{
    int saved = errno;

    if (!gos_shim_active())
        return -ENODEV;
    if (prefix && !names_files(prefix))
        return -EINVAL;
    gos_thread.depth++;
    int result = gos_failure_snapshot(prefix);
    gos_thread.depth--;
    errno = saved;
    return result;
}

static const enum gos_kind device_kinds[] = {GOS_KIND_DEVICE, GOS_KIND_POOL, GOS_KIND_PHYSICAL,
                                             GOS_KIND_ARRAY, GOS_KIND_MANAGED};

static struct gos_total total_of(int device)
{
    struct gos_total sum = {0, 0};

    if (device == -1)
        return gos_registry_total(GOS_DEVICE_HOST, GOS_KIND_HOST);
    if (device < 0 || device >= GOS_DEVICE_MAX)
        return sum;
    for (size_t i = 0; i < sizeof device_kinds / sizeof device_kinds[0]; i++) {
        struct gos_total one = gos_registry_total((uint32_t)device, device_kinds[i]);
        sum.live_bytes += one.live_bytes;
        sum.live_count += one.live_count;
    }
    return sum;
}

EXPORT uint64_t gpuoomshim_live_bytes(int device)
{
    return total_of(device).live_bytes;
}

EXPORT uint64_t gpuoomshim_live_count(int device)
{
    return total_of(device).live_count;
}

EXPORT uint64_t gpuoomshim_peak_bytes(int device)
{
    return device >= 0 && device < GOS_DEVICE_MAX ? gos_registry_peak_bytes((uint32_t)device) : 0;
}

EXPORT uint64_t gpuoomshim_failure_count(void)
{
    return gos_story_refused_count();
}

EXPORT uint64_t gpuoomshim_survived_count(void)
{
    return gos_story_survived_count();
}

/* The name may have to be kept, and the memory for it is ours even before the driver starts. */
EXPORT void gpuoomshim_push_tag(const char *name)
{
    int saved = errno;

    gos_thread.depth++;
    gos_tag_push(name);
    gos_thread.depth--;
    errno = saved;
}

EXPORT void gpuoomshim_pop_tag(void)
{
    gos_tag_pop();
}

/* Both work before the first cuInit: libraries register when they are loaded. */
EXPORT int gpuoomshim_register_flush(const char *name,
                                     int (*flush)(void *arg, int device, uint64_t wanted_bytes),
                                     void *arg)
{
    int saved = errno;

    gos_thread.depth++;
    int result = gos_flush_callback_add(name, flush, arg);
    gos_thread.depth--;
    errno = saved;
    return result;
}

EXPORT int gpuoomshim_unregister_flush(int (*flush)(void *arg, int device, uint64_t wanted_bytes),
                                       void *arg)
{
    int saved = errno;

    gos_thread.depth++;
    int result = gos_flush_callback_remove(flush, arg);
    gos_thread.depth--;
    errno = saved;
    return result;
}
