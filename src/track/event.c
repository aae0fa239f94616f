#include "event.h"

#include "../base/lock.h"
#include "../base/os.h"
#include "../base/thread.h"

static struct gos_lock lock = GOS_LOCK_INIT(GOS_RANK_EVENT);
static struct gos_event ring[GOS_EVENT_RING];
static uint64_t added_count; /* the next one goes to added_count % GOS_EVENT_RING */

void gos_event_add(const struct gos_event *event)
{
    struct gos_event one = *event;

    one.wall_ns = gos_os.wall_ns();
    one.tid = gos_thread.tid ? gos_thread.tid : gos_os.tid();
    gos_lock_acquire(&lock);
    ring[added_count++ % GOS_EVENT_RING] = one;
    gos_lock_release(&lock);
}

/* Of more than fit, the newest are copied: they are nearest to the failure. */
size_t gos_event_copy(struct gos_event *events, size_t max, uint64_t *lost)
{
    size_t count = max < GOS_EVENT_RING ? max : GOS_EVENT_RING;
    uint64_t first;

    gos_lock_acquire(&lock);
    if (count > added_count)
        count = (size_t)added_count;
    first = added_count - count;
    for (size_t i = 0; i < count; i++)
        events[i] = ring[(first + i) % GOS_EVENT_RING];
    gos_lock_release(&lock);
    *lost = first;
    return count;
}

void gos_event_reset_after_fork(void)
{
    gos_lock_reset(&lock);
    added_count = 0;
}
