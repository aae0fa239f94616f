#include "block_count.h"

#include "../base/loss.h"
#include "table.h"

#define BLOCK_SHIFT 21
#define KEY_LENGTH 8 /* any: the table holds one kind of number */

struct gos_block {
    uint32_t live_count;
    UT_hash_handle hh; /* key: number + 1, since none may be NULL */
};

static struct gos_slab slab = {.object_bytes = sizeof(struct gos_block)};

static uint64_t number_of(uint64_t address)
{
    return (address >> BLOCK_SHIFT) + 1;
}

static struct gos_block *find(const struct gos_block_count *count, uint64_t number)
{
    uint32_t hash = gos_table_hash(gos_table_mix(number));
    struct gos_block *block;

    HASH_FIND_BYHASHVALUE(hh, count->blocks, gos_table_key(number), KEY_LENGTH, hash, block);
    return block;
}

bool gos_block_count_has(const struct gos_block_count *count, uint64_t address)
{
    return find(count, number_of(address)) != NULL;
}

/* A block that finds no place in the table is counted as lost, and its later drop as nothing. */
static struct gos_block *make(struct gos_block_count *count, uint64_t number)
{
    uint32_t hash = gos_table_hash(gos_table_mix(number));
    struct gos_block *block = gos_slab_take(&slab);

    if (block) {
        *block = (struct gos_block){0};
        HASH_ADD_KEYPTR_BYHASHVALUE(hh, count->blocks, gos_table_key(number), KEY_LENGTH, hash,
                                    block);
        if (block->hh.tbl)
            return block;
        gos_slab_give(&slab, block);
    }
    gos_loss_count(GOS_LOSS_MEMORY);
    return NULL;
}

bool gos_block_count_add(struct gos_block_count *count, uint64_t address)
{
    struct gos_block *block = find(count, number_of(address));
    bool is_first = block == NULL;

    if (is_first)
        block = make(count, number_of(address));
    if (block)
        block->live_count++;
    return is_first && block;
}

bool gos_block_count_drop(struct gos_block_count *count, uint64_t address)
{
    struct gos_block *block = find(count, number_of(address));

    if (!block || --block->live_count > 0)
        return false;
    HASH_DELETE(hh, count->blocks, block);
    gos_slab_give(&slab, block);
    return true;
}

void gos_block_count_reset_after_fork(struct gos_block_count *count)
{
    count->blocks = NULL;
    slab = (struct gos_slab){.object_bytes = sizeof(struct gos_block)};
}
