#include "snapshot.h"

#include <stdbool.h>
#include <string.h>

#include "../base/options.h"
#include "../track/held.h"
#include "../track/sample.h"
#include "../track/site.h"
#include "../track/vmm.h"
#include "fallbacks.h"
#include "sort.h"

#define BLOCK_BYTES (2u << 20)
/* The driver packs requests up to this size into shared blocks [measured on an H200]. */
#define SMALL_MAX_BYTES (1u << 20)
/* Room for what other threads allocate between sizing and walking. */
#define MARGIN 1024
#define USE_ROOM_MAX ((size_t)1 << 18)
#define SMALL_ROOM_MAX ((size_t)1 << 20)
/* Kinds and devices that one site is expected to allocate of. */
#define USES_PER_SITE 8
#define HOMES 65536
#define HOME_WORDS (HOMES / 64)

static size_t smaller(uint64_t a, size_t b)
{
    return a < b ? (size_t)a : b;
}

static uint64_t live_count(uint32_t device, bool only_small_kinds)
{
    uint64_t count = 0;

    for (int kind = 0; kind < GOS_KIND_COUNT; kind++)
        if (!only_small_kinds || gos_kind_may_share_block((enum gos_kind)kind))
            count += gos_registry_total(device, (enum gos_kind)kind).live_count;
    return count;
}

static void make_use_room(struct gos_snapshot *snapshot)
{
    struct gos_evidence *evidence = snapshot->evidence;
    uint64_t room = MARGIN;
    size_t slots = 2 * MARGIN;

    for (uint32_t device = 0; device < GOS_DEVICE_TABLES; device++)
        room += live_count(device, false);
    room = smaller(room, ((size_t)gos_site_count() + 1) * USES_PER_SITE + MARGIN);
    room = smaller(room, USE_ROOM_MAX);
    while (slots < 2 * room)
        slots *= 2;
    snapshot->slots = gos_scratch_alloc(&evidence->scratch, slots * sizeof(*snapshot->slots));
    evidence->uses = gos_scratch_alloc(&evidence->scratch, room * sizeof(*evidence->uses));
    snapshot->slot_mask = slots - 1;
    if (snapshot->slots != NULL && evidence->uses != NULL)
        snapshot->use_room = (size_t)room;
}

static void make_small_room(struct gos_snapshot *snapshot, uint32_t ordinal)
{
    struct gos_evidence *evidence = snapshot->evidence;
    struct gos_device_evidence *device = &evidence->devices[ordinal];
    uint64_t count = live_count(ordinal, true);
    size_t room = smaller(count + MARGIN, SMALL_ROOM_MAX);

    if (count == 0)
        return;
    device->smalls = gos_scratch_alloc(&evidence->scratch, room * sizeof(*device->smalls));
    if (device->smalls != NULL)
        snapshot->small_room[ordinal] = room;
}

static void make_home_room(struct gos_snapshot *snapshot)
{
    struct gos_scratch *scratch = &snapshot->evidence->scratch;

    snapshot->home_pool_bytes = gos_scratch_alloc(scratch, HOMES * sizeof(uint64_t));
    snapshot->home_seen = gos_scratch_alloc(scratch, HOME_WORDS * sizeof(uint64_t));
}

static size_t hash_use(const struct gos_allocation *allocation)
{
    uint64_t key =
        (uint64_t)allocation->site << 16 | (uint64_t)allocation->kind << 8 | allocation->device;

    return (size_t)((key * 0x9E3779B97F4A7C15u) >> 32);
}

static bool is_use_of(const struct gos_site_use *use, const struct gos_allocation *allocation)
{
    return use->site == allocation->site && use->kind == allocation->kind &&
           use->device == allocation->device;
}

/* Captured into a graph they are asked for by the same calls. */
static bool is_sampled(const struct gos_evidence *evidence, enum gos_kind kind)
{
    return evidence->stack_sample_bytes && (kind == GOS_KIND_POOL || kind == GOS_KIND_GRAPH);
}

