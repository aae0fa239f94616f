#include "turn.h"

#include <stdatomic.h>

#include "../base/lock.h"
#include "../base/lock_order.h"
#include "../base/options.h"
#include "../base/os.h"
#include "../base/thread.h"
#include "../diagnose/saturate.h"
#include "../observe/gil.h"
#include "../recover/flush_plan.h"
#include "../recover/ladder.h"
#include "../recover/step_wait.h"
#include "../track/capture.h"
#include "../track/registry.h"

static struct gos_lock turn = GOS_LOCK_INIT(GOS_RANK_TURN);
static _Atomic int owner; /* thread id; 0: nobody, or one that is just taking it */
static struct {
    uint64_t ended_ns;
    uint64_t met_ns;      /* when the last thread failed that it is about; not before its end */
    uint64_t freed_count; /* of the registry, then */
    uint64_t bytes;
    uint64_t origin;
    uint32_t thread; /* gos_thread_index */
    int device;
    int result;
    enum gos_refusal refusal;
    bool recovered;
} last_story; /* guarded by the lock */

/* How long to wait before looking again whether who has the turn still lives. */
#define LOOK_NS 100000000u

static bool note_taken(bool taken)
{
    if (taken)
        atomic_store(&owner, gos_os.tid());
    return taken;
}

/* The lock stays held; only one can follow the same owner. */
static bool inherit(void)
{
    int last = atomic_load(&owner);

    if (!last || gos_thread_is_alive(last) ||
        !atomic_compare_exchange_strong(&owner, &last, gos_os.tid()))
        return false;
    gos_lock_order_taken(&turn);
    return true;
}

static bool take_or_inherit(uint64_t timeout_ns)
{
    return inherit() || note_taken(gos_lock_acquire_within(&turn, timeout_ns));
}

static bool take_within(uint64_t timeout_ns)
{
    for (; timeout_ns > LOOK_NS; timeout_ns -= LOOK_NS)
        if (take_or_inherit(LOOK_NS))
            return true;
    return take_or_inherit(timeout_ns);
}

static void give_back(void)
{
    atomic_store(&owner, 0);
    gos_lock_release(&turn);
}

/* Inside a framework's allocator nobody waits longer, for its lock may be what the other needs. */
#define IN_ALLOCATOR_NS 200000000u
/* Nor with the GIL, which others need. */
#define WITH_GIL_NS 20000000u

static uint64_t longest_wait_ns(void)
{
    uint64_t most_ns =
        gos_beyond(gos_options.retry_budget, gos_thread.turn_ns) + gos_step_wait_longest_ns();

    if (gos_gil_is_held())
        return gos_lesser(most_ns, WITH_GIL_NS);
    if (most_ns > IN_ALLOCATOR_NS && gos_flush_caller_is_in_allocator())
        return IN_ALLOCATOR_NS;
    return most_ns;
}

static bool wait_and_count(void)
{
    uint64_t began_ns = gos_os.monotonic_ns();
    uint64_t waited_ns = gos_ladder_waited_ns();
    void *detached = gos_gil_detach();
    bool taken = take_within(longest_wait_ns());

    gos_gil_retake(detached);
    gos_thread.turn_ns +=
        gos_beyond(gos_os.monotonic_ns() - began_ns, gos_ladder_waited_ns() - waited_ns);
    return taken;
}

bool gos_turn_take(bool again)
{
    if (!again)
        gos_thread.turn_ns = 0;
    return note_taken(gos_lock_try(&turn)) || wait_and_count();
}

const char *gos_turn_refusal(void)
{
    return gos_gil_is_held() ? "another thread is recovering, which may take the GIL that the "
                               "failing thread holds"
                             : "the recovery of another thread took all the time";
}

uint64_t gos_turn_spent_ns(void)
{
    return gos_thread.turn_ns;
}

/*
 * Threads that "fail together" do not all do so before the first one's story
 * ends: the driver refuses them one by one, at 2 ms each [H200, 72 GiB of 31].
 */
#define TOGETHER_NS 100000000u       /* between one and the next */
#define TOGETHER_MOST_NS 2000000000u /* the whole queue */

static uint64_t freed_count(void)
{
    uint64_t allocated;
    uint64_t freed;

    gos_registry_counts(&allocated, &freed);
    return freed;
}

/* The story ended after this thread had failed, or only just, and all is still as it was. */
static bool is_of_now(const struct gos_request *request)
{
    if (last_story.ended_ns >= request->monotonic_ns)
        return true;
    return !last_story.recovered && last_story.thread != gos_thread_index() &&
           request->monotonic_ns - last_story.ended_ns < TOGETHER_MOST_NS &&
           gos_beyond(request->monotonic_ns, last_story.met_ns) < TOGETHER_NS &&
           last_story.freed_count == freed_count();
}

bool gos_turn_is_told(const struct gos_request *request, bool shared)
{
    /* One failure that was made up says nothing of any other. */
    if (request->refusal == GOS_REFUSAL_INJECTED || last_story.refusal == GOS_REFUSAL_INJECTED)
        return false;
    if (last_story.device != request->device || !is_of_now(request))
        return false;
    if (last_story.recovered) /* beside a capture nobody asks the driver again */
        return !shared && gos_capture_count() == 0;
    /* For another library a cache may be asked that could not be asked for this one. */
    if (last_story.result != request->result || last_story.origin != request->origin ||
        (!request->origin && last_story.bytes > request->bytes))
        return false;
    if (request->monotonic_ns > last_story.met_ns)
        last_story.met_ns = request->monotonic_ns;
    return true;
}

void gos_turn_end(const struct gos_request *request, bool recovered)
{
    last_story.ended_ns = last_story.met_ns = gos_os.monotonic_ns();
    last_story.freed_count = freed_count();
    last_story.thread = gos_thread_index();
    last_story.bytes = request->bytes;
    last_story.origin = request->origin;
    last_story.device = request->device;
    last_story.result = request->result;
    last_story.refusal = request->refusal;
    last_story.recovered = recovered;
    give_back();
}

bool gos_turn_pass(void)
{
    bool recovered = last_story.recovered;

    give_back();
    return recovered;
}

void gos_turn_reset_after_fork(void)
{
    atomic_store(&owner, 0);
    gos_lock_reset(&turn);
    last_story.ended_ns = 0;
}
