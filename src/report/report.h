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
    /* NULL: named as described below; else the files are this + ".txt" and ".json". */
    const char *path_prefix;
    uint32_t draft;      /* which of the process' drafts it has; 0: none */
    bool newest;         /* on a rewrite: takes the next number where others were written since */
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
 * 0 or -errno; -EDQUOT when GPUOOMSHIM_REPORT_MAX reports have been written, and the
 * caller has not survived any whose files this one could take over.
 * Hook context: yes; takes the report lock, has scratch memory of its own.
 */
int gos_report_write(struct gos_report *report);

int gos_report_draft(struct gos_report *report);
void gos_report_draft_void(struct gos_report *report);
void gos_report_drafts_end(void);

/* The files, the number and the draft of an earlier report become those of another one. */
void gos_report_inherit(struct gos_report *report, const struct gos_report *earlier);

/* In a forked child: the lock is free and numbers begin again at 1. */
void gos_report_reset_after_fork(void);

#endif
