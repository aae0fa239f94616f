#include "sim_memory.h"

#include <stdlib.h>

#include "sim_blocks.h"
#include "sim_capacity.h"
#include "sim_context.h"
#include "sim_graph.h"
#include "sim_host.h"
#include "sim_pool.h"
#include "sim_stream.h"

struct pending_free {
    struct pending_free *next;
    struct sim_range range; /* out of the address map already */
    CUstream stream;
    uint64_t ticket;
};

static struct pending_free *pending;

static struct sim_range *take_piece(uint64_t bytes)
{
    CUcontext context = sim_context_current();
    struct sim_block *block = NULL;
    uint64_t base = sim_block_cut(context, bytes, &block);
    if (base == 0)
        return NULL;
    struct sim_range *range = sim_range_add(SIM_PIECE, base, bytes, context->device);
    if (range == NULL) {
        sim_block_paste(block, base, bytes);
        return NULL;
    }
    range->owner = block;
    range->context = context;
    return range;
}

static struct sim_range *take_blocks(uint64_t bytes)
{
    CUcontext context = sim_context_current();
    uint64_t rounded = sim_round_up(bytes, SIM_BLOCK_BYTES);
    if (!sim_device_take(context->device, rounded < bytes ? UINT64_MAX : rounded))
        return NULL;
    uint64_t base = sim_space_map(rounded, true);
    struct sim_range *range =
        base != 0 ? sim_range_add(SIM_LINEAR, base, bytes, context->device) : NULL;
    if (range == NULL) {
        sim_space_unmap(base, base != 0 ? rounded : 0);
        sim_capacity_give(context->device, rounded);
        return NULL;
    }
    range->mapped_bytes = rounded;
    range->context = context;
    return range;
}

struct sim_range *sim_memory_take(uint64_t bytes)
{
    return bytes <= SIM_PIECE_MAX_BYTES ? take_piece(bytes) : take_blocks(bytes);
}

static void give_memory(const struct sim_range *range)
{
    if (range->kind == SIM_PIECE) {
        sim_block_paste(range->owner, range->base, range->bytes);
        return;
    }
    sim_space_unmap(range->base, range->mapped_bytes);
    sim_capacity_give(range->device, range->mapped_bytes);
}

void sim_memory_give(struct sim_range *range)
{
    struct sim_range copy = *range;
    if (range->kind == SIM_POOLED) {
        sim_pool_free_now(range);
        return;
    }
    if (range->kind == SIM_GRAPH_OWNED) {
        sim_graph_free_node(range);
        return;
    }
    sim_range_remove(range);
    if (copy.kind == SIM_LINEAR || copy.kind == SIM_PIECE)
        give_memory(&copy);
    else
        sim_host_give(&copy);
}

CUresult sim_memory_give_later(struct sim_range *range, CUstream stream)
{
    struct pending_free *entry = calloc(1, sizeof(*entry));
    if (entry == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    entry->range = *range;
    entry->stream = stream;
    entry->ticket = sim_stream_mark(stream);
    entry->next = pending;
    pending = entry;
    sim_range_remove(range);
    return CUDA_SUCCESS;
}

void sim_memory_sweep(void)
{
    struct pending_free **link = &pending;
    while (*link != NULL) {
        struct pending_free *entry = *link;
        if (entry->stream->observed < entry->ticket) {
            link = &entry->next;
            continue;
        }
        *link = entry->next;
        give_memory(&entry->range);
        free(entry);
    }
}

void sim_memory_free_context(CUcontext context)
{
    struct sim_range *range;
    while ((range = sim_range_of_context(context)) != NULL)
        sim_memory_give(range);
}
