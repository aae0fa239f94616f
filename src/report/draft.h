/*
 * The drafts of this process: a fixed number of files (draft_file.h), each made
 * when it is first needed, mapped, and used again when its draft has gone, so
 * that all but the first use are stores to memory.
 *
 * What is stored to has its place on the disk already, and the kernel is asked
 * for each page: a full disk, or a file that somebody cut short, ends in an
 * error and not in a signal.  Only in the microseconds between the question and
 * the store can it still do harm.
 *
 * Hook context: yes.  The caller holds the report lock.
 */
#ifndef GOS_REPORT_DRAFT_H
#define GOS_REPORT_DRAFT_H

#include "draft_file.h"
#include "files.h"

/* One for each failure that the shim keeps, and for some that are being looked into. */
#define GOS_DRAFT_MAX 24

struct gos_draft_words {
    const char *data[GOS_DRAFT_FORMS];
    size_t bytes[GOS_DRAFT_FORMS];
    uint32_t forms;       /* see struct gos_draft_slot */
    uint32_t told_number; /* in name.directory */
    /* Directory NULL: where reports go.  A draft that has its file stays where that is. */
    struct gos_file_name name;
};

/*
 * Put the words into the draft, or, with *draft 0, into one that is not in use.
 * On failure what lies there stays, and *draft is 0 where nothing does.
 * -EFBIG: more than a draft can hold; -EBUSY: all are in use.
 */
__attribute__((warn_unused_result)) int gos_draft_store(unsigned *draft,
                                                        const struct gos_draft_words *words);

/* Now the files with these inodes get their names. */
void gos_draft_publishing(unsigned draft, uint32_t number, const uint64_t inodes[GOS_DRAFT_FORMS]);

/* It says nothing any more; *draft is 0.  The file is kept for the next. */
void gos_draft_void(unsigned *draft);

const char *gos_draft_path(unsigned draft);
bool gos_draft_is_own(const char *path);

/* Remove the files of those that are not in use. */
void gos_draft_end(void);
/* In a forked child: they are the parent's. */
void gos_draft_reset_after_fork(void);

#endif
