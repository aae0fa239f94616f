#include "episode.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "../base/lock.h"
#include "../base/module.h"
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
    struct gos_failure *kept;
} episode __attribute__((tls_model("initial-exec")));

__thread uint32_t gos_episode_open __attribute__((tls_model("initial-exec")));

static struct gos_lock deferred_lock = GOS_LOCK_INIT(GOS_RANK_REPORT);
static struct gos_request deferred; /* .api NULL: none */
static _Atomic uint64_t survived_count;
static _Atomic uint64_t failure_count;

static const char *library_of(const struct gos_request *request)
{
    const struct gos_module *module = gos_module_at(request->requester_module);

    return module ? gos_library_name(module->path) : "";
}

static uint32_t attempts_of(const struct gos_request *request)
{
    const char *library = library_of(request);

    for (size_t i = 0; i < sizeof habits / sizeof habits[0]; i++)
        if (strcmp(habits[i].library, library) == 0)
            return habits[i].attempts;
    return 1;
}

static void set_deferred(const struct gos_request *request)
{
    gos_lock_acquire(&deferred_lock);
    deferred = *request;
    gos_lock_release(&deferred_lock);
}

static void clear_deferred(void)
{
    gos_lock_acquire(&deferred_lock);
    if (deferred.tid == episode.last.tid)
        deferred.api = NULL;
    gos_lock_release(&deferred_lock);
}

static void begin(void)
{
    gos_failure_free(episode.kept);
    episode.kept = NULL;
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
    if (episode.kept)
        gos_failure_survived(episode.kept);
    gos_failure_free(episode.kept);
    episode.kept = NULL;
}

void gos_episode_keep(struct gos_failure *failure)
{
    if (!gos_episode_open) {
        gos_failure_free(failure);
        return;
    }
    gos_failure_free(episode.kept);
    episode.kept = failure;
}

bool gos_episode_deferred(struct gos_request *request)
{
    gos_lock_acquire(&deferred_lock);
    *request = deferred;
    deferred.api = NULL;
    gos_lock_release(&deferred_lock);
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
    gos_lock_reset(&deferred_lock);
    deferred.api = NULL;
    gos_episode_open = 0;
    episode.kept = NULL; /* its memory belongs to the parent's copy */
}
