#include "deferred.h"

#include <stddef.h>
#include <string.h>

#include "../base/lock.h"
#include "../base/thread.h"

#define DEFERRED_MAX 8

static struct gos_lock lock = GOS_LOCK_INIT(GOS_RANK_REPORT);
static struct gos_request deferred[DEFERRED_MAX]; /* .api NULL: free */

static struct gos_request *of_thread(int tid)
{
    for (size_t i = 0; i < DEFERRED_MAX; i++)
        if (deferred[i].api && deferred[i].tid == tid)
            return &deferred[i];
    return NULL;
}

static struct gos_request *unused(void)
{
    for (size_t i = 0; i < DEFERRED_MAX; i++)
        if (!deferred[i].api)
            return &deferred[i];
    for (size_t i = 0; i < DEFERRED_MAX; i++)
        if (!gos_thread_is_alive(deferred[i].tid))
            return &deferred[i];
    return NULL;
}

static struct gos_request *oldest(void)
{
    struct gos_request *found = &deferred[0];

    for (size_t i = 1; i < DEFERRED_MAX; i++)
        if (deferred[i].monotonic_ns < found->monotonic_ns)
            found = &deferred[i];
    return found;
}

void gos_deferred_set(const struct gos_request *request)
{
    gos_lock_acquire(&lock);
    struct gos_request *place = of_thread(request->tid);
    if (!place)
        place = unused();
    if (!place)
        place = oldest();
    *place = *request;
    gos_lock_release(&lock);
}

void gos_deferred_clear(int tid)
{
    gos_lock_acquire(&lock);
    struct gos_request *place = of_thread(tid);
    if (place)
        place->api = NULL;
    gos_lock_release(&lock);
}

static struct gos_request *newest(void)
{
    struct gos_request *found = NULL;

    for (size_t i = 0; i < DEFERRED_MAX; i++)
        if (deferred[i].api && (!found || deferred[i].monotonic_ns > found->monotonic_ns))
            found = &deferred[i];
    return found;
}

bool gos_deferred_take(struct gos_request *request)
{
    gos_lock_acquire(&lock);
    struct gos_request *place = newest();
    if (place) {
        *request = *place;
        place->api = NULL;
    }
    gos_lock_release(&lock);
    return place != NULL;
}

void gos_deferred_reset_after_fork(void)
{
    gos_lock_reset(&lock);
    memset(deferred, 0, sizeof deferred);
}