/* The table is at least twice as long as the array, so there is always an empty slot. */
static struct gos_site_use *find_use(struct gos_snapshot *snapshot,
                                     const struct gos_allocation *allocation)
{
    struct gos_evidence *evidence = snapshot->evidence;
    size_t slot;

    if (snapshot->use_room == 0)
        return NULL;
    for (slot = hash_use(allocation) & snapshot->slot_mask; snapshot->slots[slot] != 0;
         slot = (slot + 1) & snapshot->slot_mask)
        if (is_use_of(&evidence->uses[snapshot->slots[slot] - 1], allocation))
            return &evidence->uses[snapshot->slots[slot] - 1];
    if (evidence->use_count == snapshot->use_room)
        return NULL;
    snapshot->slots[slot] = (uint32_t)++evidence->use_count;
    struct gos_site_use *use = &evidence->uses[evidence->use_count - 1];
    *use = (struct gos_site_use){.site = allocation->site,
                                 .kind = allocation->kind,
                                 .device = allocation->device,
                                 .oldest_ms = allocation->born_ms,
                                 .is_estimated = is_sampled(evidence, allocation->kind)};
    return use;
}

static void add_to_use(struct gos_snapshot *snapshot, const struct gos_allocation *allocation)
{
    struct gos_site_use *use = find_use(snapshot, allocation);

    if (use == NULL) {
        snapshot->uses_lost++;
        return;
    }
    use->live_bytes += allocation->bytes;
    use->live_count++;
    if (use->is_estimated && use->site)
        use->estimated_bytes +=
            gos_sample_estimate(allocation->bytes, snapshot->evidence->stack_sample_bytes);
    if (allocation->bytes > use->largest_bytes)
        use->largest_bytes = allocation->bytes;
    if (allocation->born_ms < use->oldest_ms)
        use->oldest_ms = allocation->born_ms;
    if (allocation->born_ms > use->newest_ms)
        use->newest_ms = allocation->born_ms;
}

static void add_small(struct gos_snapshot *snapshot, const struct gos_allocation *allocation)
{
    struct gos_device_evidence *device = &snapshot->evidence->devices[allocation->device];

    if (device->small_count == snapshot->small_room[allocation->device]) {
        device->small_lost++;
        return;
    }
    device->smalls[device->small_count++] =
        (struct gos_small){allocation->address, (uint32_t)allocation->bytes, allocation->site};
}

static void add_to_blocks(struct gos_snapshot *snapshot, const struct gos_allocation *allocation)
{
    if (allocation->device >= GOS_DEVICE_MAX || !gos_kind_may_share_block(allocation->kind))
        return;
    if (allocation->bytes <= SMALL_MAX_BYTES)
        add_small(snapshot, allocation);
    else
        snapshot->evidence->devices[allocation->device].large_rounding_bytes +=
            (BLOCK_BYTES - allocation->bytes % BLOCK_BYTES) % BLOCK_BYTES;
}

static void add_to_home(struct gos_snapshot *snapshot, const struct gos_allocation *allocation)
{
    if (snapshot->home_seen != NULL)
        snapshot->home_seen[allocation->home / 64] |= (uint64_t)1 << (allocation->home % 64);
    if (snapshot->home_pool_bytes != NULL && allocation->kind == GOS_KIND_POOL)
        snapshot->home_pool_bytes[allocation->home] += allocation->bytes;
}

static void add_to_total(struct gos_evidence *evidence, const struct gos_allocation *allocation)
{
    struct gos_total *totals = allocation->device < GOS_DEVICE_MAX
                                   ? evidence->devices[allocation->device].live
                                   : evidence->host_live;

    totals[allocation->kind].live_bytes += allocation->bytes;
    totals[allocation->kind].live_count++;
}

/* Under a shard's lock: touches only memory that was made before. */
static void add_allocation(const struct gos_allocation *allocation, void *arg)
{
    struct gos_snapshot *snapshot = arg;

    if ((unsigned)allocation->kind >= GOS_KIND_COUNT || allocation->device > GOS_DEVICE_HOST)
        return;
    add_to_total(snapshot->evidence, allocation);
    add_to_use(snapshot, allocation);
    add_to_blocks(snapshot, allocation);
    add_to_home(snapshot, allocation);
}

