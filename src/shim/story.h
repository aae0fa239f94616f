/*
 * Stories: refusals of one origin (origin.h) on one thread, until that origin
 * gets what it asked for, another one is refused, or time has passed.
 *
 * torch, CuPy and XLA are refused on purpose: they free their cache and ask
 * again, and so may others (habit.h).  What decides whether a refusal is told,
 * in this order: torch's own word that it gives up (word.h), the known protocol
 * of a library, what was seen of an origin before.  A refusal that is not told is
 * on disk as a draft (kept.h); none is forgotten.
 *
 * Hook context; state is per thread, apart from what kept.h owns.
 */
#ifndef GOS_SHIM_STORY_H
#define GOS_SHIM_STORY_H

#include <stdbool.h>
#include <stdint.h>

#include "../observe/evidence.h"

struct gos_failure;

enum gos_story_answer {
    GOS_STORY_PUT_OFF,  /* the caller asks again: hand the error back */
    GOS_STORY_QUIET,    /* recover, but the caller has survived such before: nothing is said yet */
    GOS_STORY_AWAITS,   /* recover; torch's own word will say whether it gives up */
    GOS_STORY_SURFACES, /* recover and tell */
    GOS_STORY_AGAIN,    /* told already: it changes the report, no second recovery */
};

/* A refusal of this request, at its monotonic_ns; fills what the story knows of it. */
enum gos_story_answer gos_story_refused(struct gos_request *request);

/*
 * torch gives up on this request: fills in what its last call of the driver was.
 * SURFACES: to be told; AGAIN: told before; QUIET: that place has survived so many.
 */
enum gos_story_answer gos_story_word(struct gos_request *request);

/* The open story's number, for kept.h.  Only while one is open. */
uint64_t gos_story_number(void);

/* The open story's failure is told, or at least looked into, now. */
void gos_story_told(void);

/* Does this thread have an open story? */
extern __thread uint32_t gos_story_open __attribute__((tls_model("initial-exec")));

/*
 * With one open: the caller's own allocation of so many bytes, by that entry point, succeeded.
 * Physical memory that follows a refusal of some closes it only when it is mapped.
 */
void gos_story_closed_by(uint64_t bytes, enum gos_kind kind, const char *entry);
/* With one open: this thread has mapped physical memory. */
void gos_story_mapped(void);

/* With one open: torch has handed out a block, with or without a call of the driver. */
void gos_story_block(uint64_t bytes);

/* With one open: the refused call itself succeeded, with help. */
void gos_story_recovered(void);

/* Refusals that the caller survived by itself, and all of them, since the start. */
uint64_t gos_story_survived_count(void);
uint64_t gos_story_refused_count(void);

void gos_story_reset_after_fork(void);

#endif
