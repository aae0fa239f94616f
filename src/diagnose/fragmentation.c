/*
 * The map of 2 MiB blocks.  The driver gives requests of up to 1 MiB a part of
 * a block that they share; a block goes back to the device only when its last
 * part is free.
 */
#include "diagnosis.h"
#include "framework.h"
#include "pool_sum.h"
#include "saturate.h"

#define BLOCK_SHIFT 21
#define BLOCK_BYTES (1ull << BLOCK_SHIFT)
#define BLOCK_SITES 16
#define PIN_SITES 128

/* Bytes by site; what does not fit goes unnamed. */
struct site_row {
    uint32_t site;
    uint64_t blocks;
    uint64_t bytes;
};

struct map_walk {
    struct gos_fragmentation *out;
    uint64_t block; /* the one being filled: address >> BLOCK_SHIFT */
    uint64_t live_bytes;
    bool open;
    struct site_row parts[BLOCK_SITES]; /* who lives in it */
    size_t part_count;
    struct site_row pins[PIN_SITES];
    size_t pin_count;
};

static void add_row(struct site_row *rows, size_t max, size_t *count, const struct site_row *add)
{
    size_t i = 0;
    while (i < *count && rows[i].site != add->site)
        i++;
    if (i == *count) {
        if (*count == max)
            return;
        rows[(*count)++] = (struct site_row){.site = add->site};
    }
    rows[i].blocks += add->blocks;
    rows[i].bytes += add->bytes;
}

static size_t largest_row(const struct site_row *rows, size_t count)
{
    size_t best = 0;
    for (size_t i = 1; i < count; i++)
        if (rows[i].bytes > rows[best].bytes)
            best = i;
    return best;
}

/* A block counts for the site that has most of it, so that the sums stay sums of blocks. */
static void pin_block(struct map_walk *walk, uint64_t stuck)
{
    uint32_t site = walk->parts[largest_row(walk->parts, walk->part_count)].site;
    walk->out->block_pinned_count++;
    add_row(walk->pins, PIN_SITES, &walk->pin_count,
            &(struct site_row){.site = site, .blocks = 1, .bytes = stuck});
}

static void close_block(struct map_walk *walk)
{
    if (!walk->open)
        return;
    uint64_t live = gos_lesser(walk->live_bytes, BLOCK_BYTES);
    uint64_t stuck = BLOCK_BYTES - live;
    walk->out->block_count++;
    walk->out->block_live_bytes += live;
    walk->out->block_stuck_bytes += stuck;
    if (stuck >= live)
        pin_block(walk, stuck);
    walk->open = false;
}

static void open_block(struct map_walk *walk, uint64_t block)
{
    close_block(walk);
    walk->block = block;
    walk->live_bytes = 0;
    walk->part_count = 0;
    walk->open = true;
}

static void add_part(struct map_walk *walk, uint64_t address, uint64_t bytes, uint32_t site)
{
    uint64_t block = address >> BLOCK_SHIFT;
    if (!walk->open || walk->block != block)
        open_block(walk, block);
    walk->live_bytes += bytes;
    add_row(walk->parts, BLOCK_SITES, &walk->part_count,
            &(struct site_row){.site = site, .bytes = bytes});
}

/* One that reaches over the end of its block has a part in each. */
static void add_small(struct map_walk *walk, const struct gos_small *small)
{
    uint64_t address = small->address;
    uint64_t left = small->bytes;
    while (left > 0) {
        uint64_t part = gos_lesser(left, BLOCK_BYTES - (address & (BLOCK_BYTES - 1)));
        add_part(walk, address, part, small->site);
        address += part;
        left -= part;
    }
}

static void hand_out_pins(struct map_walk *walk)
{
    struct gos_fragmentation *out = walk->out;
    size_t room = sizeof(out->pins) / sizeof(out->pins[0]);
    while (out->pin_count < room) {
        size_t i = largest_row(walk->pins, walk->pin_count);
        if (walk->pin_count == 0 || walk->pins[i].bytes == 0)
            return;
        out->pins[out->pin_count].site = walk->pins[i].site;
        out->pins[out->pin_count].blocks = walk->pins[i].blocks;
        out->pins[out->pin_count].stuck_bytes = walk->pins[i].bytes;
        out->pin_count++;
        walk->pins[i].bytes = 0;
    }
}

/*
 * Freed behind work that may still run: it is late, not in pieces.  Of a stream
 * that has finished nobody can see whether the host waited for it.
 */
static uint64_t late_bytes(const struct gos_evidence *evidence, int ordinal)
{
    uint64_t late = 0;
    for (size_t i = 0; i < evidence->stream_count; i++) {
        const struct gos_stream_evidence *stream = &evidence->streams[i];
        if ((int)stream->device == ordinal && (stream->running || !stream->asked))
            late = gos_plus(late, stream->freed_bytes);
    }
    return late;
}

void gos_fragmentation_make(const struct gos_evidence *evidence,
                            const struct gos_device_evidence *device,
                            struct gos_fragmentation *fragmentation)
{
    *fragmentation = (struct gos_fragmentation){.block_lost_count = device->small_lost};
    struct map_walk walk = {.out = fragmentation};
    for (size_t i = 0; i < device->small_count; i++)
        add_small(&walk, &device->smalls[i]);
    close_block(&walk);
    hand_out_pins(&walk);
    gos_fragmentation_make_again(evidence, device, fragmentation);
}

void gos_fragmentation_make_again(const struct gos_evidence *evidence,
                                  const struct gos_device_evidence *device,
                                  struct gos_fragmentation *fragmentation)
{
    uint64_t free_bytes = device->driver_known ? device->driver_free_bytes : 0;
    uint64_t stuck = fragmentation->block_stuck_bytes;
    fragmentation->block_permille = gos_permille(stuck, gos_plus(stuck, free_bytes));
    struct gos_pool_sum pools;
    gos_pool_sum_make(evidence, device, &pools);
    uint64_t unused = gos_plus(pools.idle_bytes, pools.pending_bytes);
    uint64_t kept = gos_lesser(gos_beyond(unused, pools.unpinned_bytes),
                               gos_beyond(unused, late_bytes(evidence, device->ordinal)));
    fragmentation->pool_permille = gos_permille(kept, unused);
    gos_framework_fragmentation(evidence, (uint32_t)device->ordinal, fragmentation);
}
