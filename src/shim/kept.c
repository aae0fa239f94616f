#include "kept.h"

#include <stddef.h>
#include <string.h>

#include "../base/lock.h"
#include "../base/options.h"
#include "../base/os.h"
#include "failure.h"

/* A failure holds a whole report's evidence, up to a few MiB, and a draft. */
#define KEPT_MAX 8

enum fate { FATE_OPEN, FATE_SURVIVED, FATE_RECOVERED };

static struct gos_lock lock = GOS_LOCK_INIT(GOS_RANK_REPORT);
static struct kept {
    uint64_t ticket; /* 0: free */
    uint64_t story;
    struct gos_failure *failure;
    uint32_t waiting_count; /* threads that have no answer yet */
    enum fate fate;         /* what became of the story while it was lent */
    bool is_lent;
    bool is_settled; /* its report says all that is known */
    bool was_told;
} kept[KEPT_MAX]; /* the newest first; free ones come last */
static uint64_t last_ticket;

/* --- with the lock -------------------------------------------------------------------------- */

static struct kept *with_story(uint64_t story)
{
    for (size_t i = 0; i < KEPT_MAX; i++)
        if (kept[i].ticket && kept[i].story == story)
            return &kept[i];
    return NULL;
}

static struct kept *with_ticket(uint64_t ticket)
{
    for (size_t i = 0; i < KEPT_MAX; i++)
        if (kept[i].ticket == ticket)
            return &kept[i];
    return NULL;
}

static struct gos_failure *remove_kept(struct kept *entry)
{
    struct gos_failure *failure = entry->failure;
    size_t after = (size_t)(&kept[KEPT_MAX - 1] - entry);

    memmove(entry, entry + 1, after * sizeof *entry);
    kept[KEPT_MAX - 1] = (struct kept){.ticket = 0};
    return failure;
}

/* The last place is free. */
static struct kept *push(uint64_t story)
{
    memmove(&kept[1], &kept[0], sizeof kept - sizeof kept[0]);
    kept[0] = (struct kept){.ticket = ++last_ticket, .story = story, .is_lent = true};
    return &kept[0];
}

static struct kept *oldest_at_rest(void)
{
    for (size_t i = KEPT_MAX; i-- > 0;)
        if (!kept[i].is_lent)
            return &kept[i];
    return NULL;
}

static struct kept *unsettled(uint64_t story)
{
    for (size_t i = KEPT_MAX; i-- > 0;)
        if (kept[i].ticket && !kept[i].is_lent && !kept[i].is_settled &&
            (story == 0 || kept[i].story == story))
            return &kept[i];
    return NULL;
}

/* --- what becomes of one that is lent to this thread ---------------------------------------- */

static void settle(struct gos_failure *failure, bool was_told)
{
    if (was_told)
        gos_failure_update(failure);
    else
        gos_failure_tell_late(failure);
}

static void mark_settled(uint64_t ticket)
{
    gos_lock_acquire(&lock);
    struct kept *entry = with_ticket(ticket);
    if (entry)
        entry->is_settled = entry->was_told = true;
    gos_lock_release(&lock);
}

static void drop(uint64_t ticket)
{
    gos_lock_acquire(&lock);
    struct kept *entry = with_ticket(ticket);
    struct gos_failure *failure = entry ? remove_kept(entry) : NULL;
    gos_lock_release(&lock);
    gos_failure_free(failure);
}

/*
 * One that was told stays: the next of its story has the same report, unless
 * all that is survived is to be read of.
 */
static bool is_ended(const struct kept *entry, enum fate fate)
{
    if (fate == FATE_SURVIVED)
        gos_failure_survived(entry->failure, entry->was_told);
    else
        gos_failure_answered(entry->failure);
    return !entry->was_told || gos_options.report_on == GOS_REPORT_ON_ALL;
}

void gos_kept_give_back(uint64_t ticket)
{
    for (;;) {
        struct kept lent = {.fate = FATE_OPEN};

        gos_lock_acquire(&lock);
        struct kept *entry = with_ticket(ticket);
        if (entry) {
            lent = *entry;
            entry->fate = FATE_OPEN;
            entry->is_lent = lent.fate != FATE_OPEN;
        }
        gos_lock_release(&lock);
        if (lent.fate == FATE_OPEN)
            return;
        if (is_ended(&lent, lent.fate)) {
            drop(ticket);
            return;
        }
        mark_settled(ticket);
    }
}

/* False: all places are lent.  Makes one by settling the oldest and letting it go. */
static bool make_room(void)
{
    struct kept oldest = {.ticket = 0};

    gos_lock_acquire(&lock);
    struct kept *entry = oldest_at_rest();
    if (entry) {
        oldest = *entry;
        entry->is_lent = entry->ticket != 0;
    }
    gos_lock_release(&lock);
    if (!entry || !oldest.ticket)
        return entry != NULL;
    if (!oldest.is_settled)
        settle(oldest.failure, oldest.was_told);
    drop(oldest.ticket);
    return true;
}

static bool is_kept(uint64_t story)
{
    gos_lock_acquire(&lock);
    bool is = with_story(story) != NULL;
    gos_lock_release(&lock);
    return is;
}

