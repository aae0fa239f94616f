/* Reading the kernel's text files.  Pure but for the reading of the file itself. */
#ifndef GOS_OBSERVE_PROCFS_H
#define GOS_OBSERVE_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The value of the line that begins with the name ("VmSize:"), past blanks; NULL if none. */
const char *gos_procfs_field(const char *text, const char *name);

/* Decimal digits at the start of text, saturating.  False when there are none. */
bool gos_procfs_number(const char *text, uint64_t *value);

/* A field in kB, as bytes. */
bool gos_procfs_bytes(const char *text, const char *name, uint64_t *bytes);

/* A file that holds one number.  "max" is UINT64_MAX. */
bool gos_procfs_read_number(const char *path, uint64_t *value);

/* Length of the line that text begins with, without its end. */
size_t gos_procfs_line_length(const char *text);

#endif
