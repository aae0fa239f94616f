#include "vmm.h"

#include <string.h>

#include "../base/lock.h"
#include "../base/loss.h"
#include "table.h"
#include "vmm_physical.h"

struct gos_physical {
    uint64_t bytes;
    uint32_t device;
    uint32_t reference_count;
    uint32_t mapping_count;
    bool is_orphan;    /* its number was given out again; only mappings know it */
    UT_hash_handle hh; /* key: the handle */
};

struct mapping {
    uint64_t bytes;
    struct gos_physical *shows;
    UT_hash_handle hh; /* key: the address */
};

#define KEY_LENGTH 8 /* any: these tables hold one kind of number each */

struct gos_lock gos_vmm_lock = GOS_LOCK_INIT(GOS_RANK_VMM);
static struct gos_physical *physicals;
static struct mapping *mappings;
static struct gos_slab physical_slab = {.object_bytes = sizeof(struct gos_physical)};
static struct gos_slab mapping_slab = {.object_bytes = sizeof(struct mapping)};
static struct gos_vmm_totals totals[GOS_DEVICE_TABLES];

static struct gos_physical *find_physical(uint64_t handle)
{
    uint32_t hash = gos_table_hash(gos_table_mix(handle));
    struct gos_physical *physical;

    HASH_FIND_BYHASHVALUE(hh, physicals, gos_table_key(handle), KEY_LENGTH, hash, physical);
    return physical;
}

static struct mapping *find_mapping(uint64_t address)
{
    uint32_t hash = gos_table_hash(gos_table_mix(address));
    struct mapping *mapping;

    HASH_FIND_BYHASHVALUE(hh, mappings, gos_table_key(address), KEY_LENGTH, hash, mapping);
    return mapping;
}

static uint64_t number_of(const UT_hash_handle *hh)
{
    return (uint64_t)(uintptr_t)hh->key;
}

/* The total that the memory counts towards now. */
static uint64_t *total_of(const struct gos_physical *physical)
{
    struct gos_vmm_totals *total = &totals[physical->device];

    return physical->mapping_count ? &total->mapped_bytes : &total->unmapped_bytes;
}

static struct gos_physical *new_physical(uint64_t handle, uint64_t bytes, uint32_t device)
{
    uint32_t hash = gos_table_hash(gos_table_mix(handle));
    struct gos_physical *physical = gos_slab_take(&physical_slab);

    if (!physical)
        return NULL;
    memset(physical, 0, sizeof(*physical));
    physical->bytes = bytes;
    physical->device = device;
    physical->reference_count = 1;
    HASH_ADD_KEYPTR_BYHASHVALUE(hh, physicals, gos_table_key(handle), KEY_LENGTH, hash, physical);
    if (!physical->hh.tbl) {
        gos_slab_give(&physical_slab, physical);
        return NULL;
    }
    totals[device].handle_count++;
    *total_of(physical) += bytes;
    return physical;
}

static void forget_physical(struct gos_physical *physical)
{
    totals[physical->device].handle_count--;
    *total_of(physical) -= physical->bytes;
    HASH_DELETE(hh, physicals, physical);
}

static void change_mapping_count(struct gos_physical *physical, uint32_t change)
{
    if (!physical->is_orphan)
        *total_of(physical) -= physical->bytes;
    physical->mapping_count += change;
    if (!physical->is_orphan)
        *total_of(physical) += physical->bytes;
}

/*
 * The driver gives a number out again, so we missed the end of the first.
 * Mappings that still point to it keep its body.
 */
static void retire_stale(uint64_t handle)
{
    struct gos_physical *stale = find_physical(handle);

    if (!stale)
        return;
    forget_physical(stale);
    stale->is_orphan = true;
    if (!stale->mapping_count)
        gos_slab_give(&physical_slab, stale);
}

/* What was imported, or only fans out to other memory, takes none itself. */
static uint64_t owned_bytes(const struct gos_allocation *physical)
{
    return physical->kind == GOS_KIND_PHYSICAL ? physical->bytes : 0;
}

