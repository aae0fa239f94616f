#include "turn.h"

#include "../base/lock.h"
#include "../base/options.h"
#include "../base/os.h"
#include "../base/thread.h"
#include "../observe/gil.h"
#include "../recover/flush_plan.h"
#include "../recover/step_wait.h"
#include "../track/registry.h"

static struct gos_lock turn = GOS_LOCK_INIT(GOS_RANK_EPISODE);
static struct {
    uint64_t ended_ns;
    uint64_t freed_count; /* of the registry, then */
    uint64_t bytes;
    uint32_t thread; /* gos_thread_index */
    int device;
    int result;
    enum gos_kind kind;
    enum gos_refusal refusal;
    bool recovered;
} last_story; /* guarded by the lock */

/* Inside a framework's allocator nobody waits longer, for its lock may be what the other needs. */
#define IN_ALLOCATOR_NS 200000000u

/* Whoever recovers may need the interpreter to do so. */
static bool wait_for_turn(void)
{
    uint64_t most_ns = gos_options.retry_budget + gos_step_wait_longest_ns();

    if (most_ns > IN_ALLOCATOR_NS && gos_flush_caller_is_in_allocator())
        most_ns = IN_ALLOCATOR_NS;
    void *released = gos_gil_release();
    bool taken = gos_lock_acquire_within(&turn, most_ns);
    gos_gil_retake(released);
    return taken;
}

bool gos_turn_take(void)
{
    return gos_lock_try(&turn) || wait_for_turn();
}

/* Threads that "fail together" do not all do so before the first one's story ends. */
#define TOGETHER_NS 100000000u

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
           request->monotonic_ns - last_story.ended_ns < TOGETHER_NS &&
           last_story.freed_count == freed_count();
}

bool gos_turn_is_told(const struct gos_request *request, bool shared)
{
    /* One failure that was made up says nothing of any other. */
    if (request->refusal == GOS_REFUSAL_INJECTED || last_story.refusal == GOS_REFUSAL_INJECTED)
        return false;
    if (last_story.device != request->device || !is_of_now(request))
        return false;
    if (last_story.recovered)
        return !shared;
    return last_story.kind == request->kind && last_story.result == request->result &&
           last_story.bytes <= request->bytes;
}

void gos_turn_end(const struct gos_request *request, bool recovered)
{
    last_story.ended_ns = gos_os.monotonic_ns();
    last_story.freed_count = freed_count();
    last_story.thread = gos_thread_index();
    last_story.bytes = request->bytes;
    last_story.device = request->device;
    last_story.result = request->result;
    last_story.kind = request->kind;
    last_story.refusal = request->refusal;
    last_story.recovered = recovered;
    gos_lock_release(&turn);
}

bool gos_turn_pass(void)
{
    bool recovered = last_story.recovered;

    gos_lock_release(&turn);
    return recovered;
}

void gos_turn_reset_after_fork(void)
{
    gos_lock_reset(&turn);
    last_story.ended_ns = 0;
}
