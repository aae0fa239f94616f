#include "capture.h"

#include <stdatomic.h>
#include <stddef.h>

#include "../base/lock.h"
#include "../base/loss.h"

/* Several threads can each capture a stream of the same number: the per-thread default stream. */
static struct {
    uint64_t stream;
    unsigned count; /* 0: free */
} captures[GOS_CAPTURE_MAX];

static struct gos_lock lock = GOS_LOCK_INIT(GOS_RANK_POOL);
static unsigned without_row; /* began while the table was full */
_Atomic unsigned gos_capture_total;

static size_t row_of(uint64_t stream)
{
    size_t i = 0;

    while (i < GOS_CAPTURE_MAX && !(captures[i].count && captures[i].stream == stream))
        i++;
    return i;
}

static size_t free_row(void)
{
    size_t i = 0;

    while (i < GOS_CAPTURE_MAX && captures[i].count)
        i++;
    return i;
}

/* Only under the lock. */
static void change_total(unsigned change)
{
    unsigned now = atomic_load_explicit(&gos_capture_total, memory_order_relaxed);

    atomic_store_explicit(&gos_capture_total, now + change, memory_order_relaxed);
}

static void begin(uint64_t stream)
{
    size_t row = row_of(stream);

    if (row == GOS_CAPTURE_MAX)
        row = free_row();
    if (row == GOS_CAPTURE_MAX) {
        without_row++;
        gos_loss_count(GOS_LOSS_TABLE);
    } else {
        captures[row].stream = stream;
        captures[row].count++;
    }
    change_total(1);
}

void gos_capture_began(uint64_t stream)
{
    gos_lock_acquire(&lock);
    begin(stream);
    gos_lock_release(&lock);
}

/* False for a capture whose beginning we did not see. */
static bool end(uint64_t stream)
{
    size_t row = row_of(stream);

    if (row < GOS_CAPTURE_MAX)
        captures[row].count--;
    else if (without_row)
        without_row--;
    else
        return false;
    return true;
}

void gos_capture_ended(uint64_t stream)
{
    gos_lock_acquire(&lock);
    if (end(stream))
        change_total(-1u);
    gos_lock_release(&lock);
}

bool gos_capture_has(uint64_t stream)
{
    bool has;

    if (!gos_capture_count())
        return false;
    gos_lock_acquire(&lock);
    has = row_of(stream) < GOS_CAPTURE_MAX;
    gos_lock_release(&lock);
    return has;
}

void gos_capture_reset_after_fork(void)
{
    gos_lock_reset(&lock);
    for (size_t i = 0; i < GOS_CAPTURE_MAX; i++)
        captures[i].count = 0;
    without_row = 0;
    atomic_store_explicit(&gos_capture_total, 0, memory_order_relaxed);
}
