/*
 * Failures that are not over, one for each story of a few: the only owner of a
 * failure once its call has returned.
 *
 * A failure that was put off lies on disk as a draft and waits for its answer: a
 * success of the same origin, or the end.  One that was told stays, so that
 * later ones of its story change its report, first in its draft.  Whatever no
 * report says yet is brought there by gos_kept_settle: before another story
 * begins, when an exception ends the program, at exit.
 *
 * A kept failure is lent to one thread at a time, which works on it without a
 * lock; what meets a lent one counts, or leaves its fate behind.
 *
 * Hook context.  `story` is the number of a story, never 0 (story.h).
 */
#ifndef GOS_SHIM_KEPT_H
#define GOS_SHIM_KEPT_H

#include <stdbool.h>
#include <stdint.h>

#include "../observe/evidence.h"

struct gos_failure;

/*
 * A failure holds a whole report's evidence, up to a few MiB, and a draft.  A
 * program that is refused at more lines than this in turn is told of each again.
 */
#define GOS_KEPT_MAX 16

/*
 * A refusal that is not told now goes into the draft of its story, with the
 * evidence of now as far as that is cheap; this thread waits for an answer to it.
 */
void gos_kept_note(uint64_t story, const struct gos_request *request);

/*
 * Takes the failure of that story for a new one that takes over its report, and
 * keeps its place for gos_kept_put or the story's end; NULL: there is none, or
 * another thread works on it.
 */
struct gos_failure *gos_kept_take(uint64_t story);

/* The newest that no report says yet and of which that is true; NULL: there is none. */
struct gos_failure *gos_kept_take_unsettled(bool (*is_it)(const struct gos_failure *, const void *),
                                            const void *arg);

/*
 * The call is over and its failure remains: owned from here on.  told: its
 * report says all.  0: it was freed, for all places are lent.  Else the ticket
 * of the failure, which is still lent to the caller, who gives it back.
 */
uint64_t gos_kept_put(uint64_t story, struct gos_failure *failure,
                      const struct gos_request *request, bool told);

/* Forget the oldest of another story whose report says all.  False: there is none. */
bool gos_kept_let_go(uint64_t but_story);

/* For the one with the ticket; NULL: it is gone.  Waits while it is lent to another, 2 s. */
struct gos_failure *gos_kept_borrow(uint64_t ticket);
void gos_kept_give_back(uint64_t ticket);

/* A thread's caller got what it wanted, by itself, or with our help. */
void gos_kept_survived(uint64_t story);
void gos_kept_recovered(uint64_t story);

/*
 * What no report says yet is brought into one: story 0, of all of them; else of
 * that one, but no more than once a second.
 */
void gos_kept_settle(uint64_t story);

/* When the story was told, if nothing has answered it since; else 0. */
uint64_t gos_kept_told_ns(uint64_t story);

void gos_kept_reset_after_fork(void);

#endif