/* Lent to this thread; 0: another one works on it, or there is no room.  Without a failure: new. */
static uint64_t lend_or_make(uint64_t story, bool is_new, struct gos_failure **failure)
{
    uint64_t ticket = 0;
    bool may_be_made = is_kept(story) || make_room();

    *failure = NULL;
    gos_lock_acquire(&lock);
    struct kept *entry = with_story(story);
    bool is_others = entry && entry->is_lent;
    if (!entry && may_be_made && !kept[KEPT_MAX - 1].ticket)
        entry = push(story);
    if (entry)
        entry->waiting_count += is_new;
    if (entry && !is_others) {
        entry->is_lent = true;
        ticket = entry->ticket;
        *failure = entry->failure;
    }
    gos_lock_release(&lock);
    return ticket;
}

static void set_failure(uint64_t ticket, struct gos_failure *failure)
{
    gos_lock_acquire(&lock);
    struct kept *entry = with_ticket(ticket);
    if (entry) {
        entry->failure = failure;
        entry->is_settled = false;
    }
    gos_lock_release(&lock);
}

void gos_kept_note(uint64_t story, const struct gos_request *request, bool is_new)
{
    struct gos_failure *failure;
    uint64_t ticket = lend_or_make(story, is_new, &failure);

    if (!ticket)
        return;
    failure = gos_failure_note(failure, request);
    set_failure(ticket, failure);
    if (failure)
        gos_kept_give_back(ticket);
    else
        drop(ticket);
}

struct gos_failure *gos_kept_take(uint64_t story)
{
    struct gos_failure *failure = NULL;

    gos_lock_acquire(&lock);
    struct kept *entry = with_story(story);
    if (entry && !entry->is_lent)
        failure = remove_kept(entry);
    gos_lock_release(&lock);
    return failure;
}

struct gos_failure *gos_kept_take_unsettled(bool (*is_it)(const struct gos_failure *, const void *),
                                            const void *arg)
{
    struct gos_failure *failure = NULL;

    gos_lock_acquire(&lock);
    for (size_t i = 0; i < KEPT_MAX && !failure; i++)
        if (kept[i].ticket && !kept[i].is_lent && !kept[i].is_settled &&
            is_it(kept[i].failure, arg))
            failure = remove_kept(&kept[i]);
    gos_lock_release(&lock);
    return failure;
}

uint64_t gos_kept_put(uint64_t story, struct gos_failure *failure, bool told)
{
    uint64_t ticket = 0;
    bool has_room = make_room();

    gos_lock_acquire(&lock);
    if (has_room && !kept[KEPT_MAX - 1].ticket && !with_story(story)) {
        struct kept *entry = push(story);
        entry->failure = failure;
        entry->was_told = entry->is_settled = told;
        entry->waiting_count = 1;
        ticket = entry->ticket;
    }
    gos_lock_release(&lock);
    if (!ticket)
        gos_failure_free(failure);
    return ticket;
}

#define LENT_PAUSE_NS 500000u

struct gos_failure *gos_kept_borrow(uint64_t ticket)
{
    for (;;) {
        struct gos_failure *failure = NULL;

        gos_lock_acquire(&lock);
        struct kept *entry = with_ticket(ticket);
        bool is_lent = entry && entry->is_lent;
        if (entry && !is_lent) {
            entry->is_lent = true;
            failure = entry->failure;
        }
        gos_lock_release(&lock);
        if (!is_lent)
            return failure;
        gos_os.sleep_ns(LENT_PAUSE_NS);
    }
}

/* Others may still wait for an answer at the same place: then it is not over. */
static void end(uint64_t story, enum fate fate)
{
    uint64_t ticket = 0;

    gos_lock_acquire(&lock);
    struct kept *entry = with_story(story);
    if (entry && entry->waiting_count > 0)
        entry->waiting_count--;
    if (entry && entry->waiting_count == 0) {
        entry->fate = fate;
        ticket = entry->is_lent ? 0 : entry->ticket;
        entry->is_lent = true;
    }
    gos_lock_release(&lock);
    if (ticket)
        gos_kept_give_back(ticket);
}

void gos_kept_survived(uint64_t story)
{
    end(story, FATE_SURVIVED);
}

void gos_kept_recovered(uint64_t story)
{
    end(story, FATE_RECOVERED);
}

void gos_kept_settle(uint64_t story)
{
    for (;;) {
        struct kept lent = {.ticket = 0};

        gos_lock_acquire(&lock);
        struct kept *entry = unsettled(story);
        if (entry) {
            lent = *entry;
            entry->is_lent = true;
        }
        gos_lock_release(&lock);
        if (!lent.ticket)
            return;
        settle(lent.failure, lent.was_told);
        mark_settled(lent.ticket);
        gos_kept_give_back(lent.ticket);
    }
}

bool gos_kept_is_told(uint64_t story)
{
    gos_lock_acquire(&lock);
    const struct kept *entry = with_story(story);
    bool is_told = entry && entry->was_told;
    gos_lock_release(&lock);
    return is_told;
}

void gos_kept_reset_after_fork(void)
{
    gos_lock_reset(&lock);
    memset(kept, 0, sizeof kept); /* their memory belongs to the parent's copy */
}
