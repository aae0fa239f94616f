#include "story.h"

#include <stdatomic.h>
#include <string.h>

#include "../base/os.h"
#include "../base/thread.h"
#include "../track/table.h"
#include "../track/unwind.h"
#include "habit.h"
#include "kept.h"
#include "origin.h"
#include "word.h"

/* A story that nothing has touched for so long is over. */
#define STORY_NS 10000000000u

/* Callers that retry do so at once: what comes after that long is another matter. */
#define RETRY_NS 2000000000u

static __thread struct {
    struct gos_request last; /* of the open story */
    uint64_t number;
    uint64_t first_bytes;
    uint32_t survivable_count; /* refusals that this origin has survived before */
    uint32_t refused_count;
    uint32_t same_size_count;
    uint64_t made_bytes; /* of physical memory since the last refusal, by made_entry; 0: none */
    const char *made_entry;
    uint64_t told_ns; /* when the caller had its answer, if told */
    bool trusted;     /* not told only because of what was learned */
    bool told;        /* it has surfaced, or recovery was tried in silence */
    bool made_up;     /* what has surfaced was injected */
    bool went_on;     /* since the last refusal it got memory, though no answer */
} story __attribute__((tls_model("initial-exec")));

__thread uint32_t gos_story_open __attribute__((tls_model("initial-exec")));

static _Atomic uint64_t survived_count;
static _Atomic uint64_t refused_count;

uint64_t gos_story_number(void)
{
    return story.number;
}

/* Without a stack, what a thread is refused of one kind may be one story, and is no other thread's.
 */
static bool is_same_place(const struct gos_request *request)
{
    if (request->origin || story.last.origin)
        return request->origin == story.last.origin;
    return request->device == story.last.device &&
           (request->is_word || request->kind == story.last.kind);
}

static uint64_t number_for(const struct gos_request *request)
{
    static _Atomic uint64_t unknown_count;

    return request->origin ? request->origin
                           : gos_table_mix(~atomic_fetch_add(&unknown_count, 1)) | 1;
}

/* A story that was put off on trust, and in which nothing succeeded, was misplaced trust. */
static void begin(const struct gos_request *request)
{
    uint64_t number = number_for(request);
    bool is_another = number != story.number;

    if (gos_story_open && story.trusted && is_another)
        gos_habit_forget(story.number);
    if (gos_story_open && is_another)
        gos_kept_settle(story.number);
    story.number = number;
    story.first_bytes = request->bytes;
    story.survivable_count = gos_habit_may_repeat(request->kind) && request->origin
                                 ? gos_habit_survived(request->origin)
                                 : 0;
    story.refused_count = 0;
    story.same_size_count = 0;
    story.trusted = false;
    story.told_ns = gos_kept_told_ns(story.number);
    story.told = story.told_ns && request->monotonic_ns - story.told_ns < RETRY_NS;
    story.made_up = false;
    gos_story_open = 1;
}

/* A story that began with the second of two attempts would take it for the first. */
static bool is_amid_attempts(const struct gos_request *request, uint32_t known_attempts)
{
    return request->bytes == story.last.bytes && known_attempts != GOS_HABIT_ENDLESS &&
           story.same_size_count % known_attempts != 0 &&
           request->monotonic_ns - story.last.monotonic_ns < RETRY_NS;
}

/*
 * What could not help when it was told may help now, however often the caller
 * was refused meanwhile: a cache may have become idle, which nothing shows.  So
 * a story that was told lasts only so long, and less where its caller went on.
 */
static bool was_told_long_ago(const struct gos_request *request)
{
    uint64_t lasts_ns = story.went_on ? RETRY_NS : STORY_NS;

    return story.told && request->monotonic_ns > story.told_ns &&
           request->monotonic_ns - story.told_ns >= lasts_ns;
}

/* What was told of a failure that was made up does not tell why others follow. */
static bool is_first_in_earnest(const struct gos_request *request)
{
    return story.made_up && request->refusal != GOS_REFUSAL_INJECTED;
}

/* Without stacks, asking for more is all that shows another story. */
static bool is_same_story(const struct gos_request *request)
{
    return is_same_place(request) && (request->origin || request->bytes <= story.last.bytes);
}

static bool continues(const struct gos_request *request, uint32_t known_attempts)
{
    return gos_story_open && request->monotonic_ns - story.last.monotonic_ns < STORY_NS &&
           is_same_story(request) && !is_first_in_earnest(request) &&
           (!was_told_long_ago(request) || is_amid_attempts(request, known_attempts));
}

static void count(struct gos_request *request, uint32_t known_attempts)
{
    uint32_t attempts = 1;

    atomic_fetch_add(&refused_count, 1);
    if (request->bytes != story.last.bytes)
        story.same_size_count = 0;
    story.went_on = false;
    story.made_bytes = 0; /* the burst that it belongs to has failed as a whole */
    story.refused_count++;
    story.same_size_count++;
    if (known_attempts == GOS_HABIT_ENDLESS)
        attempts = story.same_size_count;
    else if (known_attempts > 1)
        attempts = (story.same_size_count - 1) % known_attempts + 1;
    request->attempts = attempts;
    request->trials = story.refused_count - attempts;
    request->caller_retries = known_attempts > 1 || story.survivable_count > 0;
    story.last = *request;
}

static bool says_when(const struct gos_request *request)
{
    return gos_word_can_come() && gos_origin_is_torch_allocator(request);
}

