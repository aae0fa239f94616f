#include "capture.h"

#include <stdatomic.h>
#include <stddef.h>

#include "../base/hot.h"
#include "../base/lock.h"
#include "../base/loss.h"
#include "../base/os.h"
#include "../base/thread.h"
#include "../cuda/driver.h"

/* Several threads can each capture a stream of the same number: the per-thread default stream. */
static struct {
    struct gos_capture_origin origin;
    uint64_t context;
    uint64_t graph;  /* 0: not known */
    uint32_t thread; /* whose per-thread stream it is, else 0 */
    unsigned count;  /* 0: free */
} captures[GOS_CAPTURE_MAX];

static struct gos_lock lock = GOS_LOCK_INIT(GOS_RANK_POOL);
static unsigned without_row; /* began while the table was full */
GOS_READ_MOSTLY _Atomic unsigned gos_capture_total;

static const uint64_t per_thread_stream = (uint64_t)(uintptr_t)CU_STREAM_PER_THREAD;

static uint32_t owner_of(uint64_t stream)
{
    return stream == per_thread_stream ? gos_thread_index() : 0;
}

static bool matches(size_t i, uint64_t stream, uint32_t thread)
{
    return captures[i].count && captures[i].origin.stream == stream && captures[i].thread == thread;
}

static size_t row_of(uint64_t stream)
{
    uint32_t thread = owner_of(stream);
    size_t i = 0;

    while (i < GOS_CAPTURE_MAX && !matches(i, stream, thread))
        i++;
    return i;
}

static size_t row_in(uint64_t stream, uint64_t context)
{
    uint32_t thread = owner_of(stream);
    size_t i = 0;

    while (i < GOS_CAPTURE_MAX && !(matches(i, stream, thread) && captures[i].context == context))
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

static void begin(uint64_t stream, uint64_t context)
{
    size_t row = row_in(stream, context);

    if (row == GOS_CAPTURE_MAX)
        row = free_row();
    if (row == GOS_CAPTURE_MAX) {
        without_row++;
        gos_loss_count(GOS_LOSS_TABLE);
    } else {
        captures[row].context = context;
        captures[row].thread = owner_of(stream);
        if (captures[row].count++ == 0) { /* else it is about to be refused */
            captures[row].graph = 0;
            captures[row].origin = (struct gos_capture_origin){
                .stream = stream, .began_wall_ns = gos_os.wall_ns(), .tid = gos_os.tid()};
        }
    }
    change_total(1);
}

void gos_capture_began(uint64_t stream, uint64_t context)
{
    gos_lock_acquire(&lock);
    begin(stream, context);
    gos_lock_release(&lock);
}

void gos_capture_begun_at(uint64_t stream, uint32_t site)
{
    gos_lock_acquire(&lock);
    size_t row = row_of(stream);
    if (row < GOS_CAPTURE_MAX && captures[row].origin.site == 0)
        captures[row].origin.site = site;
    gos_lock_release(&lock);
}

static size_t newest(void)
{
    size_t found = GOS_CAPTURE_MAX;

    for (size_t i = 0; i < GOS_CAPTURE_MAX; i++)
        if (captures[i].count &&
            (found == GOS_CAPTURE_MAX ||
             captures[i].origin.began_wall_ns > captures[found].origin.began_wall_ns))
            found = i;
    return found;
}

struct gos_capture_origin gos_capture_find(uint64_t stream)
{
    struct gos_capture_origin origin = {.stream = 0};

    if (gos_capture_count() == 0)
        return origin;
    gos_lock_acquire(&lock);
    size_t row = row_of(stream);
    if (row == GOS_CAPTURE_MAX)
        row = newest();
    if (row < GOS_CAPTURE_MAX)
        origin = captures[row].origin;
    gos_lock_release(&lock);
    return origin;
}

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

bool gos_capture_ended(uint64_t stream)
{
    bool ended;

    gos_lock_acquire(&lock);
    ended = end(stream);
    if (ended)
        change_total(-1u);
    gos_lock_release(&lock);
    return ended;
}

void gos_capture_context_ended(uint64_t context)
{
    if (gos_capture_count() == 0)
        return;
    gos_lock_acquire(&lock);
    for (size_t i = 0; i < GOS_CAPTURE_MAX; i++) {
        if (captures[i].count == 0 || captures[i].context != context)
            continue;
        change_total(0u - captures[i].count);
        captures[i].count = 0;
    }
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

void gos_capture_makes(uint64_t stream, uint64_t graph)
{
    size_t row;

    gos_lock_acquire(&lock);
    row = row_of(stream);
    if (row < GOS_CAPTURE_MAX)
        captures[row].graph = graph;
    gos_lock_release(&lock);
}

uint64_t gos_capture_made(uint64_t stream)
{
    uint64_t graph;
    size_t row;

    gos_lock_acquire(&lock);
    row = row_of(stream);
    graph = row < GOS_CAPTURE_MAX ? captures[row].graph : 0;
    gos_lock_release(&lock);
    return graph;
}

static bool driver_says_captured(uint64_t stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

    return gos_driver.cuStreamIsCapturing &&
           gos_driver.cuStreamIsCapturing((CUstream)(uintptr_t)stream, &status) == CUDA_SUCCESS &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

__attribute__((cold, noinline)) bool gos_capture_includes_now(uint64_t stream, bool per_thread)
{
    if (stream == 0 && per_thread)
        stream = per_thread_stream;
    return (stream != per_thread_stream && gos_capture_has(stream)) || driver_says_captured(stream);
}

uint64_t gos_capture_graph(uint64_t stream, bool per_thread)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id;
    CUgraph graph = NULL;

    if (stream == 0 && per_thread)
        stream = per_thread_stream;
    if (!gos_driver.cuStreamGetCaptureInfo ||
        gos_driver.cuStreamGetCaptureInfo((CUstream)(uintptr_t)stream, &status, &id, &graph, NULL,
                                          NULL) != CUDA_SUCCESS ||
        status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return 0;
    return (uint64_t)(uintptr_t)graph;
}

void gos_capture_reset_after_fork(void)
{
    gos_lock_reset(&lock);
    for (size_t i = 0; i < GOS_CAPTURE_MAX; i++)
        captures[i].count = 0;
    without_row = 0;
    atomic_store_explicit(&gos_capture_total, 0, memory_order_relaxed);
}
