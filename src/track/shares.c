#include "shares.h"

#include <stddef.h>

#include "../base/loss.h"

static struct gos_share *row_of(struct gos_shares *shares, uint64_t number)
{
    for (uint32_t i = 0; i < shares->used; i++)
        if (shares->rows[i].count && shares->rows[i].number == number)
            return &shares->rows[i];
    return NULL;
}

static struct gos_share *free_row(struct gos_shares *shares)
{
    for (uint32_t i = 0; i < shares->used; i++)
        if (!shares->rows[i].count)
            return &shares->rows[i];
    return shares->used < GOS_SHARES_MAX ? &shares->rows[shares->used++] : NULL;
}

void gos_shares_add(struct gos_shares *shares, uint64_t number)
{
    gos_lock_acquire(&shares->lock);
    struct gos_share *row = row_of(shares, number);
    if (!row)
        row = free_row(shares);
    if (row) {
        row->number = number;
        row->count++;
    }
    gos_lock_release(&shares->lock);
    if (!row)
        gos_loss_count(GOS_LOSS_TABLE);
}

bool gos_shares_drop(struct gos_shares *shares, uint64_t number)
{
    gos_lock_acquire(&shares->lock);
    struct gos_share *row = row_of(shares, number);
    if (row)
        row->count--;
    gos_lock_release(&shares->lock);
    return row != NULL;
}