static enum gos_story_answer decide(const struct gos_request *request, uint32_t known_attempts)
{
    if (story.same_size_count < known_attempts)
        return GOS_STORY_PUT_OFF;
    story.trusted = !story.told && story.refused_count <= story.survivable_count;
    if (story.told)
        return GOS_STORY_AGAIN;
    if (says_when(request))
        return GOS_STORY_AWAITS;
    return story.trusted ? GOS_STORY_QUIET : GOS_STORY_SURFACES;
}

enum gos_story_answer gos_story_refused(struct gos_request *request)
{
    uint32_t known_attempts = gos_habit_attempts(request);

    if (!continues(request, known_attempts))
        begin(request);
    count(request, known_attempts);
    enum gos_story_answer answer = decide(request, known_attempts);
    if (answer != GOS_STORY_PUT_OFF && answer != GOS_STORY_AGAIN)
        gos_story_told();
    else if (!story.told || !says_when(request)) /* else its word changes the report */
        gos_kept_note(story.number, request);
    return answer;
}

void gos_story_told(void)
{
    story.told = true;
    story.made_up = story.last.refusal == GOS_REFUSAL_INJECTED;
    story.told_ns = gos_os.monotonic_ns(); /* what was tried has taken its time */
}

/* The driver's last refusal was about this very request. */
static void add_driver_call(struct gos_request *request)
{
    request->entry = story.last.entry;
    request->result = story.last.result;
    request->driver_bytes = story.last.bytes;
    request->kind = story.last.kind;
    request->attempts = story.last.attempts;
    request->capture = story.last.capture;
    request->refusal = story.last.refusal;
}

enum gos_story_answer gos_story_word(struct gos_request *request)
{
    bool is_open = gos_story_open && is_same_place(request);
    bool asked_driver = is_open && !story.last.is_word && !story.went_on;

    if (!is_open)
        begin(request);
    if (asked_driver)
        add_driver_call(request);
    else
        story.refused_count++;
    request->trials = gos_habit_count_word(story.number);
    request->caller_retries = story.survivable_count > 0;
    story.last = *request;
    if (gos_kept_told_ns(story.number))
        return GOS_STORY_AGAIN;
    return story.refused_count <= story.survivable_count ? GOS_STORY_QUIET : GOS_STORY_SURFACES;
}

/* Was this the answer to the caller's own asking again? */
static bool is_retry(uint64_t bytes, const char *entry)
{
    return bytes <= story.first_bytes && entry == story.last.entry &&
           gos_os.monotonic_ns() - story.last.monotonic_ns < RETRY_NS;
}

static void close_by(uint64_t bytes, const char *entry)
{
    gos_story_open = 0;
    if (is_retry(bytes, entry))
        gos_habit_learn(story.number, story.refused_count);
    atomic_fetch_add(&survived_count, story.refused_count);
    gos_kept_survived(story.number);
}

/* Address space is no memory; only a request for it is answered by it. */
static bool says_nothing(enum gos_kind kind)
{
    return kind == GOS_KIND_ADDRESS && story.last.kind != GOS_KIND_ADDRESS;
}

/*
 * Half of what was refused, at the same place: callers that shrink their request
 * settle in that range.  All of it, while the story lasts, for the same library
 * from another line.  By which call it comes does not matter; without a stack it
 * can be anybody's.
 */
static bool is_answer(uint64_t bytes)
{
    struct gos_request answer = story.last;
    uint64_t asked_bytes = story.last.driver_bytes ? story.last.driver_bytes : story.last.bytes;

    if (bytes < asked_bytes / 2)
        return false;
    if (!story.last.origin)
        return true;
    answer.is_word = false;
    answer.site = gos_unwind_site();
    answer.requester_module = gos_site_requester_module(gos_site_get(answer.site));
    if (gos_origin_of(&answer) == story.last.origin)
        return true;
    return bytes >= asked_bytes && answer.requester_module == story.last.requester_module &&
           gos_os.monotonic_ns() - story.last.monotonic_ns < STORY_NS;
}

/*
 * A segment is made of several pieces of physical memory, and mapped when it has
 * them all [torch's source]: one piece says nothing before that.
 */
void gos_story_closed_by(uint64_t bytes, enum gos_kind kind, const char *entry)
{
    if (says_nothing(kind))
        return;
    story.went_on = true;
    if (!is_answer(bytes))
        return;
    if (story.last.kind == GOS_KIND_PHYSICAL && kind == GOS_KIND_PHYSICAL) {
        story.made_bytes = bytes;
        story.made_entry = entry;
        return;
    }
    close_by(bytes, entry);
}

void gos_story_block(uint64_t bytes)
{
    if (!gos_origin_is_torch_allocator(&story.last))
        return;
    story.went_on = true;
    if (is_answer(bytes))
        close_by(bytes, story.last.entry);
}

void gos_story_mapped(void)
{
    if (story.last.kind == GOS_KIND_PHYSICAL && story.made_bytes > 0)
        close_by(story.made_bytes, story.made_entry);
}

void gos_story_recovered(void)
{
    gos_story_open = 0;
    gos_kept_recovered(story.number);
}

uint64_t gos_story_survived_count(void)
{
    return atomic_load(&survived_count);
}

uint64_t gos_story_refused_count(void)
{
    return atomic_load(&refused_count);
}

void gos_story_reset_after_fork(void)
{
    gos_habit_reset_after_fork();
    gos_kept_reset_after_fork();
    gos_story_open = 0;
}
