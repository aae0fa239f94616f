/*
 * Reports: one walk over a diagnosis through an emitter that gives text or
 * JSON, and the files that they go to.
 */
#ifndef GOS_REPORT_REPORT_H
#define GOS_REPORT_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "../diagnose/diagnosis.h"
#include "../diagnose/step.h"

enum gos_report_kind { GOS_REPORT_FAILURE, GOS_REPORT_SNAPSHOT, GOS_REPORT_EXIT };
enum gos_outcome {
    GOS_OUTCOME_NONE,
    GOS_OUTCOME_FAILED,
    GOS_OUTCOME_RECOVERED,
    GOS_OUTCOME_RECOVERED_BY_CALLER
};

struct gos_report {
    enum gos_report_kind kind;
    enum gos_outcome outcome;
    const struct gos_diagnosis *diagnosis; /* and through it the evidence */
    struct gos_step_record steps[GOS_STEP_MAX];
    uint32_t step_count;
    uint32_t number; /* n in the file's name; 0: assign the next and store it here */
    /*
     * A failure that is told, or told again, now: written anew, it becomes the
     * newest report of this process; GPUOOMSHIM_REPORT_MAX does not silence it.
     */
    bool newest;
    unsigned draft;  /* which of the process' drafts is its; 0: none */
    uint32_t serial; /* kept by gos_report_write: which of the process' reports it is */
    /* NULL: named as described below; else the files are this + ".txt" and ".json". */
    const char *path_prefix;
    char text_path[512]; /* filled when written, "" otherwise */
    char json_path[512];
};

/*
 * Write the files that GPUOOMSHIM_REPORT asks for, or rewrite them when the
 * report's paths are filled from an earlier call.  Temporary file in the same
 * directory, 0600, O_NOFOLLOW|O_EXCL, fsync, link or rename; a name that is taken by
 * something else costs the next number.  If the directory cannot be written,
 * the temporary directory is tried and the log says so; if that fails too (or
 * the disk is full), one line on stderr says what to do and the first screen
 * goes to stderr instead, once.
 *
 * A report with a draft: a process that is killed while its two files appear
 * leaves both of them to the next start, by the draft.  When they are there, the
 * draft is void; when they cannot be written, it stays.
 *
 * With `newest`, a report that was told already and is not the last one of this
 * process takes the next number, and its old files go.
 *
 * When GPUOOMSHIM_REPORT_MAX reports have been written, a failure takes the place
 * of one that the caller survived, or else of the newest.  The report that has
 * lost its files is not written any more (0), unless it is told again (`newest`).
 * 0 or -errno; -EDQUOT when there is no room: for what the caller survived, for
 * snapshots.
 * Hook context: yes; takes the report lock, has scratch memory of its own.
 */
int gos_report_write(struct gos_report *report);

/*
 * Put a report down as its draft, or over it: a file that any end of the process
 * leaves, which `gpuoomshim show` reads, and which becomes a report when the
 * library starts the next time in this directory.  Symbols of native frames and
 * the stacks of all but the largest sites are left out.  Only the first draft of
 * a process makes a file; the others are stores to its memory.
 *
 * 0 or -errno; after an error report->draft tells whether an earlier state of it
 * lies on disk (nonzero) or nothing does: then the report should be written.
 * Hook context: yes; takes the report lock.
 */
int gos_report_draft(struct gos_report *report);

/* The files, the number and the draft of an earlier report become those of another one. */
void gos_report_inherit(struct gos_report *report, struct gos_report *earlier);
/* It leaves those files as they are, and gets its own; the draft stays. */
void gos_report_disown(struct gos_report *report);

/* The caller survived: the draft, if there is one, says nothing any more. */
void gos_report_draft_void(struct gos_report *report);

/*
 * At the start: drafts in the directory of reports whose process has ended become
 * its reports, under the next free number, and void ones go.  So do those of an
 * earlier program of this process (exec).  A few milliseconds, of the first few
 * thousand entries; only regular files of this user with one name.
 * Takes no lock; not to be called twice at once.
 */
void gos_report_drafts_adopt(void);

/* At the normal end: files of drafts that say nothing are removed. */
void gos_report_drafts_end(void);

/* In a forked child: the lock is free, numbers begin again at 1, drafts are the parent's. */
void gos_report_reset_after_fork(void);

#endif
