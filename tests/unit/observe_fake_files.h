/* Files by name and text behind gos_os, and failing the nth call that leaves the process. */
#ifndef GOS_TESTS_OBSERVE_FAKE_FILES_H
#define GOS_TESTS_OBSERVE_FAKE_FILES_H

#include <stdbool.h>
#include <stddef.h>

/* Replace open, read, close, readlink, list, map, unmap, limit, hostname; no files yet. */
void fake_files_install(void);
void fake_files_remove(void);

/* A file, or with `names` ending in a NULL a folder; text is not copied. */
void fake_file(const char *path, const char *text);
void fake_file_bytes(const char *path, const char *data, size_t bytes);
void fake_link(const char *path, const char *target);
void fake_folder(const char *path, const char *const *names);

/* At most so many bytes for each read; 0: as many as are asked for. */
void fake_files_read_at_most(size_t bytes);

/* The nth call from now (1…) fails; 0: none.  Counts and reports. */
void fake_files_fail(unsigned nth);
bool fake_files_failed(void);

unsigned fake_files_open_count(void); /* opened and not closed */
long fake_files_mapped_bytes(void);   /* mapped and not unmapped since the installation */

#endif
