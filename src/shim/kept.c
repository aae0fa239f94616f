#include "kept.h"

#include <stddef.h>
#include <string.h>

#include "../base/lock.h"
#include "../base/options.h"
#include "../base/os.h"
#include "../base/thread.h"
#include "failure.h"
#include "stack_room.h"

/* Of more threads that are refused at one place the newest are known. */
#define WAITING_MAX 4

/* Lines that are refused in turn are brought into their reports so often at the most. */
#define SETTLE_NS 1000000000u

/* OTHERS_WAIT: the newest refusal without an answer is not the one that was put down. */
enum fate { FATE_OPEN, FATE_SURVIVED, FATE_RECOVERED, FATE_OTHERS_WAIT };

static struct gos_lock lock = GOS_LOCK_INIT(GOS_RANK_REPORT);
static struct kept {
    uint64_t ticket; /* 0: free */
    uint64_t story;
    struct gos_failure *failure; /* NULL while it is taken for a new one, or being made */
    uint32_t taken_by;           /* gos_thread_index of the one that took it; 0: nobody did */
    struct waiting {
        uint32_t thread; /* gos_thread_index; 0: free */
        struct gos_request request;
    } waiting[WAITING_MAX]; /* threads without an answer yet, the newest first */
    uint64_t refused_ns;    /* the last time */
    uint64_t told_ns;       /* 0: not told, or survived since */
    uint64_t settled_ns;
    enum fate fate; /* what became of the story while it was lent, or where nothing could be done */
    bool is_lent;
    bool is_settled; /* its report says all that is known */
    bool was_told;
} kept[GOS_KEPT_MAX]; /* the newest first; free ones come last */
static uint64_t last_ticket;

/* --- with the lock -------------------------------------------------------------------------- */

static struct kept *with_story(uint64_t story)
{
    for (size_t i = 0; i < GOS_KEPT_MAX; i++)
        if (kept[i].ticket && kept[i].story == story)
            return &kept[i];
    return NULL;
}

static struct kept *with_ticket(uint64_t ticket)
{
    for (size_t i = 0; i < GOS_KEPT_MAX; i++)
        if (kept[i].ticket == ticket)
            return &kept[i];
    return NULL;
}

static struct gos_failure *remove_kept(struct kept *entry)
{
    struct gos_failure *failure = entry->failure;
    size_t after = (size_t)(&kept[GOS_KEPT_MAX - 1] - entry);

    memmove(entry, entry + 1, after * sizeof *entry);
    kept[GOS_KEPT_MAX - 1] = (struct kept){.ticket = 0};
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
    for (size_t i = GOS_KEPT_MAX; i-- > 0;)
        if (!kept[i].is_lent)
            return &kept[i];
    return NULL;
}

static bool has_waiting(const struct kept *entry)
{
    return entry->waiting[0].thread != 0;
}

static void remove_waiting(struct kept *entry, uint32_t thread)
{
    size_t left = 0;

    for (size_t i = 0; i < WAITING_MAX; i++)
        if (entry->waiting[i].thread != thread)
            entry->waiting[left++] = entry->waiting[i];
    while (left < WAITING_MAX)
        entry->waiting[left++].thread = 0;
}

static void add_waiting(struct kept *entry, const struct gos_request *request)
{
    remove_waiting(entry, gos_thread_index());
    memmove(&entry->waiting[1], &entry->waiting[0],
            sizeof entry->waiting - sizeof entry->waiting[0]);
    entry->waiting[0] = (struct waiting){gos_thread_index(), *request};
    entry->refused_ns = request->monotonic_ns;
}

/* --- what becomes of one that is lent to this thread ---------------------------------------- */

/* What is known of to the user already, he need not be told on stderr again. */
static void settle(const struct kept *entry)
{
    if (entry->told_ns)
        gos_failure_update(entry->failure);
    else
        gos_failure_tell_late(entry->failure);
}

static void mark_settled(uint64_t ticket)
{
    uint64_t now_ns = gos_os.monotonic_ns();

    gos_lock_acquire(&lock);
    struct kept *entry = with_ticket(ticket);
    if (entry) {
        if (!entry->told_ns)
            entry->told_ns = now_ns;
        entry->settled_ns = now_ns;
        entry->is_settled = entry->was_told = true;
    }
    gos_lock_release(&lock);
}

