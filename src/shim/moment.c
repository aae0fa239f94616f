#include "moment.h"

#include "../base/loss.h"
#include "../observe/observe.h"
#include "../track/registry.h"
#include "stack_room.h"

/* A small one costs the walk and the sorting some 40 ns. */
#define LIVE_MAX 8192

/* Until then no other process is taken to have changed much. */
#define HOLDS_NS 100000000u

static bool still_holds(const struct gos_evidence *evidence, const struct gos_request *request,
                        uint64_t allocated, uint64_t freed)
{
    return evidence && evidence->allocated_count == allocated && evidence->freed_count == freed &&
           request->wall_ns >= evidence->wall_ns && request->wall_ns - evidence->wall_ns < HOLDS_NS;
}

void gos_moment_free(struct gos_evidence *evidence)
{
    if (!evidence)
        return;
    gos_observe_release(evidence);
    gos_memory_free(evidence, sizeof *evidence);
}

static struct gos_evidence *take(const struct gos_request *request)
{
    struct gos_evidence *evidence =
        gos_stack_has_room() ? gos_memory_alloc(sizeof *evidence) : NULL;

    if (!evidence) {
        gos_loss_count(GOS_LOSS_REPORT);
        return NULL;
    }
    if (gos_observe(evidence, request, GOS_OBSERVE_MOMENT) == 0)
        return evidence;
    gos_moment_free(evidence);
    return NULL;
}

struct gos_evidence *gos_moment_take(const struct gos_request *request,
                                     struct gos_evidence *earlier)
{
    uint64_t allocated, freed;

    gos_registry_counts(&allocated, &freed);
    if (still_holds(earlier, request, allocated, freed)) {
        earlier->request = *request;
        return earlier;
    }
    gos_moment_free(earlier);
    return allocated - freed <= LIVE_MAX ? take(request) : NULL;
}

void gos_moment_finish(struct gos_evidence *evidence, struct gos_evidence *moment)
{
    *evidence = *moment;
    gos_memory_free(moment, sizeof *moment);
    gos_observe_lasting(evidence);
}
