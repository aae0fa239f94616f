#include "episode.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "../base/lock.h"
#include "../base/os.h"
#include "../base/thread.h"
#include "deferred.h"
#include "failure.h"
#include "habit.h"
#include "moment.h"

/* An episode that nothing has touched for so long is over. */
#define EPISODE_NS 10000000000u

/* Who retries does so at once: what comes after that long is another matter. */
#define RETRY_NS 2000000000u

static __thread struct {
    struct gos_request last; /* of the open episode */
    uint64_t first_bytes;
    uint64_t place;            /* of the first failure (habit.h) */
    uint32_t survivable_count; /* failures that this place has survived before */
    uint32_t failure_count;
    uint32_t same_size_count;
    uint64_t made_bytes; /* of physical memory since the last failure, by made_entry; 0: none */
    const char *made_entry;
    uint64_t told_ns; /* when the caller had its answer, if told */
    bool trusted;     /* put off only because of what was learned */
    bool told;        /* it has surfaced */
    bool made_up;     /* what has surfaced was injected */
    bool went_on;     /* since the last failure it got memory, though too little to be an answer */
} episode __attribute__((tls_model("initial-exec")));

__thread uint32_t gos_episode_open __attribute__((tls_model("initial-exec")));

/* Guards the kept failures. */
static struct gos_lock lock = GOS_LOCK_INIT(GOS_RANK_REPORT);

/* A failure holds a whole report's evidence, up to a few MiB. */
#define KEPT_MAX 8
enum fate { FATE_OPEN, FATE_OVER, FATE_SURVIVED };
static struct kept {
    uint32_t thread; /* gos_thread_index: never given out twice */
    bool is_lent;
    enum fate fate; /* what happened to its episode while it was lent */
    uint64_t ticket;
    struct gos_failure *failure;
} kept[KEPT_MAX]; /* newest first; those without a failure come last */
static uint64_t last_ticket;

static _Atomic uint64_t survived_count;
static _Atomic uint64_t failure_count;

/* With the lock. */
static struct gos_failure *remove_kept(size_t at)
{
    struct gos_failure *failure = kept[at].failure;

    memmove(&kept[at], &kept[at + 1], (KEPT_MAX - 1 - at) * sizeof kept[0]);
    kept[KEPT_MAX - 1] = (struct kept){.failure = NULL};
    return failure;
}

/* With the lock: what has to go for another, KEPT_MAX if nothing can; an empty place is best. */
static size_t place_to_give_up(void)
{
    for (size_t i = KEPT_MAX; i-- > 0;)
        if (!kept[i].is_lent)
            return i;
    return KEPT_MAX;
}

/* What falls out for it, or NULL; the failure itself when all places are lent, and ticket 0. */
static struct gos_failure *push_kept(struct gos_failure *failure, uint64_t *ticket)
{
    struct gos_failure *dropped = failure;

    *ticket = 0;
    gos_lock_acquire(&lock);
    size_t at = place_to_give_up();
    if (at < KEPT_MAX) {
        dropped = remove_kept(at);
        memmove(&kept[1], &kept[0], sizeof kept - sizeof kept[0]);
        *ticket = ++last_ticket;
        kept[0] = (struct kept){
            .thread = gos_thread_index(), .is_lent = true, .ticket = *ticket, .failure = failure};
    }
    gos_lock_release(&lock);
    return dropped;
}

/* This thread's, no longer kept; NULL: there is none, or it is lent and learns its fate later. */
static struct gos_failure *take_kept(enum fate fate)
{
    struct gos_failure *failure = NULL;

    gos_lock_acquire(&lock);
    for (size_t i = 0; i < KEPT_MAX; i++) {
        if (!kept[i].failure || kept[i].thread != gos_thread_index())
            continue;
        if (!kept[i].is_lent) {
            failure = remove_kept(i);
            break;
        }
        kept[i].thread = 0;
        kept[i].fate = fate;
    }
    gos_lock_release(&lock);
    return failure;
}

/* With the lock: KEPT_MAX if it is not there any more. */
static size_t find_kept(uint64_t ticket)
{
    size_t i = 0;

    while (i < KEPT_MAX && (!kept[i].failure || kept[i].ticket != ticket))
        i++;
    return i;
}