static void sort_device(struct gos_evidence *evidence, struct gos_device_evidence *device)
{
    struct gos_small *spare = NULL;

    if (device->small_count > 1)
        spare = gos_scratch_alloc(&evidence->scratch, device->small_count * sizeof(*spare));
    gos_sort_smalls(device->smalls, spare, device->small_count);
}

static void finish_device(struct gos_evidence *evidence, uint32_t ordinal)
{
    struct gos_device_evidence *device = &evidence->devices[ordinal];

    sort_device(evidence, device);
    device->peak_bytes = gos_registry_peak_bytes(ordinal);
    device->unmapped_physical_bytes = gos_vmm_total(ordinal).unmapped_bytes;
    device->held_bytes = gos_held_bytes(ordinal);
}

static void say_what_is_lost(const struct gos_snapshot *snapshot)
{
    struct gos_evidence *evidence = snapshot->evidence;

    if (snapshot->uses_lost > 0)
        gos_evidence_incomplete_format(
            evidence, "%llu allocations are missing from the list of sites (totals are exact)",
            (unsigned long long)snapshot->uses_lost);
    for (uint32_t ordinal = 0; ordinal < GOS_DEVICE_MAX; ordinal++)
        if (evidence->devices[ordinal].small_lost > 0)
            gos_evidence_incomplete_format(
                evidence,
                "GPU %u: %llu small allocations are missing from the map of 2 MiB blocks: less is "
                "stuck than it shows",
                ordinal, (unsigned long long)evidence->devices[ordinal].small_lost);
    if (snapshot->home_pool_bytes == NULL || snapshot->home_seen == NULL)
        gos_evidence_incomplete(evidence, "live bytes by pool (no memory to add them up)");
}

void gos_snapshot_take(struct gos_snapshot *snapshot, struct gos_evidence *evidence)
{
    memset(snapshot, 0, sizeof(*snapshot));
    snapshot->evidence = evidence;
    evidence->stack_sample_bytes = gos_options.stack_sample;
    make_use_room(snapshot);
    make_home_room(snapshot);
    for (uint32_t ordinal = 0; ordinal < GOS_DEVICE_MAX; ordinal++)
        make_small_room(snapshot, ordinal);
    gos_registry_walk(add_allocation, snapshot);
    gos_sort_uses(evidence->uses, evidence->use_count);
    for (uint32_t ordinal = 0; ordinal < GOS_DEVICE_MAX; ordinal++)
        finish_device(evidence, ordinal);
    gos_fallbacks_observe(evidence);
    gos_registry_counts(&evidence->allocated_count, &evidence->freed_count);
    say_what_is_lost(snapshot);
}

static void visit_homes(const struct gos_snapshot *snapshot,
                        void (*visit)(uint16_t home, void *arg), void *arg)
{
    for (size_t word = 0; snapshot->home_seen != NULL && word < HOME_WORDS; word++)
        for (uint64_t bits = snapshot->home_seen[word]; bits != 0; bits &= bits - 1)
            visit((uint16_t)(word * 64 + (size_t)__builtin_ctzll(bits)), arg);
}

struct pool_sum {
    const struct gos_snapshot *snapshot;
    uint64_t pool;
    uint64_t bytes;
};

static void add_home_of_pool(uint16_t home, void *arg)
{
    struct pool_sum *sum = arg;

    if (gos_home_get(home).pool == sum->pool)
        sum->bytes += sum->snapshot->home_pool_bytes[home];
}

uint64_t gos_snapshot_pool_bytes(const struct gos_snapshot *snapshot, uint64_t pool)
{
    struct pool_sum sum = {snapshot, pool, 0};

    if (snapshot->home_pool_bytes != NULL)
        visit_homes(snapshot, add_home_of_pool, &sum);
    return sum.bytes;
}

struct context_visit {
    void (*visit)(uint64_t context, void *arg);
    void *arg;
};

static void visit_context(uint16_t home, void *arg)
{
    const struct context_visit *outer = arg;
    uint64_t context = gos_home_get(home).context;

    if (context != 0)
        outer->visit(context, outer->arg);
}

void gos_snapshot_contexts(const struct gos_snapshot *snapshot,
                           void (*visit)(uint64_t context, void *arg), void *arg)
{
    struct context_visit outer = {visit, arg};

    visit_homes(snapshot, visit_context, &outer);
}