static void mark(uint64_t ticket, bool is_settled)
{
    gos_lock_acquire(&lock);
    struct kept *entry = with_ticket(ticket);
    if (entry)
        entry->is_settled = is_settled;
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
    if (fate == FATE_OTHERS_WAIT) {
        if (!has_waiting(entry))
            return false;
        gos_failure_note(entry->failure, &entry->waiting[0].request);
        return false;
    }
    if (fate == FATE_SURVIVED)
        gos_failure_survived(entry->failure, entry->told_ns != 0);
    else
        gos_failure_answered(entry->failure);
    return !entry->was_told || gos_options.report_on == GOS_REPORT_ON_ALL;
}

/* Without room on the stack its fate waits for the next that gives it back, at the latest at exit.
 */
void gos_kept_give_back(uint64_t ticket)
{
    for (;;) {
        struct kept lent = {.fate = FATE_OPEN};

        gos_lock_acquire(&lock);
        struct kept *entry = with_ticket(ticket);
        if (entry)
            entry->is_lent = entry->fate != FATE_OPEN && gos_stack_has_room();
        if (entry && entry->is_lent) {
            lent = *entry;
            entry->fate = FATE_OPEN;
            if (lent.fate == FATE_SURVIVED)
                entry->told_ns = 0;
        }
        gos_lock_release(&lock);
        if (lent.fate == FATE_OPEN)
            return;
        if (is_ended(&lent, lent.fate)) {
            drop(ticket);
            return;
        }
        mark(ticket, lent.fate != FATE_OTHERS_WAIT);
    }
}

/*
 * Makes a place by settling the oldest and letting it go.  False: all are lent, or
 * the stack has no room for that.
 */
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
    if (!oldest.is_settled && !gos_stack_has_room()) {
        gos_kept_give_back(oldest.ticket);
        return false;
    }
    if (!oldest.is_settled)
        settle(&oldest);
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
static uint64_t lend_or_make(uint64_t story, const struct gos_request *request,
                             struct gos_failure **failure)
{
    uint64_t ticket = 0;
    bool may_be_made = is_kept(story) || make_room();

