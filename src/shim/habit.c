#include "habit.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "../base/lock.h"
#include "../base/module.h"
#include "../diagnose/diagnosis.h"
#include "../track/site.h"
#include "../track/table.h"

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
    bool vague;
} known[] = {
    {"torch", 2, false},
    {"cupy", 3, true},
    {"jax", GOS_HABIT_ENDLESS, true},
    {"tensorflow", GOS_HABIT_ENDLESS, true},
};
#define KNOWN_MAX (sizeof known / sizeof known[0])

/* A program may have one function through which everything is allocated: its callers count too. */
#define PLACE_FRAMES 3

/* More than that is not patience but a loop. */
#define SURVIVED_MAX 64

static struct gos_lock lock = GOS_LOCK_INIT(GOS_RANK_REPORT);
static struct {
    uint64_t place; /* 0: free */
    uint32_t survived;
} learned[64];
#define LEARNED_MAX (sizeof learned / sizeof learned[0])
static uint32_t replaced_next; /* with a full table */

/* Device allocators repeat; nobody repeats a launch or a pinned buffer. */
static bool may_be_repeated(enum gos_kind kind)
{
    return kind == GOS_KIND_DEVICE || kind == GOS_KIND_POOL || kind == GOS_KIND_PHYSICAL ||
           kind == GOS_KIND_MANAGED;
}

static const char *library_of(const struct gos_request *request)
{
    const struct gos_module *module = gos_module_at(request->requester_module);

    return module ? gos_library_name(module->path) : "";
}

/* torch has nothing to free where the driver's pool is its cache (cudaMallocAsync). */
static size_t find_known(const struct gos_request *request)
{
    const char *library = may_be_repeated(request->kind) ? library_of(request) : "";
    size_t i = 0;

    if (request->kind == GOS_KIND_POOL && strcmp(library, "torch") == 0)
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

bool gos_habit_is_vague(const struct gos_request *request)
{
    size_t i = find_known(request);

    return i < KNOWN_MAX && known[i].vague;
}

static uint32_t first_of_requester(const struct gos_site *site, uint32_t module)
{
    uint32_t i = 0;

    while (i < site->native_count && site->native[i].module != module)
        i++;
    return i;
}

static bool is_interpreter(uint32_t module)
{
    const struct gos_module *found = gos_module_at(module);

    return found && strcmp(gos_library_name(found->path), "python") == 0;
}

static uint64_t add_python(uint64_t place, const struct gos_site *site)
{
    for (uint32_t i = 0; i < site->python_count && i < PLACE_FRAMES; i++)
        place = gos_table_mix(place ^ (uintptr_t)site->python[i].file ^
                              (uint64_t)site->python[i].line << 48);
    return place;
}

/* Who calls through an interpreter is known by its lines, not by the frame that calls for it. */
uint64_t gos_habit_place(const struct gos_request *request)
{
    const struct gos_site *site =
        may_be_repeated(request->kind) ? gos_site_get(request->site) : NULL;
    uint64_t place = (uint64_t)(uintptr_t)request->api;

    if (!site)
        return 0;
    uint32_t first = first_of_requester(site, request->requester_module);
    uint32_t end = first;
    for (; end < site->native_count && end < first + PLACE_FRAMES; end++) {
        const struct gos_native_frame *frame = &site->native[end];
        if (is_interpreter(frame->module))
            break;
        place = gos_table_mix(place ^ frame->offset ^ (uint64_t)frame->module << 48);
    }
    if (end < first + PLACE_FRAMES)
        place = add_python(place, site);
    return end > first || site->python_count > 0 ? place : 0;
}

static size_t find(uint64_t place)
{
    size_t i = 0;

    while (i < LEARNED_MAX && learned[i].place != place)
        i++;
    return i;
}

uint32_t gos_habit_survived(uint64_t place)
{
    uint32_t survived = 0;

    if (place == 0)
        return 0;
    gos_lock_acquire(&lock);
    size_t i = find(place);
    if (i < LEARNED_MAX)
        survived = learned[i].survived;
    gos_lock_release(&lock);
    return survived;
}

static size_t find_or_make(uint64_t place)
{
    size_t i = find(place);

    if (i == LEARNED_MAX)
        i = find(0);
    if (i == LEARNED_MAX)
        i = replaced_next++ % LEARNED_MAX;
    if (learned[i].place != place)
        learned[i].survived = 0;
    learned[i].place = place;
    return i;
}

void gos_habit_learn(uint64_t place, uint32_t failure_count)
{
    uint32_t survived = failure_count < SURVIVED_MAX ? failure_count : SURVIVED_MAX;

    if (place == 0)
        return;
    gos_lock_acquire(&lock);
    size_t i = find_or_make(place);
    if (learned[i].survived < survived)
        learned[i].survived = survived;
    gos_lock_release(&lock);
}

void gos_habit_forget(uint64_t place)
{
    if (place == 0)
        return;
    gos_lock_acquire(&lock);
    size_t i = find(place);
    if (i < LEARNED_MAX)
        learned[i].place = 0;
    gos_lock_release(&lock);
}

void gos_habit_reset_after_fork(void)
{
    gos_lock_reset(&lock);
    memset(learned, 0, sizeof learned);
}
