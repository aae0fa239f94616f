#include "episode.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "../base/lock.h"
#include "../base/module.h"
#include "../base/thread.h"
#include "../diagnose/diagnosis.h"
#include "failure.h"

/* An episode that nothing has touched for so long is over. */
#define EPISODE_NS 10000000000u

/*
 * How often each library asks for the same size before it gives up [read in
 * their sources]: torch frees its cache once; CuPy frees its pool, then
 * collects garbage; XLA asks for nine tenths, again and again, so its last
 * attempt cannot be told and surfaces only when the process ends.
 */
#define NEVER_GIVES_UP UINT32_MAX
static const struct {
    const char *library;
    uint32_t attempts;
} habits[] = {
    {"torch", 2},
    {"cupy", 3},
    {"jax", NEVER_GIVES_UP},
    {"tensorflow", NEVER_GIVES_UP},
};

static __thread struct {
    struct gos_request last; /* of the open episode */
    uint32_t same_size_count;
    bool told; /* it has surfaced */
} episode __attribute__((tls_model("initial-exec")));

__thread uint32_t gos_episode_open __attribute__((tls_model("initial-exec")));

/* Guards what threads share: the deferred request and the kept failures. */
static struct gos_lock lock = GOS_LOCK_INIT(GOS_RANK_REPORT);
static struct gos_request deferred; /* .api NULL: none */

/* A failure holds a whole report's evidence, up to a few MiB. */
#define KEPT_MAX 8
static struct {
    uint32_t thread; /* gos_thread_index: never given out twice */
    struct gos_failure *failure;
} kept[KEPT_MAX]; /* newest first */

static _Atomic uint64_t survived_count;
static _Atomic uint64_t failure_count;

static const char *library_of(const struct gos_request *request)
{
    const struct gos_module *module = gos_module_at(request->requester_module);

    return module ? gos_library_name(module->path) : "";
}

/* The habits are those of device allocators; nobody repeats a launch or a pinned buffer. */
static bool may_be_repeated(enum gos_kind kind)
{
    return kind == GOS_KIND_DEVICE || kind == GOS_KIND_POOL || kind == GOS_KIND_PHYSICAL ||
           kind == GOS_KIND_MANAGED;
}

static uint32_t attempts_of(const struct gos_request *request)
{
    const char *library = may_be_repeated(request->kind) ? library_of(request) : "";

    for (size_t i = 0; i < sizeof habits / sizeof habits[0]; i++)
        if (strcmp(habits[i].library, library) == 0)
            return habits[i].attempts;
    return 1;
}

static void set_deferred(const struct gos_request *request)
{
    gos_lock_acquire(&lock);
    deferred = *request;
    gos_lock_release(&lock);
}

static void clear_deferred(void)
{
    gos_lock_acquire(&lock);
    if (deferred.tid == episode.last.tid)
        deferred.api = NULL;
    gos_lock_release(&lock);
}

/* What falls out at the end, or NULL. */
static struct gos_failure *push_kept(struct gos_failure *failure)
{
    gos_lock_acquire(&lock);
    struct gos_failure *oldest = kept[KEPT_MAX - 1].failure;
    memmove(&kept[1], &kept[0], sizeof kept - sizeof kept[0]);
    kept[0].thread = gos_thread_index();
    kept[0].failure = failure;
    gos_lock_release(&lock);
    return oldest;
}

/* This thread's, no longer kept; or NULL. */
static struct gos_failure *take_kept(void)
{
    struct gos_failure *failure = NULL;

    gos_lock_acquire(&lock);
    for (size_t i = 0; i < KEPT_MAX && !failure; i++) {
        if (kept[i].thread != gos_thread_index())
            continue;
        failure = kept[i].failure;
        memmove(&kept[i], &kept[i + 1], (KEPT_MAX - 1 - i) * sizeof kept[0]);
        kept[KEPT_MAX - 1].thread = 0;
        kept[KEPT_MAX - 1].failure = NULL;
    }
    gos_lock_release(&lock);
    return failure;
}

static void begin(void)
{
    gos_failure_free(take_kept());
    episode.told = false;
    episode.same_size_count = 0;
    gos_episode_open = 1;
}

/* Who retries asks for the same or for less; asking for more is another story. */
static bool continues(const struct gos_request *request)
{
    return gos_episode_open && request->monotonic_ns - episode.last.monotonic_ns < EPISODE_NS &&
           request->device == episode.last.device && request->kind == episode.last.kind &&
           request->bytes <= episode.last.bytes;
}

enum gos_episode_answer gos_episode_failed(struct gos_request *request)
{
    uint32_t attempts = attempts_of(request);

    atomic_fetch_add(&failure_count, 1);
    if (!continues(request))
        begin();
    if (request->bytes != episode.last.bytes)
        episode.same_size_count = 0;
    episode.last = *request;
    request->caller_retries = attempts > 1;
    request->attempts = ++episode.same_size_count;
    if (request->attempts < attempts) {
        set_deferred(request);
        return GOS_EPISODE_DEFER;
    }
    clear_deferred();
    if (episode.told)
        return GOS_EPISODE_AGAIN;
    episode.told = true;
    return GOS_EPISODE_SURFACES;
}

/*
 * Something much smaller that fits says nothing about the failed request; half
 * of it does: callers that shrink their request settle in that range.
 */
void gos_episode_closed_by(uint64_t bytes)
{
    if (bytes < episode.last.bytes / 2)
        return;
    gos_episode_open = 0;
    clear_deferred();
    atomic_fetch_add(&survived_count, 1);
    struct gos_failure *failure = take_kept();
    if (failure)
        gos_failure_survived(failure);
    gos_failure_free(failure);
}

void gos_episode_recovered(void)
{
    gos_episode_open = 0;
    clear_deferred();
    gos_failure_free(take_kept());
}

void gos_episode_keep(struct gos_failure *failure)
{
    if (gos_episode_open)
        failure = push_kept(failure);
    gos_failure_free(failure);
}

bool gos_episode_deferred(struct gos_request *request)
{
    gos_lock_acquire(&lock);
    *request = deferred;
    deferred.api = NULL;
    gos_lock_release(&lock);
    return request->api != NULL;
}

uint64_t gos_episode_survived_count(void)
{
    return atomic_load(&survived_count);
}

uint64_t gos_episode_failure_count(void)
{
    return atomic_load(&failure_count);
}

void gos_episode_reset_after_fork(void)
{
    gos_lock_reset(&lock);
    deferred.api = NULL;
    gos_episode_open = 0;
    memset(kept, 0, sizeof kept); /* their memory belongs to the parent's copy */
}
