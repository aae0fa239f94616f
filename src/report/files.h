/*
 * Files of reports: where they go, how they are named, how they appear.
 *
 * A file appears whole or not at all: it is written under a temporary name in
 * the same directory, synced, and then linked (a new name) or renamed (ours).  No link is ever
 * followed, nothing that is not ours is overwritten, and only the owner may read (0600). Hook
 * context: yes; everything goes through gos_os.
 */
#ifndef GOS_REPORT_FILES_H
#define GOS_REPORT_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/memory.h"

#define GOS_PATH_BYTES 512

/* A file that is being written. */
struct gos_draft {
    int fd; /* -1: none */
    char path[GOS_PATH_BYTES];
};

/*
 * GPUOOMSHIM_REPORT_DIR or else the working directory, as an absolute path
 * (the host may change its working directory later).  0 or -ENAMETOOLONG.
 */
__attribute__((warn_unused_result)) int gos_files_directory(char directory[GOS_PATH_BYTES]);

/* TMPDIR as it was when the process started, else /tmp. */
void gos_files_fallback(char directory[GOS_PATH_BYTES], struct gos_scratch *scratch);

/* The directory part of a path; "." where it has none. */
void gos_files_directory_of(char directory[GOS_PATH_BYTES], const char *path);

/*
 * "DIRECTORY/gpuoomshim.HOST.[rRANK.]PID.NUMBER.EXTENSION"; rank -1: none.
 * What does not belong into a file name is replaced by '_' in HOST.
 */
struct gos_file_name {
    const char *directory;
    const char *host;
    int rank;
    int pid;
    uint32_t number;
};
__attribute__((warn_unused_result)) int
gos_files_name(char path[GOS_PATH_BYTES], const struct gos_file_name *name, const char *extension);

/* Open a new temporary file in the directory.  0 or -errno. */
__attribute__((warn_unused_result)) int gos_draft_open(struct gos_draft *draft,
                                                       const char *directory);
/* Sync and close; the file stays under its temporary name.  On failure it is removed. */
__attribute__((warn_unused_result)) int gos_draft_seal(struct gos_draft *draft);
/*
 * Give the sealed draft a name besides its temporary one: -EEXIST when
 * anything, be it a symbolic link, is there.  Where the file system has no
 * second names, an empty file takes the name; then `whole` is false, and
 * gos_draft_publish has to follow.
 */
__attribute__((warn_unused_result)) int gos_draft_name(const struct gos_draft *draft,
                                                       const char *path, bool *whole);
/* Give the sealed draft its name, replacing what we have there.  On failure it is removed. */
__attribute__((warn_unused_result)) int gos_draft_publish(struct gos_draft *draft,
                                                          const char *path);
/* Close and remove, in whatever state it is. */
void gos_draft_drop(struct gos_draft *draft);

/* "no space left on the device" for -ENOSPC …; for people. */
const char *gos_files_error(int error);
/* Is it the directory's fault, so that another one may do better? */
bool gos_files_try_elsewhere(int error);

#endif