    *failure = NULL;
    gos_lock_acquire(&lock);
    struct kept *entry = with_story(story);
    bool is_others = entry && entry->is_lent;
    if (!entry && may_be_made && !kept[GOS_KEPT_MAX - 1].ticket)
        entry = push(story);
    if (entry)
        add_waiting(entry, request);
    if (is_others && entry->fate == FATE_OPEN)
        entry->fate = FATE_OTHERS_WAIT; /* the one that has it puts this refusal down, too */
    if (entry && !is_others) {
        entry->is_lent = true;
        entry->fate = FATE_OPEN;
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

void gos_kept_note(uint64_t story, const struct gos_request *request)
{
    struct gos_failure *failure;
    uint64_t ticket = lend_or_make(story, request, &failure);

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
    if (entry && !entry->is_lent) {
        failure = entry->failure;
        entry->failure = NULL;
        entry->is_lent = true;
        entry->fate = FATE_OPEN;
        entry->taken_by = gos_thread_index();
    }
    gos_lock_release(&lock);
    return failure;
}

struct gos_failure *gos_kept_take_unsettled(bool (*is_it)(const struct gos_failure *, const void *),
                                            const void *arg)
{
    struct gos_failure *failure = NULL;

    gos_lock_acquire(&lock);
    for (size_t i = 0; i < GOS_KEPT_MAX && !failure; i++)
        if (kept[i].ticket && !kept[i].is_lent && !kept[i].is_settled &&
            is_it(kept[i].failure, arg))
            failure = remove_kept(&kept[i]);
    gos_lock_release(&lock);
    return failure;
}

static bool is_taken_by_this(const struct kept *entry)
{
    return entry->taken_by == gos_thread_index();
}

/* With the lock; NULL: another thread's is there, or there is no room. */
static struct kept *place_for(uint64_t story, bool has_room)
{
    struct kept *entry = with_story(story);

    if (entry)
        return is_taken_by_this(entry) ? entry : NULL;
    return has_room && !kept[GOS_KEPT_MAX - 1].ticket ? push(story) : NULL;
}

uint64_t gos_kept_put(uint64_t story, struct gos_failure *failure,
                      const struct gos_request *request, bool told)
{
    uint64_t ticket = 0;
    uint64_t now_ns = gos_os.monotonic_ns();
    bool has_room = is_kept(story) || make_room();

    gos_lock_acquire(&lock);
    struct kept *entry = place_for(story, has_room);
    if (entry) {
        entry->failure = failure;
        entry->taken_by = 0;
        entry->is_settled = told;
        entry->was_told = entry->was_told || told;
        entry->told_ns = told ? now_ns : entry->told_ns;
        entry->settled_ns = told ? now_ns : entry->settled_ns;
        add_waiting(entry, request);
        ticket = entry->ticket;
    }
    gos_lock_release(&lock);
    if (!ticket)
        gos_failure_free(failure);
    return ticket;
}

bool gos_kept_let_go(uint64_t but_story)
{
    struct gos_failure *failure = NULL;

    gos_lock_acquire(&lock);
    for (size_t i = GOS_KEPT_MAX; i-- > 0 && !failure;)
        if (kept[i].ticket && kept[i].story != but_story && !kept[i].is_lent && kept[i].is_settled)
            failure = remove_kept(&kept[i]);
    gos_lock_release(&lock);
    gos_failure_free(failure);
    return failure != NULL;
}

/* Whoever has it may have ended inside of us, or be about to write to a disk that does not answer.
 */
#define LENT_PAUSE_NS 500000u
#define LENT_PAUSES 4000

struct gos_failure *gos_kept_borrow(uint64_t ticket)
{
    for (unsigned i = 0; i < LENT_PAUSES; i++) {
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
    return NULL;
}

/*
 * One that was taken and answered is gone, and of one that another thread has taken,
 * that one decides; others may still wait for an answer at its place.
 */
static void end(uint64_t story, enum fate fate)
{
    uint64_t ticket = 0;

    gos_lock_acquire(&lock);
    struct kept *entry = with_story(story);
    if (entry)
        remove_waiting(entry, gos_thread_index());
    if (entry && is_taken_by_this(entry)) {
        remove_kept(entry);
    } else if (entry && !entry->taken_by) {
        entry->fate = has_waiting(entry) ? FATE_OTHERS_WAIT : fate;
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

/* With the lock: a report that was written a moment ago can wait, for the draft says the rest. */
static bool is_due(const struct kept *entry, uint64_t story)
{
    if (!entry->ticket || entry->is_lent || (entry->is_settled && entry->fate == FATE_OPEN))
        return false;
    if (story == 0)
        return true;
    return entry->story == story &&
           (!entry->told_ns || gos_os.monotonic_ns() - entry->settled_ns >= SETTLE_NS);
}

/*
 * What was refused first comes first, so that the newest report is about the last
 * refusal; what is refused while this goes on is not waited for, or it could go on
 * for ever.
 */
static bool lend_due(uint64_t story, uint64_t until_ns, struct kept *lent)
{
    struct kept *first = NULL;

    gos_lock_acquire(&lock);
    for (size_t i = GOS_KEPT_MAX; i-- > 0;)
        if (is_due(&kept[i], story) && kept[i].refused_ns <= until_ns &&
            (!first || kept[i].refused_ns < first->refused_ns))
            first = &kept[i];
    if (first) {
        *lent = *first;
        first->is_lent = true;
    }
    gos_lock_release(&lock);
    return first != NULL;
}

/* Its report was written before one about an earlier refusal: then it is written anew. */
static bool lend_overtaken(struct kept *lent)
{
    struct kept *last = NULL;
    uint64_t settled_ns = 0;

    gos_lock_acquire(&lock);
    for (size_t i = 0; i < GOS_KEPT_MAX; i++) {
        if (kept[i].ticket && kept[i].settled_ns > settled_ns)
            settled_ns = kept[i].settled_ns;
        if (kept[i].ticket && kept[i].told_ns && (!last || kept[i].refused_ns > last->refused_ns))
            last = &kept[i];
    }
    bool is_overtaken = last && !last->is_lent && last->settled_ns < settled_ns;
    if (is_overtaken) {
        *lent = *last;
        last->is_lent = true;
    }
    gos_lock_release(&lock);
    return is_overtaken;
}

void gos_kept_settle(uint64_t story)
{
    uint64_t began_ns = gos_os.monotonic_ns();
    struct kept lent;
    bool any = false;

    while (lend_due(story, began_ns, &lent) || (any && lend_overtaken(&lent))) {
        if (!gos_stack_has_room()) {
            gos_kept_give_back(lent.ticket);
            return;
        }
        any = true;
        if (lent.fate == FATE_OPEN) {
            settle(&lent);
            mark_settled(lent.ticket);
        }
        gos_kept_give_back(lent.ticket);
    }
}

uint64_t gos_kept_told_ns(uint64_t story)
{
    gos_lock_acquire(&lock);
    const struct kept *entry = with_story(story);
    uint64_t told_ns = entry && entry->fate != FATE_SURVIVED ? entry->told_ns : 0;
    gos_lock_release(&lock);
    return told_ns;
}

void gos_kept_reset_after_fork(void)
{
    gos_lock_reset(&lock);
    memset(kept, 0, sizeof kept); /* their memory belongs to the parent's copy */
}