/* Handle and record are kept both or not at all. */
static void track(const struct gos_allocation *physical)
{
    struct gos_allocation untracked;

    if (gos_registry_add(physical) != 0)
        return; /* counted there */
    if (new_physical(physical->address, owned_bytes(physical), physical->device))
        return;
    gos_registry_take(GOS_SPACE_HANDLE, physical->address, &untracked);
    gos_loss_count(GOS_LOSS_MEMORY);
}

static bool is_sound(const struct gos_allocation *physical)
{
    if (physical->device < GOS_DEVICE_TABLES && gos_kind_space(physical->kind) == GOS_SPACE_HANDLE)
        return true;
    gos_loss_count(GOS_LOSS_TABLE);
    return false;
}

void gos_vmm_created(const struct gos_allocation *physical)
{
    if (!is_sound(physical))
        return;
    gos_lock_acquire(&gos_vmm_lock);
    retire_stale(physical->address);
    track(physical);
    gos_lock_release(&gos_vmm_lock);
}

void gos_vmm_imported(const struct gos_allocation *handle)
{
    struct gos_physical *known;

    if (!is_sound(handle))
        return;
    gos_lock_acquire(&gos_vmm_lock);
    known = find_physical(handle->address);
    if (known)
        known->reference_count++;
    else
        track(handle);
    gos_lock_release(&gos_vmm_lock);
}

void gos_vmm_retained(uint64_t handle)
{
    struct gos_physical *physical;

    gos_lock_acquire(&gos_vmm_lock);
    physical = find_physical(handle);
    if (physical)
        physical->reference_count++;
    gos_lock_release(&gos_vmm_lock);
}

static bool is_dead(const struct gos_physical *physical)
{
    return !physical->reference_count && !physical->mapping_count;
}

/* The record goes first in every case; a missing one is made up for unrelease's sake. */
static void bury(struct gos_physical *physical, struct gos_allocation *gone)
{
    uint64_t handle = number_of(&physical->hh);

    if (!gos_registry_take(GOS_SPACE_HANDLE, handle, gone))
        *gone = (struct gos_allocation){.address = handle,
                                        .bytes = physical->bytes,
                                        .kind = GOS_KIND_PHYSICAL,
                                        .device = physical->device};
    forget_physical(physical);
    gos_slab_give(&physical_slab, physical);
}

static bool drop_reference(struct gos_physical *physical, struct gos_allocation *gone)
{
    gone->address = number_of(&physical->hh);
    physical->reference_count--;
    if (!is_dead(physical))
        return false;
    bury(physical, gone);
    return true;
}

/* An address of 0 in `gone` says that no reference was taken and none is to be given back. */
bool gos_vmm_release(uint64_t handle, struct gos_allocation *gone)
{
    struct gos_physical *physical;
    bool was_last = false;

    memset(gone, 0, sizeof(*gone));
    gos_lock_acquire(&gos_vmm_lock);
    physical = find_physical(handle);
    if (physical && physical->reference_count)
        was_last = drop_reference(physical, gone);
    gos_lock_release(&gos_vmm_lock);
    return was_last;
}

static void raise_again(const struct gos_allocation *gone)
{
    if (find_physical(gone->address))
        return;
    if (new_physical(gone->address, owned_bytes(gone), gone->device))
        gos_registry_restore(gone);
    else
        gos_loss_count(GOS_LOSS_MEMORY);
}

void gos_vmm_unrelease(uint64_t handle, const struct gos_allocation *gone, bool was_last)
{
    if (!gone->address || gone->address != handle)
        return;
    if (!was_last) {
        gos_vmm_retained(handle);
        return;
    }
    gos_lock_acquire(&gos_vmm_lock);
    raise_again(gone);
    gos_lock_release(&gos_vmm_lock);
}

struct gos_physical *gos_physical_show(uint64_t handle)
{
    struct gos_physical *physical = find_physical(handle);

    if (physical)
        change_mapping_count(physical, 1);
    return physical;
}

