#include "habit.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "../base/lock.h"
#include "../base/module.h"
#include "../diagnose/diagnosis.h"
#include "origin.h"
#include "word.h"

/*
 * How often each library asks for the same size before it gives up [read in
 * their sources]: torch frees its cache once; CuPy frees its pool, then
 * collects garbage, but asks only once where its pool is switched off; XLA asks
 * for nine tenths, again and again, so its last attempt cannot be told and
 * surfaces only when the process ends.
 */
static const struct {
    const char *library;
    uint32_t attempts;
} known[] = {
    {"torch", 2},
    {"cupy", 3},
    {"jax", GOS_HABIT_ENDLESS},
    {"tensorflow", GOS_HABIT_ENDLESS},
};
#define KNOWN_MAX (sizeof known / sizeof known[0])

/* More than that is not patience but a loop. */
#define SURVIVED_MAX 64

static struct gos_lock lock = GOS_LOCK_INIT(GOS_RANK_REPORT);
static struct {
    uint64_t origin; /* 0: free */
    uint32_t survived;
    uint32_t word_count;
} learned[64];
#define LEARNED_MAX (sizeof learned / sizeof learned[0])
static uint32_t replaced_next; /* with a full table */

/* Device allocators repeat; nobody repeats a launch or a pinned buffer. */
bool gos_habit_may_repeat(enum gos_kind kind)
{
    return kind == GOS_KIND_DEVICE || kind == GOS_KIND_POOL || kind == GOS_KIND_PHYSICAL ||
           kind == GOS_KIND_MANAGED;
}

static const char *library_of(const struct gos_request *request)
{
    const struct gos_module *module = gos_module_at(request->requester_module);

    return module ? gos_library_name(module->path) : "";
}

/*
 * torch has nothing to free where the driver's pool is its cache
 * (cudaMallocAsync), and repeats nothing outside of its allocator.
 */
static bool is_single(const struct gos_request *request)
{
    return request->kind == GOS_KIND_POOL ||
           (gos_word_can_come() && !gos_origin_is_torch_allocator(request));
}

static size_t find_known(const struct gos_request *request)
{
    const char *library = gos_habit_may_repeat(request->kind) ? library_of(request) : "";
    size_t i = 0;

    if (strcmp(library, "torch") == 0 && is_single(request))
        return KNOWN_MAX;
    while (i < KNOWN_MAX && strcmp(known[i].library, library) != 0)
        i++;
    return i;
}

uint32_t gos_habit_attempts(const struct gos_request *request)
{
    size_t i = find_known(request);

    return i < KNOWN_MAX ? known[i].attempts : 1;
}

static size_t find(uint64_t origin)
{
    size_t i = 0;

    while (i < LEARNED_MAX && learned[i].origin != origin)
        i++;
    return i;
}

uint32_t gos_habit_survived(uint64_t origin)
{
    uint32_t survived = 0;

    if (origin == 0)
        return 0;
    gos_lock_acquire(&lock);
    size_t i = find(origin);
    if (i < LEARNED_MAX)
        survived = learned[i].survived;
    gos_lock_release(&lock);
    return survived;
}

static size_t find_or_make(uint64_t origin)
{
    size_t i = find(origin);

    if (i == LEARNED_MAX)
        i = find(0);
    if (i == LEARNED_MAX)
        i = replaced_next++ % LEARNED_MAX;
    if (learned[i].origin != origin)
        learned[i].survived = learned[i].word_count = 0;
    learned[i].origin = origin;
    return i;
}

void gos_habit_learn(uint64_t origin, uint32_t failure_count)
{
    uint32_t survived = failure_count < SURVIVED_MAX ? failure_count : SURVIVED_MAX;

    if (origin == 0)
        return;
    gos_lock_acquire(&lock);
    size_t i = find_or_make(origin);
    if (learned[i].survived < survived)
        learned[i].survived = survived;
    gos_lock_release(&lock);
}

void gos_habit_forget(uint64_t origin)
{
    if (origin == 0)
        return;
    gos_lock_acquire(&lock);
    size_t i = find(origin);
    if (i < LEARNED_MAX)
        learned[i].survived = 0;
    gos_lock_release(&lock);
}

uint32_t gos_habit_count_word(uint64_t origin)
{
    gos_lock_acquire(&lock);
    uint32_t before = learned[find_or_make(origin)].word_count++;
    gos_lock_release(&lock);
    return before;
}

void gos_habit_reset_after_fork(void)
{
    gos_lock_reset(&lock);
    memset(learned, 0, sizeof learned);
}
