#include "deferred.h"

#include <stddef.h>
#include <string.h>

#include "../base/lock.h"
#include "../base/thread.h"
#include "moment.h"

#define DEFERRED_MAX 8

static struct gos_lock lock = GOS_LOCK_INIT(GOS_RANK_REPORT);
static struct deferred {
    struct gos_request request;    /* .api NULL: free */
    struct gos_evidence *evidence; /* of its moment, or NULL */
} deferred[DEFERRED_MAX];

static struct deferred *of_thread(int tid)
{
    for (size_t i = 0; i < DEFERRED_MAX; i++)
        if (deferred[i].request.api && deferred[i].request.tid == tid)
            return &deferred[i];
    return NULL;
}

static struct deferred *unused(void)
{
    for (size_t i = 0; i < DEFERRED_MAX; i++)
        if (!deferred[i].request.api)
            return &deferred[i];
    for (size_t i = 0; i < DEFERRED_MAX; i++)
        if (!gos_thread_is_alive(deferred[i].request.tid))
            return &deferred[i];
    return NULL;
}

static struct deferred *oldest(void)
{
    struct deferred *found = &deferred[0];

    for (size_t i = 1; i < DEFERRED_MAX; i++)
        if (deferred[i].request.monotonic_ns < found->request.monotonic_ns)
            found = &deferred[i];
    return found;
}

void gos_deferred_set(const struct gos_request *request, struct gos_evidence *evidence)
{
    gos_lock_acquire(&lock);
    struct deferred *place = of_thread(request->tid);
    if (!place)
        place = unused();
    if (!place)
        place = oldest();
    struct gos_evidence *dropped = place->evidence;
    *place = (struct deferred){*request, evidence};
    gos_lock_release(&lock);
    gos_moment_free(dropped);
}

struct gos_evidence *gos_deferred_take_evidence(int tid)
{
    struct gos_evidence *evidence = NULL;

    gos_lock_acquire(&lock);
    struct deferred *place = of_thread(tid);
    if (place) {
        evidence = place->evidence;
        place->evidence = NULL;
    }
    gos_lock_release(&lock);
    return evidence;
}

void gos_deferred_clear(int tid)
{
    struct gos_evidence *dropped = NULL;

    gos_lock_acquire(&lock);
    struct deferred *place = of_thread(tid);
    if (place) {
        dropped = place->evidence;
        *place = (struct deferred){.evidence = NULL};
    }
    gos_lock_release(&lock);
    gos_moment_free(dropped);
}

static struct deferred *newest(void)
{
    struct deferred *found = NULL;

    for (size_t i = 0; i < DEFERRED_MAX; i++)
        if (deferred[i].request.api &&
            (!found || deferred[i].request.monotonic_ns > found->request.monotonic_ns))
            found = &deferred[i];
    return found;
}

bool gos_deferred_take(struct gos_request *request, struct gos_evidence **evidence)
{
    gos_lock_acquire(&lock);
    struct deferred *place = newest();
    if (place) {
        *request = place->request;
        *evidence = place->evidence;
        *place = (struct deferred){.evidence = NULL};
    }
    gos_lock_release(&lock);
    return place != NULL;
}

void gos_deferred_reset_after_fork(void)
{
    gos_lock_reset(&lock);
    memset(deferred, 0, sizeof deferred);
}