/* False while it is lent. */
static bool try_borrow(uint64_t ticket, struct gos_failure **failure)
{
    *failure = NULL;
    gos_lock_acquire(&lock);
    size_t at = find_kept(ticket);
    bool is_lent = at < KEPT_MAX && kept[at].is_lent;
    if (at < KEPT_MAX && !is_lent) {
        kept[at].is_lent = true;
        *failure = kept[at].failure;
    }
    gos_lock_release(&lock);
    return !is_lent;
}

/* An episode that was put off on trust, and in which nothing succeeded, was misplaced trust. */
static void begin(const struct gos_request *request)
{
    if (gos_episode_open && episode.trusted)
        gos_habit_forget(episode.place);
    gos_failure_free(take_kept(FATE_OVER));
    episode.first_bytes = request->bytes;
    episode.place = gos_habit_place(request);
    episode.survivable_count = gos_habit_survived(episode.place);
    episode.failure_count = 0;
    episode.same_size_count = 0;
    episode.trusted = false;
    episode.told = false;
    episode.made_up = false;
    gos_episode_open = 1;
}

/* A story that began with the second of two attempts would take it for the first. */
static bool is_amid_attempts(const struct gos_request *request, uint32_t known_attempts)
{
    return request->bytes == episode.last.bytes && known_attempts != GOS_HABIT_ENDLESS &&
           episode.same_size_count % known_attempts != 0 &&
           request->monotonic_ns - episode.last.monotonic_ns < RETRY_NS;
}

/*
 * What could not help when it was told may help now, however often the caller
 * has failed meanwhile: a cache may have become idle, which nobody sees.  So a
 * story that was told lasts only so long, and less where its caller went on.
 */
static bool was_told_long_ago(const struct gos_request *request)
{
    uint64_t lasts_ns = episode.went_on ? RETRY_NS : EPISODE_NS;

    return episode.told && request->monotonic_ns > episode.told_ns &&
           request->monotonic_ns - episode.told_ns >= lasts_ns;
}

/* What was told of a failure that was made up does not tell why others follow. */
static bool is_first_in_earnest(const struct gos_request *request)
{
    return episode.made_up && request->refusal != GOS_REFUSAL_INJECTED;
}

/* Who retries asks for the same or for less; asking for more is another story. */
static bool continues(const struct gos_request *request, uint32_t known_attempts)
{
    return gos_episode_open && request->monotonic_ns - episode.last.monotonic_ns < EPISODE_NS &&
           request->device == episode.last.device && request->kind == episode.last.kind &&
           request->bytes <= episode.last.bytes && !is_first_in_earnest(request) &&
           (!was_told_long_ago(request) || is_amid_attempts(request, known_attempts));
}

static bool is_put_off(uint32_t known_attempts)
{
    if (episode.same_size_count < known_attempts)
        return true;
    episode.trusted = !episode.told && episode.failure_count <= episode.survivable_count;
    return episode.trusted;
}

/* Which attempt is the last can be told of callers that give up after a known number of them. */
static void put_off(const struct gos_request *request)
{
    struct gos_evidence *evidence = gos_deferred_take_evidence(request->tid);
    bool cannot_tell = episode.trusted || gos_habit_is_vague(request);

    if (cannot_tell) {
        evidence = gos_moment_take(request, evidence);
    } else {
        gos_moment_free(evidence);
        evidence = NULL;
    }
    gos_deferred_set(request, evidence);
}

enum gos_episode_answer gos_episode_failed(struct gos_request *request)
{
    uint32_t known_attempts = gos_habit_attempts(request);

