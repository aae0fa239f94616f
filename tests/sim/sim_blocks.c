#include "sim_blocks.h"

#include <stdlib.h>

#include "sim_capacity.h"
#include "sim_context.h"
#include "sim_range.h"

#define UNIT_BYTES 512u
#define UNITS (SIM_BLOCK_BYTES / UNIT_BYTES)

struct sim_block {
    uint64_t base;
    CUcontext context;
    int device;
    unsigned free_units;
    bool listed; /* among the blocks with something free */
    struct sim_block *previous, *next;
    uint64_t used[UNITS / 64];
};

static struct sim_block *open_blocks;

static unsigned units_of(uint64_t bytes)
{
    return (unsigned)(sim_round_up(bytes, UNIT_BYTES) / UNIT_BYTES);
}

static bool is_used(const struct sim_block *block, unsigned unit)
{
    return (block->used[unit / 64] >> (unit % 64) & 1) != 0;
}

static void flip(struct sim_block *block, unsigned first, unsigned count)
{
    for (unsigned unit = first; unit < first + count; unit++)
        block->used[unit / 64] ^= UINT64_C(1) << (unit % 64);
}

static void list(struct sim_block *block)
{
    block->previous = NULL;
    block->next = open_blocks;
    if (open_blocks != NULL)
        open_blocks->previous = block;
    open_blocks = block;
    block->listed = true;
}

static void unlist(struct sim_block *block)
{
    if (block->previous != NULL)
        block->previous->next = block->next;
    else
        open_blocks = block->next;
    if (block->next != NULL)
        block->next->previous = block->previous;
    block->listed = false;
}

/* First fit; UNITS when no run is long enough. */
static unsigned find_run(const struct sim_block *block, unsigned count)
{
    unsigned length = 0;
    for (unsigned unit = 0; unit < UNITS; unit++) {
        if (unit % 64 == 0 && block->used[unit / 64] == UINT64_MAX) {
            length = 0;
            unit += 63;
            continue;
        }
        length = is_used(block, unit) ? 0 : length + 1;
        if (length == count)
            return unit + 1 - count;
    }
    return (unsigned)UNITS;
}

static struct sim_block *make_block(CUcontext context)
{
    struct sim_block *block = calloc(1, sizeof(*block));
    if (block == NULL)
        return NULL;
    if (!sim_device_take(context->device, SIM_BLOCK_BYTES))
        goto no_memory;
    block->base = sim_space_map(SIM_BLOCK_BYTES, true);
    if (block->base == 0)
        goto no_space;
    block->context = context;
    block->device = context->device;
    block->free_units = (unsigned)UNITS;
    list(block);
    return block;
no_space:
    sim_capacity_give(context->device, SIM_BLOCK_BYTES);
no_memory:
    free(block);
    return NULL;
}

static uint64_t cut_at(struct sim_block *block, unsigned first, unsigned count)
{
    flip(block, first, count);
    block->free_units -= count;
    if (block->free_units == 0)
        unlist(block);
    return block->base + (uint64_t)first * UNIT_BYTES;
}

uint64_t sim_block_cut(CUcontext context, uint64_t bytes, struct sim_block **out)
{
    unsigned count = units_of(bytes);
    for (struct sim_block *block = open_blocks; block != NULL; block = block->next) {
        if (block->context != context || block->free_units < count)
            continue;
        unsigned first = find_run(block, count);
        *out = block;
        if (first != UNITS)
            return cut_at(block, first, count);
    }
    *out = make_block(context);
    return *out != NULL ? cut_at(*out, 0, count) : 0;
}

static void close_block(struct sim_block *block)
{
    unlist(block);
    sim_space_unmap(block->base, SIM_BLOCK_BYTES);
    sim_capacity_give(block->device, SIM_BLOCK_BYTES);
    free(block);
}

void sim_block_paste(struct sim_block *block, uint64_t address, uint64_t bytes)
{
    unsigned count = units_of(bytes);
    flip(block, (unsigned)((address - block->base) / UNIT_BYTES), count);
    block->free_units += count;
    if (!block->listed)
        list(block);
    if (block->free_units == UNITS)
        close_block(block);
}
