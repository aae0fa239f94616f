/*
 * Reading JSON whole, with integers up to 2^64-1 kept exactly: jansson stops
 * at 2^63-1, and the size of a failed allocation may be beyond that.
 */
#ifndef GOS_CLI_JSON_FILE_H
#define GOS_CLI_JSON_FILE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The document, to be freed with json_decref, or NULL after a complaint on
 * stderr.  path "-" is standard input.  Larger integers are strings with a mark
 * in front (GOS_JSON_BIG), which the functions of json_value.h understand.
 */
json_t *gos_json_read(const char *path);
/* The same of what was read from that path already. */
json_t *gos_json_parse(const char *path, const char *data, size_t bytes);

/* Cannot occur in a report: control characters are escaped, and this is the first character. */
#define GOS_JSON_BIG "\x01"

/* Print as JSON on stdout, marked integers as numbers again.  0 or -1. */
int gos_json_print(const json_t *value);

#endif
