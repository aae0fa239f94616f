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
struct gos_new_file {
    int fd;         /* -1: none */
    uint64_t inode; /* by which it is known again under another name; 0: not known */
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

/* Open a temporary file in the directory, to be read and written.  0 or -errno. */
__attribute__((warn_unused_result)) int gos_new_file_open(struct gos_new_file *file,
                                                          const char *directory);
/* Sync and close; the file stays under its temporary name.  On failure it is removed. */
__attribute__((warn_unused_result)) int gos_new_file_seal(struct gos_new_file *file);
/*
 * Give the sealed file a name besides its temporary one: -EEXIST when
 * anything, be it a symbolic link, is there.  Where the file system has no
 * second names, an empty file takes the name; then `whole` is false, and
 * gos_new_file_publish has to follow.
 */
__attribute__((warn_unused_result)) int gos_new_file_name(const struct gos_new_file *file,
                                                          const char *path, bool *whole);
/* Give the sealed file its name, replacing what we have there.  On failure it is removed. */
__attribute__((warn_unused_result)) int gos_new_file_publish(struct gos_new_file *file,
                                                             const char *path);
/* Close and remove, in whatever state it is. */
void gos_new_file_drop(struct gos_new_file *file);

/* Remove what a report's files were called; "" is none. */
void gos_files_remove(const char *text_path, const char *json_path);

/* "no space left on the device" for -ENOSPC …; for people. */
const char *gos_files_error(int error);
/* Is it the directory's fault, so that another one may do better? */
bool gos_files_try_elsewhere(int error);

#endif