    atomic_fetch_add(&failure_count, 1);
    if (!continues(request, known_attempts))
        begin(request);
    if (request->bytes != episode.last.bytes)
        episode.same_size_count = 0;
    episode.last = *request;
    episode.went_on = false;
    episode.made_bytes = 0; /* the burst that it belongs to has failed as a whole */
    episode.failure_count++;
    request->caller_retries = known_attempts > 1 || episode.survivable_count > 0;
    request->attempts = ++episode.same_size_count;
    if (is_put_off(known_attempts)) {
        put_off(request);
        return GOS_EPISODE_DEFER;
    }
    gos_deferred_clear(request->tid);
    if (episode.told)
        return GOS_EPISODE_AGAIN;
    episode.told = true;
    episode.made_up = request->refusal == GOS_REFUSAL_INJECTED;
    episode.told_ns = request->monotonic_ns;
    gos_failure_free(take_kept(FATE_OVER)); /* of an attempt in silence */
    return GOS_EPISODE_SURFACES;
}

bool gos_episode_is_new(void)
{
    return episode.failure_count == 1;
}

static void end_as(struct gos_failure *failure, enum fate fate)
{
    if (failure && fate == FATE_SURVIVED)
        gos_failure_survived(failure);
    gos_failure_free(failure);
}

/* Was this the answer to the caller's own asking again? */
static bool is_retry(uint64_t bytes, const char *entry)
{
    return bytes <= episode.first_bytes && entry == episode.last.entry &&
           gos_os.monotonic_ns() - episode.last.monotonic_ns < RETRY_NS;
}

static void close_by(uint64_t bytes, const char *entry)
{
    gos_episode_open = 0;
    gos_deferred_clear(episode.last.tid);
    if (is_retry(bytes, entry))
        gos_habit_learn(episode.place, episode.failure_count);
    atomic_fetch_add(&survived_count, episode.failure_count);
    end_as(take_kept(FATE_SURVIVED), FATE_SURVIVED);
}

/* Address space is no memory; only who failed to get some has got it now. */
static bool says_nothing(enum gos_kind kind)
{
    return kind == GOS_KIND_ADDRESS && episode.last.kind != GOS_KIND_ADDRESS;
}

/*
 * Something much smaller that fits says nothing about the failed request; half
 * of it does: callers that shrink their request settle in that range.
 *
 * A segment is made of several pieces of physical memory, and mapped when it has
 * them all [torch's source]: one piece says nothing before that.
 */
void gos_episode_closed_by(uint64_t bytes, enum gos_kind kind, const char *entry)
{
    if (says_nothing(kind))
        return;
    episode.went_on = true;
    if (bytes < episode.last.bytes / 2)
        return;
    if (episode.last.kind == GOS_KIND_PHYSICAL && kind == GOS_KIND_PHYSICAL) {
        episode.made_bytes = bytes;
        episode.made_entry = entry;
        return;
    }
    close_by(bytes, entry);
}

void gos_episode_mapped(void)
{
    if (episode.last.kind == GOS_KIND_PHYSICAL && episode.made_bytes > 0)
        close_by(episode.made_bytes, episode.made_entry);
}

void gos_episode_recovered(void)
{
    gos_episode_open = 0;
    gos_deferred_clear(episode.last.tid);
    gos_failure_free(take_kept(FATE_OVER));
}

uint64_t gos_episode_keep(struct gos_failure *failure)
{
    uint64_t ticket = 0;

    episode.told_ns = gos_os.monotonic_ns(); /* what was tried has taken its time */
    if (gos_episode_open)
        failure = push_kept(failure, &ticket);
    gos_failure_free(failure);
    return ticket;
}

#define LENT_PAUSE_NS 500000u

struct gos_failure *gos_episode_borrow(uint64_t ticket)
{
    struct gos_failure *failure;

    while (!try_borrow(ticket, &failure))
        gos_os.sleep_ns(LENT_PAUSE_NS);
    return failure;
}

void gos_episode_give_back(uint64_t ticket)
{
    struct gos_failure *ended = NULL;
    enum fate fate = FATE_OPEN;

    gos_lock_acquire(&lock);
    size_t at = find_kept(ticket);
    if (at < KEPT_MAX) {
        kept[at].is_lent = false;
        fate = kept[at].fate;
        if (fate != FATE_OPEN)
            ended = remove_kept(at);
    }
    gos_lock_release(&lock);
    end_as(ended, fate);
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
    gos_habit_reset_after_fork();
    gos_deferred_reset_after_fork();
    gos_episode_open = 0;
    memset(kept, 0, sizeof kept); /* their memory belongs to the parent's copy */
}
