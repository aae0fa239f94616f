/*
 * Episodes: consecutive failed allocations of one thread are one story.
 *
 * torch, CuPy and XLA fail on purpose: they free their cache and ask again, and
 * so may others (habit.h).  Their first answers go straight back, at once and
 * in silence; what surfaces is the attempt after which they give up.
 *
 * Hook context; state is per thread, apart from what the exit handler is to see
 * (deferred.h).
 */
#ifndef GOS_SHIM_EPISODE_H
#define GOS_SHIM_EPISODE_H

#include <stdbool.h>
#include <stdint.h>

#include "../observe/evidence.h"

struct gos_failure;

enum gos_episode_answer {
    GOS_EPISODE_DEFER,    /* the caller retries: hand the error back, do nothing */
    GOS_EPISODE_SURFACES, /* a new story: diagnose, recover, report */
    GOS_EPISODE_AGAIN,    /* same story, already told: count it, no second recovery */
};

/* A failure of this request, at its monotonic_ns. */
enum gos_episode_answer gos_episode_failed(struct gos_request *request);

/* Has this thread's open episode only one failure so far? */
bool gos_episode_is_new(void);

/* Does this thread have an open episode? */
extern __thread uint32_t gos_episode_open __attribute__((tls_model("initial-exec")));

/*
 * With one open: the caller's own allocation of so many bytes, by that entry point, succeeded.
 * Physical memory that follows a failure to get some closes it only when it is mapped.
 */
void gos_episode_closed_by(uint64_t bytes, enum gos_kind kind, const char *entry);
/* With one open: this thread has mapped physical memory. */
void gos_episode_mapped(void);

/* With one open: the failed call itself succeeded, with help. */
void gos_episode_recovered(void);

/*
 * The failure that this thread's open episode reported, or would report if its
 * caller survives it (GPUOOMSHIM_REPORT_ON), kept so that its end can be told;
 * one that surfaces takes the place of one that did not.  A few of the whole process are kept, the
 * newest; threads that have ended leave no more than that behind.
 *
 * 0: it was not kept, and is freed.  Else its ticket; the failure is lent to
 * the caller, who gives it back.
 */
uint64_t gos_episode_keep(struct gos_failure *failure);

/*
 * A kept failure for the thread that has its ticket, which owns it until it
 * gives it back; NULL: its episode is over.  Waits while it is lent to another.
 * What ends the episode meanwhile waits for nobody: it is told when the
 * failure is given back.
 */
struct gos_failure *gos_episode_borrow(uint64_t ticket);
void gos_episode_give_back(uint64_t ticket);

/* Failures that the caller survived by itself, and all failures, since the start. */
uint64_t gos_episode_survived_count(void);
uint64_t gos_episode_failure_count(void);

void gos_episode_reset_after_fork(void);

#endif