void gos_physical_hide(struct gos_physical *physical)
{
    struct gos_allocation gone;

    change_mapping_count(physical, -1u);
    if (physical->is_orphan && !physical->mapping_count)
        gos_slab_give(&physical_slab, physical);
    else if (!physical->is_orphan && is_dead(physical))
        bury(physical, &gone);
}

static void forget_mapping(struct mapping *mapping)
{
    struct gos_physical *physical = mapping->shows;
    struct gos_allocation gone;

    gos_registry_take(GOS_SPACE_ADDRESS, number_of(&mapping->hh), &gone);
    HASH_DELETE(hh, mappings, mapping);
    gos_slab_give(&mapping_slab, mapping);
    gos_physical_hide(physical);
}

static struct mapping *new_mapping(uint64_t address, uint64_t bytes, struct gos_physical *physical)
{
    uint32_t hash = gos_table_hash(gos_table_mix(address));
    struct mapping *mapping = gos_slab_take(&mapping_slab);

    if (!mapping)
        return NULL;
    memset(mapping, 0, sizeof(*mapping));
    mapping->bytes = bytes;
    mapping->shows = physical;
    HASH_ADD_KEYPTR_BYHASHVALUE(hh, mappings, gos_table_key(address), KEY_LENGTH, hash, mapping);
    if (!mapping->hh.tbl) {
        gos_slab_give(&mapping_slab, mapping);
        return NULL;
    }
    change_mapping_count(physical, 1);
    return mapping;
}

static void show(uint64_t address, uint64_t bytes, struct gos_physical *physical, uint32_t site)
{
    struct gos_allocation record = {.address = address,
                                    .bytes = bytes,
                                    .kind = GOS_KIND_MAPPING,
                                    .device = physical->device,
                                    .site = site};

    if (new_mapping(address, bytes, physical))
        gos_registry_add(&record);
    else
        gos_loss_count(GOS_LOSS_MEMORY);
}

void gos_vmm_mapped(uint64_t address, uint64_t bytes, uint64_t handle, uint32_t site)
{
    struct gos_physical *physical;
    struct mapping *stale;

    gos_lock_acquire(&gos_vmm_lock);
    physical = find_physical(handle);
    stale = find_mapping(address);
    if (physical)
        physical->reference_count++; /* held while the stale mapping may be its last */
    if (stale)
        forget_mapping(stale);
    if (physical) {
        show(address, bytes, physical, site);
        physical->reference_count--;
    }
    gos_lock_release(&gos_vmm_lock);
}

static void unmap_scattered(uint64_t address, uint64_t end)
{
    struct mapping *next;

    for (struct mapping *mapping = mappings; mapping; mapping = next) {
        uint64_t start = number_of(&mapping->hh);

        next = mapping->hh.next;
        if (start >= address && start < end)
            forget_mapping(mapping);
    }
}

/* Usually the mappings of the range lie end to end; after a gap we look at all. */
void gos_vmm_unmapped(uint64_t address, uint64_t bytes)
{
    uint64_t end = address + bytes;
    struct mapping *mapping;

    gos_lock_acquire(&gos_vmm_lock);
    while (address < end && (mapping = find_mapping(address))) {
        address += mapping->bytes;
        forget_mapping(mapping);
    }
    if (address < end)
        unmap_scattered(address, end);
    gos_lock_release(&gos_vmm_lock);
}

struct gos_vmm_totals gos_vmm_total(uint32_t device)
{
    struct gos_vmm_totals total = {0, 0, 0};

    if (device >= GOS_DEVICE_TABLES)
        return total;
    gos_lock_acquire(&gos_vmm_lock);
    total = totals[device];
    gos_lock_release(&gos_vmm_lock);
    return total;
}

void gos_vmm_reset_after_fork(void)
{
    gos_lock_reset(&gos_vmm_lock);
    gos_vmm_array_reset_after_fork();
    physicals = NULL;
    mappings = NULL;
    physical_slab = (struct gos_slab){.object_bytes = sizeof(struct gos_physical)};
    mapping_slab = (struct gos_slab){.object_bytes = sizeof(struct mapping)};
    memset(totals, 0, sizeof(totals));
}
