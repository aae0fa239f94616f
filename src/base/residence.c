#include "residence.h"

#include <link.h>
#include <stdatomic.h>
#include <stddef.h>

#include "module.h"
#include "phdr_walk.h"

/* As glibc 2.35's dlfcn.h has it; the rest is for machines that we do not know. */
struct found_object {
    unsigned long long flags;
    void *map_start;
    void *map_end;
    struct link_map *link_map;
    unsigned long long rest[12];
};

typedef int find_object(void *address, struct found_object *result);

static int absent(void *address, struct found_object *result)
{
    (void)address;
    (void)result;
    return -1;
}

/* glibc's own, or absent. */
static find_object *finder(void)
{
    static _Atomic(find_object *) known;
    find_object *found = atomic_load_explicit(&known, memory_order_acquire);

    if (!found) {
        const struct gos_module *loader = gos_module_named("ld-linux");
        found = loader ? (find_object *)gos_module_symbol(loader, "_dl_find_object") : NULL;
        found = found ? found : absent;
        atomic_store_explicit(&known, found, memory_order_release);
    }
    return found;
}

static int note_unloads(struct dl_phdr_info *info, size_t info_bytes, void *arg)
{
    if (info_bytes >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs)
        *(uint64_t *)arg = info->dlpi_subs;
    return 1;
}

static uint64_t unload_count(void)
{
    uint64_t count = 0;

    gos_phdr_walk(note_unloads, &count);
    return count;
}

uint64_t gos_residence_stamp(const void *address)
{
    struct found_object object = {0};
    find_object *find = finder();

    if (find == absent)
        return unload_count() + 1;
    if (find((void *)(uintptr_t)address, &object) != 0)
        return 0;
    return ((uint64_t)(uintptr_t)object.map_start * 31 + (uint64_t)(uintptr_t)object.map_end) * 31 +
           (uint64_t)(uintptr_t)object.link_map;
}
