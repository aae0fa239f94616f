#include "record.h"

#include <stddef.h>

#include "../base/lock.h"
#include "../base/memory.h"

/* Never held together with the lock of the metadata memory, whose rank it shares. */
static struct gos_lock stock_lock = GOS_LOCK_INIT(GOS_RANK_MEMORY);
static struct gos_record *stock; /* full batches */

static struct gos_record *take_from_stock(void)
{
    struct gos_record *batch;

    gos_lock_acquire(&stock_lock);
    batch = stock;
    if (batch)
        stock = batch->next_chain;
    gos_lock_release(&stock_lock);
    return batch;
}

static void give_to_stock(struct gos_record *batch)
{
    gos_lock_acquire(&stock_lock);
    batch->next_chain = stock;
    stock = batch;
    gos_lock_release(&stock_lock);
}

static struct gos_record *new_batch(void)
{
    struct gos_record *records = gos_arena_alloc(GOS_RECORD_BATCH * sizeof(*records));

    for (size_t i = 0; records && i + 1 < GOS_RECORD_BATCH; i++)
        records[i].next = &records[i + 1];
    return records;
}

__attribute__((cold, noinline)) void gos_record_reload(struct gos_magazine *magazine)
{
    struct gos_record *batch = magazine->spare;

    magazine->spare = NULL;
    if (!batch)
        batch = take_from_stock();
    if (!batch)
        batch = new_batch();
    magazine->loaded = batch;
    magazine->loaded_count = batch ? GOS_RECORD_BATCH : 0;
}

__attribute__((cold, noinline)) void gos_record_unload(struct gos_magazine *magazine)
{
    if (magazine->spare)
        give_to_stock(magazine->spare);
    magazine->spare = magazine->loaded;
    magazine->loaded = NULL;
    magazine->loaded_count = 0;
}

void gos_record_reset_after_fork(void)
{
    gos_lock_reset(&stock_lock);
    stock = NULL;
}
