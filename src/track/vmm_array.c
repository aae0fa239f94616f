/* Physical memory that arrays show.  Few programs have such arrays, and those a few. */
#include <stddef.h>
#include <stdatomic.h>
#include <string.h>

#include "../base/loss.h"
#include "../base/memory.h"
#include "vmm.h"
#include "vmm_physical.h"

struct shown {
    struct gos_vmm_part part;
    uint64_t left; /* texels or bytes that are still mapped */
    struct gos_physical *physical;
    struct shown *next;
};

static struct shown *all; /* under the VMM lock */
static _Atomic bool any;  /* there were some since the process began */
static struct gos_slab slab = {.object_bytes = sizeof(struct shown)};

static uint64_t size_of(const uint64_t extent[3])
{
    return extent[0] * extent[1] * extent[2];
}

/* How much of the line [start, +extent) the other one covers. */
static uint64_t common(uint64_t start, uint64_t extent, uint64_t other, uint64_t other_extent)
{
    uint64_t begin = start > other ? start : other;
    uint64_t end = start + extent < other + other_extent ? start + extent : other + other_extent;

    return end > begin ? end - begin : 0;
}

static uint64_t overlap(const struct gos_vmm_part *a, const struct gos_vmm_part *b)
{
    uint64_t extent[3];

    if (a->array != b->array || a->is_tail != b->is_tail || a->level != b->level ||
        a->layer != b->layer)
        return 0;
    for (int i = 0; i < 3; i++)
        extent[i] = common(a->start[i], a->extent[i], b->start[i], b->extent[i]);
    return size_of(extent);
}

static void drop(struct shown **link)
{
    struct shown *gone = *link;

    *link = gone->next;
    gos_physical_hide(gone->physical);
    gos_slab_give(&slab, gone);
}

static void unmap(const struct gos_vmm_part *part)
{
    for (struct shown **link = &all; *link;) {
        uint64_t covered = overlap(&(*link)->part, part);

        (*link)->left -= covered < (*link)->left ? covered : (*link)->left;
        if (covered && (*link)->left == 0)
            drop(link);
        else
            link = &(*link)->next;
    }
}

/* First what comes, then what goes: the memory may be the same. */
static void map(const struct gos_vmm_part *part, uint64_t handle)
{
    struct gos_physical *physical = gos_physical_show(handle);
    struct shown *shown = physical ? gos_slab_take(&slab) : NULL;

    unmap(part);
    if (shown) {
        *shown = (struct shown){*part, size_of(part->extent), physical, all};
        all = shown;
        atomic_store(&any, true);
    } else if (physical) {
        gos_physical_hide(physical);
        gos_loss_count(GOS_LOSS_MEMORY);
    }
}

void gos_vmm_array_mapped(const struct gos_vmm_part *part, uint64_t handle)
{
    gos_lock_acquire(&gos_vmm_lock);
    map(part, handle);
    gos_lock_release(&gos_vmm_lock);
}

void gos_vmm_array_unmapped(const struct gos_vmm_part *part)
{
    gos_lock_acquire(&gos_vmm_lock);
    unmap(part);
    gos_lock_release(&gos_vmm_lock);
}

static bool has_number(const struct shown *shown, uint64_t array)
{
    return shown->part.array == array;
}

static bool is_unknown(const struct shown *shown, uint64_t unused)
{
    struct gos_allocation found;

    (void)unused;
    return !gos_registry_find(GOS_SPACE_ARRAY, shown->part.array, &found);
}

static void drop_where(bool (*ended)(const struct shown *, uint64_t), uint64_t array)
{
    if (!atomic_load_explicit(&any, memory_order_relaxed))
        return;
    gos_lock_acquire(&gos_vmm_lock);
    for (struct shown **link = &all; *link;) {
        if (ended(*link, array))
            drop(link);
        else
            link = &(*link)->next;
    }
    gos_lock_release(&gos_vmm_lock);
}

void gos_vmm_array_destroyed(uint64_t array)
{
    drop_where(has_number, array);
}

void gos_vmm_arrays_ended(void)
{
    drop_where(is_unknown, 0);
}

void gos_vmm_array_reset_after_fork(void)
{
    all = NULL;
    atomic_store(&any, false);
    slab = (struct gos_slab){.object_bytes = sizeof(struct shown)};
}
